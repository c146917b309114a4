import numpy as np
import pytest
from oracles import replay as oracle

from softcount import store
from softcount.replay.config import ReplayConfig
from softcount.replay.sequences import SequenceReplay
from softcount.types import ArraySpec, Step

SPEC = {"image": ArraySpec((4, 3, 2), "uint8"), "sensor": ArraySpec((5,), "float32")}
STATE = (np.zeros((1, 6), np.float32), np.zeros((1, 2), np.float32))
CONFIG = ReplayConfig(trace_length=6, period=3, capacity=9, min_traces=2, replay_ratio=2.0)


def make(config=CONFIG, num_envs=4):
    return SequenceReplay(config, num_envs, SPEC, STATE)


def rows(rng, num, p_end=0.2, was_last=None):
    """Random rows of `num` environments, with the flags of real episodes."""
    is_first = np.zeros(num, bool) if was_last is None else was_last
    is_last = (rng.random(num) < p_end) & ~is_first
    return Step(
        observation={
            "image": rng.integers(0, 3, (num, 4, 3, 2)).astype(np.uint8),
            "sensor": rng.normal(size=(num, 5)).astype(np.float32),
        },
        prev_action=rng.integers(0, 9, num),
        reward=rng.normal(size=num).astype(np.float32),
        intrinsic=rng.random(num).astype(np.float32),
        is_first=is_first,
        is_last=is_last,
        is_terminal=is_last & (rng.random(num) < 0.5),
        action=rng.integers(0, 9, num),
        extras={"mixture": rng.integers(0, 4, num), "log_prob": rng.normal(size=num).astype(np.float32)},
    )


def states(rng, num):
    return tuple(rng.normal(size=(num, *x.shape[1:])).astype(np.float32) for x in STATE)


def row_of(step, n):
    plain = {k: v[n] for k, v in step._asdict().items() if k not in ("observation", "extras")}
    return (
        plain
        | {k: v[n] for k, v in step.observation.items()}
        | {f"x{k}": v[n] for k, v in step.extras.items()}
    )


def feed(replay, num_steps, seed=0, reference=None, subset=False):
    rng = np.random.default_rng(seed)
    was_last = np.ones(replay.num_envs, bool)
    for _ in range(num_steps):
        envs = np.arange(replay.num_envs)
        if subset:
            envs = np.flatnonzero(rng.random(replay.num_envs) < 0.7)
        step, state = rows(rng, len(envs), was_last=was_last[envs]), states(rng, len(envs))
        was_last[envs] = step.is_last
        replay.add(step, state, envs if subset else None)
        if reference is not None:
            singles = [row_of(step, n) for n in range(len(envs))]
            reference.add(singles, [tuple(x[n] for x in state) for n in range(len(envs))], envs.tolist())


def assert_traces_equal(replay, reference, batch):
    for b, serial in enumerate(batch.ids.tolist()):
        expected_rows, expected_state = reference.trace(serial)
        assert len(batch.sequence.steps.reward) == len(expected_rows) == replay.config.trace_length + 1
        for t, expected in enumerate(expected_rows):
            found = row_of(
                batch.sequence.steps._replace(
                    observation={k: v[t] for k, v in batch.sequence.steps.observation.items()},
                    extras={k: v[t] for k, v in batch.sequence.steps.extras.items()},
                    **{
                        k: v[t]
                        for k, v in batch.sequence.steps._asdict().items()
                        if k not in ("observation", "extras")
                    },
                ),
                b,
            )
            for name in expected:
                assert np.array_equal(found[name], expected[name]), f"{name} at {t}"
        for found_leaf, expected_leaf in zip(batch.sequence.state, expected_state, strict=True):
            np.testing.assert_array_equal(found_leaf[b], expected_leaf)


@pytest.mark.parametrize("subset", [False, True], ids=["lockstep", "ragged"])
@pytest.mark.parametrize(
    ("length", "period", "compression"),
    [(6, 3, "none"), (6, 3, "lz4"), (4, 4, "lz4"), (4, 1, "lz4"), (6, 2, "lz4")],
)
def test_sampled_traces_are_the_rows_that_were_added(subset, length, period, compression):
    config = ReplayConfig(
        trace_length=length,
        period=period,
        capacity=17,
        min_traces=1,
        compression=compression,
        priority_exponent=0.0,
    )
    replay, reference = make(config), oracle.Replay(length, period, 17, 4)
    rng, seen = np.random.default_rng(7), set()
    for n in range(30):
        feed(replay, 3, seed=n, reference=reference, subset=subset)
        assert replay.num_traces == len(reference.traces)
        if replay.num_traces:
            batch = replay.sample(5, rng)
            assert set(batch.ids.tolist()) <= reference.traces
            assert_traces_equal(replay, reference, batch)
            seen |= set(batch.ids.tolist())
    assert len(seen) > 20
    assert replay.num_traces == 17  # it was full for most of the time


