"""The loop: what it counts, and that neither overlap nor a checkpoint changes it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from softcount import store
from softcount.config import RunConfig, with_fields
from softcount.launch.build import build
from softcount.launch.local import LocalLoop
from softcount.presets import LAPTOP, suited
from softcount.runs.run import make_loop

TINY = replace(
    LAPTOP,
    env_options={"size": 7, "layout": 1},
    num_envs=4,
    evaluation_episodes=2,
    meme=replace(
        LAPTOP.meme,
        network=replace(LAPTOP.meme.network, core_size=8, head_size=8),
        target_update_period=3,
        batch_size=3,
        replay=replace(
            LAPTOP.meme.replay, trace_length=6, period=3, capacity=12, min_traces=4, replay_ratio=2.0
        ),
    ),
    recode=replace(
        LAPTOP.recode,
        memory=replace(
            LAPTOP.recode.memory, size=30, warmup_atoms=10, neighbours=3, insertion_probability=0.9
        ),
    ),
)


def loop_of(config: RunConfig, overlap: bool) -> LocalLoop:
    return make_loop(replace(config, overlap=overlap))


def leaves(state, path=""):
    if isinstance(state, dict):
        for key, value in state.items():
            yield from leaves(value, f"{path}/{key}")
    elif isinstance(state, list | tuple):
        for i, value in enumerate(state):
            yield from leaves(value, f"{path}/{i}")
    else:
        yield path, state


def assert_same(first, second):
    first, second = dict(leaves(first)), dict(leaves(second))
    assert first.keys() == second.keys()
    for path in first:
        np.testing.assert_array_equal(first[path], second[path], err_msg=path)


def everything(loop):
    state = loop.state_dict()
    return {**state, "segments": {name: make() for name, make in loop.segments().items()}}


def content(loop):
    """All state, with the replay's chunks read through its segments cut at the same places."""
    state = everything(loop)
    del state["segments"], state["replay"]["replay"]["cuts"]
    return state


@pytest.mark.parametrize(
    "name", ["MEME-RECODE-AP", "MEME-NGU-AP", "MEME-RND", "MEME-COUNT", "MEME", "MEME-BYOL-Explore"]
)
def test_overlap_changes_the_speed_and_nothing_else(name):
    is_recode = name == "MEME-RECODE-AP"
    changes = {"agent": name, "meme.relabel": is_recode, "recode.reembed_every": 4 * is_recode}
    config = with_fields(TINY, changes)
    loops = [loop_of(config, overlap) for overlap in (False, True)]
    for loop in loops:
        for _ in range(60):
            loop.step()
    assert loops[0].num_updates > 10
    assert_same(everything(loops[0]), everything(loops[1]))


@pytest.mark.parametrize("name", ["MEME-RECODE-AP", "MEME-EMM-AP", "MEME-RNDonAP", "MEME-RECODE-CASM"])
def test_a_restored_loop_continues_as_if_nothing_had_happened(name, tmp_path):
    is_recode = name == "MEME-RECODE-AP"
    changes = {"agent": name, "meme.relabel": is_recode, "recode.reembed_every": 4 * is_recode}
    config = with_fields(TINY, changes)
    loop = loop_of(config, True)
    for _ in range(50):
        loop.step()
    state = loop.state_dict()
    for part in state:
        store.save(tmp_path / part, state[part], kind=part)
    for segment, make in loop.segments().items():
        store.save(tmp_path / f"segment-{segment}", make(), kind="segment")
    names = list(loop.segments())

    twin = loop_of(config, True)
    for _ in range(7):  # a used loop must forget what it was
        twin.step()
    twin.load_state_dict(
        {part: store.load(tmp_path / part, kind=part) for part in state},
        {segment: store.load(tmp_path / f"segment-{segment}", kind="segment") for segment in names},
    )
    for _ in range(50):
        loop.step()
        twin.step()
    assert loop.num_updates > 20
    assert_same(everything(loop), everything(twin))


def test_what_depends_on_the_episode_cannot_be_relabelled():
    with pytest.raises(ValueError, match="depends on the episode and cannot be asked later"):
        build(replace(TINY, agent="MEME-NGU-AP"))


def test_steps_are_real_transitions():
    loop = loop_of(replace(TINY, agent="MEME"), False)
    rows = 0
    for _ in range(40):
        rows += int((~loop.roles.actor.timestep.is_first).sum())
        loop.step()
    assert loop.num_steps == rows < 40 * 4


def test_the_replay_ratio_is_kept():
    loop = loop_of(replace(TINY, agent="MEME"), False)
    for _ in range(300):
        loop.step()
    assert loop.roles.replay.metrics()["ratio"] == pytest.approx(2.0, rel=0.05)


