"""What holds for every stream and config: totals, bounds, batches, limits of parameters, very old counts."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.embeddings import far_away, gauss, grid, moving, repeats

from softcount import RecodeConfig, RecodeMemory


def configs(**fixed):
    def build(**drawn):
        return RecodeConfig(**(drawn | fixed))

    return st.builds(
        build,
        size=st.integers(2, 40),
        dim=st.integers(1, 4),
        neighbours=st.integers(1, 8),
        count_discount=st.sampled_from([1.0, 0.999, 0.9]),
        embeddings_per_step=st.sampled_from([1, 64]),
        insertion_probability=st.sampled_from([0.0, 0.05, 0.5, 1.0]),
        far_tolerance=st.sampled_from([0.0, 0.2, 1.0]),
        d2_step=st.sampled_from([1e-4, 0.1, 0.9999, 1.0]),
        removal=st.sampled_from(["inverse_square", "inverse", "smallest"]),
        warmup_atoms=st.integers(1, 30),
    )


STREAMS = st.sampled_from([gauss, moving, repeats, grid, far_away])
SEEDS = st.integers(0, 2**32 - 1)
quick = settings(max_examples=25, deadline=None)


@quick
@given(config=configs(), stream=STREAMS, seed=SEEDS)
def test_total_count_is_discounted_then_grows_by_one(engine, config, stream, seed):
    memory = RecodeMemory(config, seed=seed, engine=engine)
    total = 0.0
    for e in stream(np.random.default_rng(seed), 150, config.dim):
        memory.observe(e)
        total = config.embedding_discount * total + 1.0
        assert memory.counts.sum() == pytest.approx(total, rel=1e-10)


def test_total_count_approaches_its_limit(engine):
    config = RecodeConfig(size=50, dim=2, count_discount=0.99, embeddings_per_step=1)
    memory = RecodeMemory(config, engine=engine)
    memory.observe(gauss(np.random.default_rng(0), 3000, 2))
    assert memory.counts.sum() == pytest.approx((1 - 0.99**3000) / (1 - 0.99), rel=1e-9)


@quick
@given(config=configs(), stream=STREAMS, seed=SEEDS)
def test_atoms_stay_inside_the_box_of_what_was_seen(engine, config, stream, seed):
    embeddings = stream(np.random.default_rng(seed), 200, config.dim).astype(np.float32)
    memory = RecodeMemory(config, seed=seed, engine=engine)
    memory.observe(embeddings)
    # Every projection of a convex combination lies between the extremes of the projections.
    directions = np.random.default_rng(0).standard_normal((config.dim, 8))
    seen, kept = embeddings @ directions, memory.atoms @ directions
    slack = 1e-5 * np.abs(seen).max()
    assert (kept >= seen.min(0) - slack).all()
    assert (kept <= seen.max(0) + slack).all()


@quick
@given(
    config=configs(), stream=STREAMS, seed=SEEDS, cuts=st.lists(st.integers(1, 60), min_size=1, max_size=6)
)
def test_how_a_stream_is_cut_into_batches_does_not_matter(engine, config, stream, seed, cuts):
    embeddings = stream(np.random.default_rng(seed), 150, config.dim)
    whole = RecodeMemory(config, seed=seed, engine=engine)
    split = RecodeMemory(config, seed=seed, engine=engine)
    expected = whole.observe(embeddings)
    sizes, start, parts = itertools.cycle(cuts), 0, []
    while start < 150:
        size = next(sizes)
        parts.append(split.observe(embeddings[start : start + size]))
        start += size
    np.testing.assert_array_equal(expected, np.concatenate(parts))
    assert_same_state(whole.state_dict(), split.state_dict())


@quick
@given(config=configs(), stream=STREAMS, seed=SEEDS)
def test_scoring_changes_nothing_and_is_what_observing_pays(engine, config, stream, seed):
    embeddings = stream(np.random.default_rng(seed), 100, config.dim)
    memory = RecodeMemory(config, seed=seed, engine=engine)
    memory.observe(embeddings[:60])
    before = memory.state_dict()
    scores = memory.score(embeddings[60:])
    assert_same_state(before, memory.state_dict())
    assert memory.observe(embeddings[60]) == scores[0]


@quick
@given(config=configs(), stream=STREAMS, seed=SEEDS)
def test_rewards_stay_within_their_bounds(engine, config, stream, seed):
    memory = RecodeMemory(config, seed=seed, engine=engine)
    for start in range(0, 120, 30):
        most = len(memory) + memory.counts.sum() + 30 * 2  # N ≤ Σ (1 + c), a batch adds at most 2 each
        rewards = memory.observe(stream(np.random.default_rng([seed, start]), 30, config.dim))
        n0 = config.reward_constant
        assert (rewards <= 1 / n0).all()
        assert (rewards >= 1 / (math.sqrt(most) + n0) * (1 - 1e-12)).all()


def assert_same_state(one, other):
    assert one.keys() == other.keys()
    for name in one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def frozen_bandwidth(memory, d2):
    """Loads the memory's own state back with a bandwidth that hardly moves any more."""
    memory.load_state_dict(memory.state_dict() | {"d2_biased": d2, "d2_weight": 1.0})