def test_a_trace_is_there_as_soon_as_its_last_row_is():
    replay = make(num_envs=1)
    feed(replay, 6)
    assert replay.num_traces == 0
    feed(replay, 1, seed=1)
    assert replay.num_traces == 1
    assert replay.sample(1, np.random.default_rng(0)).sequence.steps.reward.shape == (7, 1)
    feed(replay, 3, seed=2)
    assert replay.num_traces == 2


def test_priorities_decide_what_is_sampled():
    config = ReplayConfig(trace_length=6, period=3, capacity=100, min_traces=1, priority_exponent=0.5)
    replay = make(config)
    feed(replay, 16)
    ids = np.arange(replay.num_traces)
    priorities = np.linspace(0.1, 9.0, len(ids))
    replay.reprioritise(ids, priorities)
    rng = np.random.default_rng(0)
    batches = [replay.sample(8, rng) for _ in range(600)]
    drawn = np.concatenate([batch.ids for batch in batches])
    expected = priorities**0.5 / (priorities**0.5).sum()
    np.testing.assert_allclose(np.bincount(drawn, minlength=len(ids)) / len(drawn), expected, atol=0.012)
    np.testing.assert_allclose(batches[0].probabilities, expected[batches[0].ids])


def test_new_traces_get_the_largest_priority_seen():
    config = ReplayConfig(trace_length=3, period=3, capacity=100, min_traces=1, priority_exponent=1.0)
    replay = make(config, num_envs=1)
    feed(replay, 10)
    replay.reprioritise(np.arange(3), np.array([4.0, 8.0, 1.0]))
    feed(replay, 3, seed=1)
    probabilities = {}
    for n in range(60):
        batch = replay.sample(4, np.random.default_rng(n))
        probabilities |= dict(zip(batch.ids.tolist(), batch.probabilities.tolist(), strict=True))
    assert probabilities == pytest.approx({0: 4 / 21, 1: 8 / 21, 2: 1 / 21, 3: 8 / 21})


def test_priorities_of_evicted_traces_are_ignored():
    replay = make()
    feed(replay, 20)
    batch = replay.sample(9, np.random.default_rng(0))
    feed(replay, 40, seed=1)
    before = replay.state_dict()["weights"]
    replay.reprioritise(batch.ids, np.full(9, 0.5))
    np.testing.assert_array_equal(replay.state_dict()["weights"], before)


def test_a_priority_belongs_to_its_own_trace_also_where_others_are_gone():
    config = ReplayConfig(trace_length=3, period=3, capacity=10, min_traces=1, priority_exponent=1.0)
    replay = make(config, num_envs=1)
    feed(replay, 3 * 30 + 1)
    before = replay.state_dict()
    gone = before["oldest"] - 2
    ids = np.array([gone, gone + 5, gone + 1, gone + 7])
    replay.reprioritise(ids, np.array([7.0, 2.0, 9.0, 3.0]))
    expected = before["weights"].copy()
    expected[[3, 5]] = [2.0, 3.0]
    np.testing.assert_array_equal(replay.state_dict()["weights"], expected)


def test_newest_traces_are_in_the_batch_once_and_newest_first():
    config = ReplayConfig(trace_length=3, period=3, capacity=100, min_traces=1, newest=2)
    replay = make(config, num_envs=1)
    feed(replay, 3 * 50 + 1)
    replay.reprioritise(np.arange(50), np.r_[1e6, np.full(49, 1e-6)])
    rng = np.random.default_rng(0)
    assert [replay.sample(3, rng).ids.tolist() for _ in range(3)] == [[49, 48, 0], [47, 46, 0], [45, 44, 0]]
    feed(replay, 3, seed=1)
    replay.reprioritise(np.array([50]), np.array([1e-6]))
    assert replay.sample(3, rng).ids.tolist() == [50, 43, 0]
    assert replay.sample(1, rng).ids.tolist() == [42]


