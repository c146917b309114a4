"""The toy distributions and the benchmark streams are what they are said to be."""

import itertools

import numpy as np
import pytest

from experiments.memory import streams
from softcount import RecodeConfig, RecodeMemory

NAMES = ["walk4", "walk6", "rooms", "drift", "gauss"]


def take(stream, num):
    return np.stack(list(itertools.islice(stream, num)))


def test_removal_toy_fills_a_square_of_side_t_then_of_side_100():
    batches = take(streams.removal_toy(seed=3), 150)  # [T, 64, 2]
    sides = np.minimum(100.0, np.arange(1, 151))
    assert batches.shape == (150, 64, 2)
    assert batches.dtype == np.float32
    relative = batches / sides[:, None, None]
    assert (relative >= 0).all()
    assert (relative <= 1).all()
    assert relative.max(axis=(1, 2)).min() > 0.85  # 128 uniforms: below 0.85 with chance 1e-9
    assert relative.mean() == pytest.approx(0.5, abs=0.01)
    assert relative.std() == pytest.approx(12**-0.5, abs=0.01)


def test_discount_toy_runs_from_side_1_to_side_11():
    batches = list(streams.discount_toy())
    assert len(batches) == 101
    relative = np.stack(batches) / (1 + np.sqrt(np.arange(101)))[:, None, None]
    assert (relative >= 0).all()
    assert (relative <= 1).all()
    assert relative.max(axis=(1, 2)).min() > 0.85
    assert relative.mean() == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_streams_are_seeded_float32_batches(name):
    def make(seed):
        return streams.make_stream(name, dim=5, num_walkers=7, seed=seed)

    first = take(make(1), 20)
    assert first.shape == (20, 7, 5)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(first, take(make(1), 20))
    assert (first != take(make(2), 20)).all()


def test_walkers_take_small_steps_inside_the_unit_cube_and_restart_staggered():
    walk = streams.Walk(4, 8, seed=0)
    before, jumps, small = walk.positions.copy(), 0, []
    for _ in range(1000):
        next(walk)
        step = walk.positions - before
        is_jump = np.linalg.norm(step, axis=1) > 0.2  # ten standard deviations of a step
        jumps += int(is_jump.sum())
        small.append(step[~is_jump])
        before = walk.positions.copy()
        assert (walk.positions >= 0).all()
        assert (walk.positions <= 1).all()
    assert (
        60 <= jumps <= 64
    )  # each of 64 walkers restarts once in 1000 steps, hardly ever next to where it was
    assert np.concatenate(small).std() == pytest.approx(0.02, rel=0.02)
    assert len(np.unique(walk.clocks)) == 64


def test_a_walk_is_its_map_plus_noise():
    walk = streams.Walk(2, 3, seed=0, map_seed=5)
    batch = next(walk)
    world = np.random.default_rng(5)
    into, bias = 3 * world.standard_normal((2, 64)), 1.5 * world.standard_normal(64)
    out = world.standard_normal((64, 3)) / 8
    clean = np.array([[np.tanh(x @ into + bias) @ out[:, j] for j in range(3)] for x in walk.positions])
    assert np.std(batch - clean) == pytest.approx(0.01, rel=0.15)


@pytest.mark.parametrize("name", NAMES)
def test_sampling_at_large_has_the_distribution_of_the_stream(name):
    stream = streams.make_stream(name, dim=3, num_walkers=2000, seed=0)
    sample = stream.sample(50_000, np.random.default_rng(9))
    seen = next(stream)
    assert sample.dtype == np.float32
    np.testing.assert_allclose(seen.mean(0), sample.mean(0), atol=5 * sample.std() / 2000**0.5)
    np.testing.assert_allclose(np.cov(seen.T), np.cov(sample.T), atol=0.15 * sample.var())


def test_rooms_are_48_and_doors_lead_to_neighbours():
    rooms = streams.Rooms(4, seed=0)
    moves, before = [], rooms.rooms.copy()
    for _ in range(900):
        next(rooms)
        is_running = rooms.walk.clocks > 0
        moves.append((rooms.rooms - before)[is_running] % 48)
        before = rooms.rooms.copy()
    counts = np.bincount(np.concatenate(moves), minlength=48)
    assert counts[[0, 1, 47]].sum() == counts.sum()
    assert counts[1] + counts[47] == pytest.approx(0.005 * counts.sum(), rel=0.25)
    assert rooms.offsets.shape == (48, 4)


def test_a_drifting_map_turns_slowly_and_keeps_its_scale():
    drift = streams.Drift(4, 16, num_walkers=64, period=640 * 4)
    start = drift.walk.out.copy()
    for _ in range(640 // 64):
        next(drift)
    rng = np.random.default_rng(0)
    assert drift.sample(2000, rng).std() == pytest.approx(
        streams.Walk(4, 16).sample(2000, rng).std(), rel=0.15
    )
    assert drift.num_yielded == 640  # a quarter of a turn: nothing of the first map is left
    overlap = (start * drift.walk.out).sum() / (start**2).sum()
    assert abs(overlap) < 0.15
    np.testing.assert_allclose(drift.walk.out, drift.ends[1], atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_filled_state_loads_and_looks_like_a_steady_state(name):
    config = RecodeConfig(size=3000, dim=6)
    stream = streams.make_stream(name, dim=6)
    state = streams.filled_state(config, stream, seed=1)
    memory = RecodeMemory(config, engine="numpy")
    memory.load_state_dict(state)
    g = config.embedding_discount
    assert len(memory) == 3000
    assert memory.counts.sum() == pytest.approx(3000 / (1 - 3000 * np.log(g)), rel=0.05)
    queries = stream.sample(200, np.random.default_rng(5)).astype(float)
    d2 = ((queries[:, None] - memory.atoms[None].astype(float)) ** 2).sum(-1)
    assert memory.d2_ema == pytest.approx(np.sort(d2, axis=1)[:, :20].mean(), rel=0.25)
    assert (memory.observe(next(stream)) > 0).all()


def test_an_unknown_stream_is_named():
    with pytest.raises(ValueError, match=r"'walk0'.*'rooms'"):
        streams.make_stream("walk0")