@pytest.mark.parametrize("seed", range(5))
def test_seeing_the_same_embedding_again_never_pays_more(engine, seed):
    """The paper's reason for the ball: with d² and discount out of the way, r falls strictly."""
    config = RecodeConfig(
        size=50, dim=2, count_discount=1.0, d2_step=1e-300, insertion_probability=0.0, warmup_atoms=50
    )
    memory = RecodeMemory(config, engine=engine)
    rng = np.random.default_rng(seed)
    memory.observe(rng.random((50, 2)))
    frozen_bandwidth(memory, 0.05)
    e = rng.random(2)
    rewards = [float(memory.observe(e)) for _ in range(30)]
    assert rewards[0] < 100.0
    assert all(later < earlier for earlier, later in itertools.pairwise(rewards))


def test_without_insertion_the_atoms_of_the_warm_up_stay_the_only_ones(engine):
    config = RecodeConfig(size=50, dim=2, insertion_probability=0.0, warmup_atoms=20)
    memory = RecodeMemory(config, engine=engine)
    _, observed = memory.observe(gauss(np.random.default_rng(0), 500, 2), details=True)
    assert observed.is_inserted.tolist() == [True] * 20 + [False] * 480
    assert len(memory) == 20


def test_with_certain_insertion_everything_but_duplicates_becomes_an_atom(engine):
    config = RecodeConfig(size=30, dim=2, insertion_probability=1.0, far_tolerance=0.0, warmup_atoms=5)
    memory = RecodeMemory(config, engine=engine)
    rng = np.random.default_rng(0)
    fresh = gauss(rng, 200, 2)
    embeddings = np.repeat(fresh, 2, axis=0)  # each followed by its repeat
    _, observed = memory.observe(embeddings, details=True)
    assert observed.is_inserted[5:].tolist() == [i % 2 == 0 for i in range(5, 400)]


def test_without_discount_and_insertion_atoms_are_running_means(engine):
    config = RecodeConfig(
        size=4, dim=3, count_discount=1.0, far_tolerance=1e30, insertion_probability=1.0, warmup_atoms=4
    )
    memory = RecodeMemory(config, engine=engine)
    embeddings = gauss(np.random.default_rng(0), 400, 3).astype(np.float32)
    _, observed = memory.observe(embeddings, details=True)
    for slot in range(4):
        own = embeddings[observed.slot == slot].astype(np.float64)
        np.testing.assert_allclose(memory.atoms[slot], own.mean(0), atol=3e-6)
        assert memory.counts[slot] == pytest.approx(len(own), rel=1e-12)