def test_a_trace_that_was_drawn_by_priority_is_no_longer_new():
    config = ReplayConfig(trace_length=3, period=3, capacity=100, min_traces=1, newest=1)
    replay = make(config, num_envs=1)
    feed(replay, 3 * 3 + 1)
    replay.reprioritise(np.arange(3), np.array([1e-6, 1e6, 1e-6]))
    rng = np.random.default_rng(0)
    assert replay.sample(2, rng).ids.tolist() == [2, 1]
    assert replay.sample(2, rng).ids.tolist() == [0, 1]


def test_the_replay_ratio_counts_real_transitions_on_both_sides():
    config = ReplayConfig(trace_length=6, period=3, capacity=50, min_traces=3, replay_ratio=1.7)
    replay = make(config)
    rng = np.random.default_rng(0)
    data = np.random.default_rng(1)
    was_last = np.ones(4, bool)
    acted = learned = 0
    counting = False
    for _ in range(120):
        step = rows(data, 4, p_end=0.4, was_last=was_last)
        was_last = step.is_last
        if counting:
            acted += int((~step.is_first).sum())
        replay.add(step, states(data, 4))
        assert replay.due() == (counting and learned < 1.7 * acted)
        while replay.due():
            sequence = replay.sample(5, rng).sequence
            learned += sum(1 for t in range(6) for b in range(5) if not sequence.steps.is_last[t, b])
            assert replay.num_learned == learned
        counting = counting or replay.ready()
    assert 1.7 <= replay.metrics()["ratio"] < 1.7 + 30 / acted
    assert acted > 200


def test_the_byte_limit_evicts_the_oldest():
    free = make(ReplayConfig(trace_length=6, period=3, capacity=1000, min_traces=1))
    feed(free, 60)
    per_trace = free.num_bytes / free.num_traces
    limit = int(20 * per_trace)
    tight = make(ReplayConfig(trace_length=6, period=3, capacity=1000, min_traces=1, max_bytes=limit))
    for n in range(20):
        feed(tight, 3, seed=n)
        assert tight.num_bytes <= limit
    assert 8 <= tight.num_traces <= 20
    assert tight.sample(50, np.random.default_rng(0)).ids.min() > free.num_traces // 2


def test_a_byte_limit_too_small_to_learn_is_an_error():
    replay = make(ReplayConfig(trace_length=6, period=3, capacity=1000, min_traces=500, max_bytes=10_000))
    with pytest.raises(ValueError, match=r"max_bytes is 10000, which holds \d+ traces; learning needs 500"):
        feed(replay, 200)


def test_repetitive_frames_are_compressed_and_each_step_is_kept_once():
    config = ReplayConfig(trace_length=40, period=20, capacity=100, min_traces=1)
    replay = SequenceReplay(config, 1, ArraySpec((84, 84), "uint8"))
    rng = np.random.default_rng(0)
    frame = rng.integers(0, 256, (84, 84)).astype(np.uint8)
    for t in range(400):
        frame = frame.copy()
        frame[t % 84, 5] ^= 1
        step = rows(rng, 1)._replace(observation=frame[None])
        replay.add(step, ())
    raw = 400 * 84 * 84
    assert replay.num_bytes < raw / 5
    assert replay.metrics()["compression"] > 5
    np.testing.assert_array_equal(replay.sample(1, rng).sequence.steps.observation.shape, (41, 1, 84, 84))


def checkpoint(replay, folder, written):
    """Writes a checkpoint as a launcher does: segments that are on disk are not written again."""
    state = replay.state_dict()
    names = []
    for name, make_segment in replay.segments().items():
        if name not in written:
            store.save(folder / f"{name}.safetensors", make_segment(), kind="segment")
            written.add(name)
        names.append(name)
    store.save(folder / "state.safetensors", state, kind="replay")
    return names


def restore(folder, names, config=CONFIG):
    replay = make(config)
    segments = {name: store.load(folder / f"{name}.safetensors", kind="segment") for name in names}
    replay.load_state_dict(store.load(folder / "state.safetensors", kind="replay"), segments)
    return replay