def test_relabelled_targets_are_todays_scores_and_withheld_rows_stay_unpaid():
    loop = loop_of(replace(TINY, terminal_observations="skipped"), False)
    for _ in range(60):
        loop.step()
    sample = loop.roles.replay.sample()
    steps = sample.sequence.steps
    targets = loop._relabelled(sample)[0]
    embedding = loop.roles.inference.embed(steps.observation.reshape(-1, 7, 7, 3)).embedding
    expected = loop.roles.memory.bonus.memories()[""].score(embedding).reshape(targets.shape)
    is_paid = ~steps.is_first & ~steps.is_terminal
    assert is_paid.any()
    assert steps.is_terminal.any()
    np.testing.assert_allclose(targets[is_paid], expected[is_paid], rtol=1e-6)
    assert (targets[~is_paid] == 0).all()


def test_the_network_sees_the_intrinsic_reward_one_step_late():
    loop = loop_of(TINY, False)
    actor = loop.roles.actor
    before = None
    for _ in range(80):
        request = actor.request()
        if before is not None:
            expected = np.where(request.is_first, 0.0, before)
            np.testing.assert_array_equal(request.prev_intrinsic, expected.astype(np.float32))
        loop.step()
        before = np.asarray(loop.roles.replay.replay._columns["intrinsic"])[
            np.arange(4), (loop.roles.replay.replay._position - 1) % TINY.meme.replay.period
        ].copy()
    assert before.any()


def test_metrics_of_the_pending_update_survive(tmp_path):
    loop = loop_of(TINY, True)
    while loop.pending is None:
        loop.step()
    state = loop.state_dict()["loop"]["pending"]
    assert "losses/loss" in state["names"]
    assert json.dumps(state["values"])
    restored = loop_of(TINY, False)
    restored._load_counters(loop.state_dict()["loop"])
    assert restored.pending.result().metrics == dict(zip(state["names"], state["values"]))


@pytest.mark.parametrize("overlap", [False, True])
def test_the_learners_time_is_known_also_where_it_has_no_thread(overlap):
    loop = loop_of(TINY, overlap)
    while loop.num_updates < 3:
        loop.step()
    loop.state_dict()  # waits for the one under way
    assert loop.learner_seconds > 0
    if not overlap:
        assert loop.seconds["learner_wait"] >= loop.learner_seconds


def shown_until_the_first_update(loop):
    """Steps a loop to its first update; returns every observation up to there, `[N, ...]`."""
    seen = []
    while loop.pending is None:
        seen.append(loop.roles.actor.timestep.observation.copy())
        loop.step()
    return np.concatenate(seen)


@pytest.mark.parametrize("name", ["MEME-RND", "MEME-NGU-AP", "MEME-RNDonAP"])
def test_until_the_first_update_surprise_is_neither_paid_nor_counted(name):
    loop = loop_of(suited(TINY, name), False)
    before = dict(leaves(loop.roles.memory.state_dict()))
    shown_until_the_first_update(loop)
    after = dict(leaves(loop.roles.memory.state_dict()))
    assert before.keys() == after.keys()
    for path in before:
        np.testing.assert_array_equal(before[path], after[path], err_msg=path)
    assert not any(loop.roles.replay.sample().sequence.steps.intrinsic.ravel())
    while loop.num_updates < 2:
        loop.step()
    assert loop.roles.memory.metrics()["reward"] >= 0  # it observes now
    assert dict(leaves(loop.roles.memory.state_dict())).keys() != before.keys()


@pytest.mark.parametrize("name", ["MEME-RND", "MEME-NGU-AP"])
def test_observation_statistics_begin_with_all_that_the_replay_holds(name):
    loop = loop_of(
        replace(suited(TINY, name), env_options={"size": 7, "layout": 1, "observation": "rgb"}), False
    )
    seen = shown_until_the_first_update(loop).astype(np.float64)
    module = loop.roles.learner.trainer.representation
    normaliser = (module.surprising if name == "MEME-NGU-AP" else module).normaliser
    assert int(normaliser.count) == len(seen) > 3 * TINY.meme.batch_size
    np.testing.assert_allclose(normaliser.mean, seen.mean(0), rtol=1e-12)
    np.testing.assert_allclose(normaliser.square, ((seen - seen.mean(0)) ** 2).sum(0), rtol=1e-9, atol=1e-9)
    while loop.num_updates < 2:
        loop.step()
    assert int(normaliser.count) > len(seen)  # goes on with each batch


def test_a_run_reports_the_same_when_resumed_before_a_step_in_which_all_copies_died():
    loop = loop_of(TINY, False)
    for _ in range(30):
        loop.step()
    twin = loop_of(TINY, False)
    state = loop.state_dict()
    segments = {name: make() for name, make in loop.segments().items()}
    twin.load_state_dict(state, segments)
    assert loop.roles.memory.metrics() == twin.roles.memory.metrics()
    assert {"soft_count", "reward", "far_fraction"} <= twin.roles.memory.metrics().keys()


def test_deaths_are_paid_in_learning_as_the_run_says():
    config = with_fields(TINY, {"agent": "MEME-BYOL-Explore", "meme.relabel": False})
    for rule in ("paid", "unpaid", "skipped"):
        assert build(replace(config, terminal_observations=rule)).learner.terminal_observations == rule