def test_an_empty_memory_pays_the_most_and_repeats_count_while_the_bandwidth_is_zero(engine):
    memory = RecodeMemory(RecodeConfig(size=10, dim=2), engine=engine)
    assert memory.score(np.zeros(2)) == 100.0
    g = memory.config.embedding_discount
    rewards = memory.observe(np.zeros((3, 2)))
    expected = [100.0, 1 / (math.sqrt(2) + 0.01), 1 / (math.sqrt(2 + 1 + g) + 0.01)]
    np.testing.assert_allclose(rewards, expected, rtol=1e-12)
    assert memory.d2_ema == 0.0
    assert memory.score([1e-20, 0.0]) == 100.0


def test_a_bandwidth_that_decays_below_every_distance_acts_as_zero(engine):
    """With τ read literally, 80 repeats take d² from 1 to 10⁻³²⁰, where ε d² would be 0 and K = 0/0."""
    config = RecodeConfig(
        size=10, dim=1, neighbours=1, d2_step=0.9999, warmup_atoms=2, insertion_probability=0.0
    )
    memory = RecodeMemory(config, engine=engine)
    memory.observe([[0.0], [1.0]])
    rewards = memory.observe(np.zeros((200, 1)))
    assert np.isfinite(rewards).all()
    expected = 1 / (math.sqrt(1 + memory.counts[0]) + 0.01)
    assert memory.score([0.0]) == pytest.approx(expected, rel=1e-12)
    assert memory.score([1e-40]) == 100.0


# A million discounts


def test_counts_of_untouched_atoms_never_leave_floating_point(engine):
    """Two clusters; one is left alone for a million embeddings, in which γ = 0.5 takes it to 2^−10⁶."""
    config = RecodeConfig(
        size=4, dim=1, count_discount=0.5, embeddings_per_step=1, insertion_probability=0.0, warmup_atoms=2
    )
    memory = RecodeMemory(config, engine=engine)
    memory.observe([[0.0], [100.0]])
    state = memory.state_dict()
    million = 1_000_000
    state["log_counts"] = np.array([0.0, -million * math.log(0.5)]) - state["log_scale"]
    state["log_scale"] += million * math.log(0.5)  # as if 10⁶ embeddings had visited the second atom
    memory.load_state_dict(state)
    np.testing.assert_allclose(memory.log_counts, [million * math.log(0.5), 0.0], rtol=1e-9, atol=1e-6)
    memory.observe(np.full((2000, 1), 100.0))
    assert memory.log_counts[0] == pytest.approx((million + 2000) * math.log(0.5), rel=1e-9)
    assert memory.counts[1] == pytest.approx(2.0, rel=1e-6)
    assert memory.observe([0.0]) < 100.0  # the forgotten atom still is a place: weight 1 + 0
    assert memory.counts[0] == 1.0
    assert np.isfinite(memory.score([[0.0], [50.0], [100.0]])).all()


def test_folding_the_scale_into_the_counts_changes_no_value(engine):
    config = RecodeConfig(
        size=20, dim=2, count_discount=0.9, embeddings_per_step=1, insertion_probability=0.5
    )
    embeddings = gauss(np.random.default_rng(0), 300, 2)
    plain = RecodeMemory(config, seed=3, engine=engine)
    plain.observe(embeddings[:100])
    state = plain.state_dict()
    shifted = RecodeMemory(config, seed=3, engine=engine)
    shifted.load_state_dict(
        state | {"log_counts": state["log_counts"] + 990.0, "log_scale": state["log_scale"] - 990.0}
    )
    _, one = plain.observe(embeddings[100:], details=True)
    _, other = shifted.observe(embeddings[100:], details=True)
    assert one.slot.tolist() == other.slot.tolist()
    np.testing.assert_allclose(one.reward, other.reward, rtol=1e-10)
    np.testing.assert_allclose(plain.log_counts, shifted.log_counts, atol=1e-10)