def test_a_restored_replay_goes_on_bit_for_bit(tmp_path):
    config = ReplayConfig(trace_length=6, period=3, capacity=20, min_traces=2, replay_ratio=2.0, newest=1)
    replay, written = make(config), set()
    rng = np.random.default_rng(0)
    for n in range(12):
        feed(replay, 7, seed=n)
        batch = replay.sample(4, rng)
        replay.reprioritise(batch.ids, rng.random(4) * 5)
        names = checkpoint(replay, tmp_path, written)
    assert replay.num_traces == 20
    assert len(names) < len(written)  # old segments are no longer needed
    other = restore(tmp_path, names, config)
    for n in range(12, 24):
        first, second = (one.sample(6, np.random.default_rng(n)) for one in (replay, other))
        np.testing.assert_array_equal(first.ids, second.ids)
        np.testing.assert_array_equal(first.probabilities, second.probabilities)
        np.testing.assert_array_equal(
            first.sequence.steps.observation["image"], second.sequence.steps.observation["image"]
        )
        np.testing.assert_array_equal(
            first.sequence.steps.extras["mixture"], second.sequence.steps.extras["mixture"]
        )
        np.testing.assert_array_equal(first.sequence.state[0], second.sequence.state[0])
        for one in (replay, other):
            one.reprioritise(first.ids, 0.1 * np.arange(6) + 0.5)  # new traces get the largest of before
            feed(one, 5, seed=n)
        assert replay.due() == other.due()
        assert replay.metrics() == other.metrics()


def test_a_checkpoint_costs_what_is_new(tmp_path):
    replay = make(ReplayConfig(trace_length=6, period=3, capacity=1000, min_traces=2))
    feed(replay, 90)
    replay.state_dict()
    first = replay.segments()
    assert list(first) == ["0-120"]
    content = first["0-120"]()
    feed(replay, 3, seed=1)
    replay.state_dict()
    assert list(replay.segments()) == ["0-120", "120-124"]
    np.testing.assert_array_equal(replay.segments()["0-120"]()["blobs"], content["blobs"])
    assert len(replay.segments()["120-124"]()["serials"]) == 4
    replay.state_dict()
    assert list(replay.segments()) == ["0-120", "120-124"]


def test_an_empty_replay_is_restored_too(tmp_path):
    names = checkpoint(make(), tmp_path, set())
    other = restore(tmp_path, names)
    assert other.num_traces == 0
    feed(other, 10)
    assert other.num_traces == 8


def test_a_missing_segment_is_named(tmp_path):
    replay = make()
    feed(replay, 20)
    state = replay.state_dict()
    with pytest.raises(ValueError, match="segment 0-24 is missing"):
        make().load_state_dict(state, {})


def test_wrong_use_is_refused():
    for change, message in [
        ({"period": 4}, "trace_length is 6; expected a multiple of the period, 4"),
        ({"capacity": 0}, "capacity is 0"),
        ({"min_traces": 100}, "min_traces is 100; expected 1 to the capacity of 9"),
        ({"max_bytes": 0}, "max_bytes is 0"),
        ({"compression": "zip"}, "compression is 'zip'; expected one of 'lz4', 'none'"),
    ]:
        with pytest.raises(ValueError, match=message):
            make(ReplayConfig(**(vars(CONFIG) | change)))
    replay = make()
    with pytest.raises(ValueError, match="no complete trace"):
        replay.sample(1, np.random.default_rng(0))
    feed(replay, 10)
    with pytest.raises(ValueError, match=r"priorities are \[nan\]"):
        replay.reprioritise(np.array([0]), np.array([np.nan]))
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="the step has columns"):
        replay.add(rows(rng, 4)._replace(extras={}), states(rng, 4))


@pytest.mark.parametrize("num_steps", [2, 6, 40])
def test_all_observations_that_are_kept_can_be_looked_through(num_steps):
    replay = make()
    rng = np.random.default_rng(0)
    seen = []  # by environment
    for _ in range(num_steps):
        step = rows(rng, 4)
        replay.add(step, states(rng, 4))
        seen.append(step.observation["sensor"])
    seen = np.stack(seen, axis=1)  # [num_envs, steps, 5]
    parts = [replay.part(number) for number in range(replay.num_parts())]
    assert all(part["image"].shape == (len(part["sensor"]), 4, 3, 2) for part in parts)
    found = np.concatenate([part["sensor"] for part in parts])
    num_open = num_steps % CONFIG.period
    num_kept = len(replay._chunks) * CONFIG.period + 4 * num_open
    assert len(found) == num_kept <= 4 * num_steps
    assert num_steps > 6 or num_kept == 4 * num_steps
    newest = {row.tobytes() for row in seen[:, -min(num_steps, 6) :].reshape(-1, 5)}
    assert newest <= {row.tobytes() for row in found} <= {row.tobytes() for row in seen.reshape(-1, 5)}
