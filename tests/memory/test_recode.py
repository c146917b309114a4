"""The engines make the decisions of a slow transcription of Algorithm 1, and keep its invariants."""

import dataclasses
import functools
import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.recode import Recode, cluster, float32

from softcount import RecodeConfig, RecodeMemory
from softcount.memory.kernels import k_smallest, kernel, squared_distances
from softcount.memory.removal import RULES


def gauss(rng, num, dim):
    return rng.standard_normal((num, dim))


def moving(rng, num, dim):
    return rng.random((num, dim)) * np.linspace(1, 10, num)[:, None]


def repeats(rng, num, dim):
    """Mostly exact repeats of a few dozen places, as from a deterministic environment."""
    return rng.standard_normal((40, dim))[rng.integers(40, size=num)]


def grid(rng, num, dim):
    """Whole numbers: equal distances everywhere."""
    return rng.integers(-3, 4, (num, dim)).astype(float)


def far_away(rng, num, dim):
    """A cloud whose distance from the origin is a thousand times its inner distances."""
    return 1000.0 + rng.standard_normal((num, dim))


def one_place(rng, num, dim):
    return np.full((num, dim), 0.1)


BASE = {
    "size": 60,
    "dim": 3,
    "neighbours": 5,
    "warmup_atoms": 20,
    "insertion_probability": 0.3,
    "d2_step": 1e-2,
}
CASES = {
    "paper": (gauss, {"dim": 8, "size": 120, "neighbours": 20, "warmup_atoms": 100, "d2_step": 1e-4,
                      "insertion_probability": 0.05, "count_discount": 0.999}, 1500, 64),
    "dm_hard_8": (moving, {"dim": 8, "neighbours": 20, "insertion_probability": 0.2, "count_discount": 0.997,
                           "d2_step": 1e-4}, 1500, 64),
    "letter": (moving, {"embeddings_per_step": 1}, 2000, 1),
    "literal_tau": (gauss, {"d2_step": 0.9999}, 2000, 16),
    "no_discount": (moving, {"count_discount": 1.0}, 2000, 256),
    "strong_discount": (moving, {"count_discount": 0.9, "embeddings_per_step": 1}, 2000, 7),
    "inverse": (moving, {"removal": "inverse"}, 2000, 32),
    "smallest": (moving, {"removal": "smallest"}, 2000, 32),
    "smallest_no_discount": (gauss, {"removal": "smallest", "count_discount": 1.0}, 2000, 32),
    "repeats": (repeats, {}, 2000, 64),
    "repeats_small": (repeats, {"size": 20, "insertion_probability": 1.0, "far_tolerance": 0.0}, 1500, 64),
    "grid": (grid, {"dim": 2}, 2000, 64),
    "grid_inverse": (grid, {"removal": "inverse", "insertion_probability": 1.0}, 2000, 16),
    "grid_smallest": (grid, {"removal": "smallest", "count_discount": 1.0}, 2000, 16),
    "far_away": (far_away, {"dim": 4}, 2000, 64),
    "far_away_letter": (far_away, {"dim": 2, "d2_step": 0.9999, "embeddings_per_step": 1}, 2000, 5),
    "one_place": (one_place, {}, 300, 64),
    "never_fills": (gauss, {"size": 300, "insertion_probability": 0.01}, 600, 33),
    "size_1": (gauss, {"size": 1, "insertion_probability": 0.5}, 500, 9),
    "size_2": (gauss, {"size": 2, "insertion_probability": 0.5, "far_tolerance": 0.01}, 500, 9),
    "one_dimension": (moving, {"dim": 1, "neighbours": 1}, 1500, 256),
    "always_insert": (gauss, {"insertion_probability": 1.0, "far_tolerance": 0.0}, 1500, 64),
    "wide_kernel": (gauss, {"kernel_epsilon": 0.1, "reward_constant": 1.0, "far_tolerance": 0.5}, 1500, 64),
}  # fmt: skip


@functools.cache
def ask_oracle(stream, config, num_steps, seed):
    """Runs the oracle over a stream: the stream, what happened to each row, the oracle, and five scores."""
    embeddings = stream(np.random.default_rng([seed, 7]), num_steps, config.dim)
    oracle = Recode(
        **{f.name: getattr(config, f.name) for f in dataclasses.fields(config) if f.name != "dim"}
    )
    uniforms = np.random.default_rng(seed).random((num_steps, 2)).tolist()
    happened = [oracle.observe(e, u, v) for e, (u, v) in zip(embeddings.tolist(), uniforms, strict=True)]
    queries = stream(np.random.default_rng([seed, 8]), 5, config.dim)
    return embeddings, happened, oracle, queries, [oracle.score(e) for e in queries.tolist()]


def check_against_oracle(engine, stream, fields, num_steps, batch, seed, *, max_ulp=0, rtol=1e-9):
    """Compares every decision exactly, values to `rtol`, atoms to `max_ulp` units of float32."""
    config = RecodeConfig(**(BASE | fields))
    embeddings, happened, oracle, queries, scores = ask_oracle(stream, config, num_steps, seed)
    memory = RecodeMemory(config, seed=seed, engine=engine)
    for start in range(0, num_steps, batch):
        rows = happened[start : start + batch]
        rewards, observed = memory.observe(embeddings[start : start + batch], details=True)
        for name in ("nearest", "is_far", "is_inserted", "slot", "merged_into"):
            expected = [getattr(row, name) for row in rows]
            assert getattr(observed, name).tolist() == expected, f"{name} in rows from {start}"
        for name in ("reward", "soft_count", "d2_nearest"):
            expected = [getattr(row, name) for row in rows]
            np.testing.assert_allclose(getattr(observed, name), expected, rtol=rtol, err_msg=name)
        np.testing.assert_array_equal(rewards, observed.reward)
        assert memory.d2_ema == pytest.approx(rows[-1].d2_ema, rel=rtol)
    np.testing.assert_array_max_ulp(memory.atoms, np.array(oracle.atoms, np.float32), maxulp=max_ulp)
    np.testing.assert_allclose(memory.log_counts, oracle.log_counts, rtol=1e-9, atol=1e-9)
    assert memory.ages.tolist() == [num_steps - birth for birth in oracle.births]
    np.testing.assert_allclose(memory.score(queries), scores, rtol=rtol)
    return sum(row.is_inserted for row in happened)


@pytest.mark.parametrize("case", CASES)
def test_every_decision_and_value_is_that_of_the_oracle(engine, case):
    stream, fields, num_steps, batch = CASES[case]
    num_inserted = check_against_oracle(engine, stream, fields, num_steps, batch, seed=1)
    if case not in ("one_place", "never_fills", "repeats", "size_2"):
        assert num_inserted > BASE["size"] / 2, "the case should see atoms replaced"


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 8))
@pytest.mark.parametrize("case", CASES)
def test_every_decision_is_that_of_the_oracle_over_many_streams(engine, case, seed):
    stream, fields, num_steps, batch = CASES[case]
    # In half a million moves a few fall within 1e-8 ulp of the middle between two float32, where the last bit
    # of a count decides the rounding; hence one ulp, and the 1e-6 that follows from it.
    check_against_oracle(
        engine, stream, {"size": 250} | fields, 2 * num_steps, batch, seed, max_ulp=1, rtol=1e-6
    )


@pytest.mark.parametrize("removal", ["inverse_square", "inverse", "smallest"])
@pytest.mark.parametrize("batch", [1, 2, 63, 256])
def test_removal_rules_agree_with_the_oracle_for_any_batch(engine, removal, batch):
    check_against_oracle(engine, moving, {"size": 30, "removal": removal}, 512, batch, seed=batch)


def test_the_streaming_clustering_of_algorithm_2_is_this_memory(engine):
    rng = np.random.default_rng(0)
    embeddings = moving(rng, 1500, 2).astype(np.float32)
    config = RecodeConfig(
        size=40, dim=2, neighbours=4, count_discount=0.99, embeddings_per_step=1, warmup_atoms=10,
        insertion_probability=0.4, far_tolerance=0.3, d2_step=0.02,
    )  # fmt: skip
    memory = RecodeMemory(config, seed=5, engine=engine)
    memory.observe(embeddings)
    centres, counts = cluster(
        embeddings.tolist(), np.random.default_rng(5).random((1500, 2)).tolist(),
        size=40, k=4, discount=0.99, kappa=0.3, eta=0.4, tau_new=0.02, warmup=10,
    )  # fmt: skip
    np.testing.assert_array_equal(memory.atoms, np.array(centres, np.float32))
    np.testing.assert_allclose(memory.counts, counts, rtol=1e-9)


# Invariants


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


# Removal


@pytest.mark.parametrize(("removal", "power"), [("inverse_square", 2), ("inverse", 1)])
@pytest.mark.parametrize("shift", [0.0, -1e6])
def test_victims_are_drawn_with_the_exact_probabilities(removal, power, shift):
    counts = np.array([1.0, 2.0, 0.5, 4.0, 1.0, 3.0])
    rng = np.random.default_rng(0)
    draws = np.bincount([RULES[removal](np.log(counts) + shift, u) for u in rng.random(20_000)], minlength=6)
    expected = 20_000 * counts**-power / (counts**-power).sum()
    chi2 = ((draws - expected) ** 2 / expected).sum()
    assert chi2 < 20.5  # 5 degrees of freedom: exceeded with chance 0.001


def test_victims_are_drawn_with_the_exact_probabilities_by_the_whole_memory(engine):
    """The same through `observe`, from one full state again and again, at counts no float can hold."""
    config = RecodeConfig(size=5, dim=1, insertion_probability=1.0, far_tolerance=0.0, warmup_atoms=5)
    memory = RecodeMemory(config, engine=engine)
    memory.observe(np.arange(5.0)[:, None])
    counts = np.array([1.0, 2.0, 0.5, 4.0, 1.5])
    state = memory.state_dict() | {"log_counts": np.log(counts) - 1e6, "log_scale": 0.0}
    victims = np.zeros(5)
    for seed in range(3000):
        generator = json.dumps(np.random.default_rng(seed).bit_generator.state)
        memory.load_state_dict(state | {"generator": generator})
        _, observed = memory.observe([10.0], details=True)
        victims[observed.slot[0]] += 1
    expected = 3000 * counts**-2 / (counts**-2).sum()
    assert ((victims - expected) ** 2 / expected).sum() < 18.5  # 4 degrees of freedom: 0.001


def test_draws_at_the_ends_of_the_unit_interval_stay_in_range():
    log_counts = np.log([3.0, 1.0, 2.0])
    for rule in ("inverse_square", "inverse"):
        assert RULES[rule](log_counts, 0.0) == 0
        assert RULES[rule](log_counts, np.nextafter(1.0, 0.0)) == 2
    assert RULES["smallest"](np.log([3.0, 1.0, 1.0]), 0.9) == 1


def test_a_draw_falls_where_the_cumulative_weights_say():
    log_counts = np.log([1.0, 2.0, 4.0])  # weights 1, 1/4, 1/16 of 21/16
    for u, slot in [(15.9 / 21, 0), (16.1 / 21, 1), (19.9 / 21, 1), (20.1 / 21, 2)]:
        assert RULES["inverse_square"](log_counts, u) == slot
    for u, slot in [(3.9 / 7, 0), (4.1 / 7, 1), (5.9 / 7, 1), (6.1 / 7, 2)]:
        assert RULES["inverse"](log_counts, u) == slot


# Kernel and distances


def test_kernel_is_one_at_the_atom_half_at_epsilon_and_zero_at_the_radius():
    d2_ema, epsilon = 4.0, 0.25
    values = kernel(np.array([0.0, epsilon * d2_ema, np.nextafter(4.0, 0.0), 4.0, 5.0]), d2_ema, epsilon)
    np.testing.assert_allclose(values, [1.0, 0.5, 0.2, 0.0, 0.0], rtol=1e-12)
    np.testing.assert_array_equal(kernel(np.array([0.0, 1e-300]), 0.0, epsilon), [1.0, 0.0])


def test_distances_far_from_the_origin_keep_all_their_digits():
    atoms = np.array([[1000.0, 1000.0], [1000.001, 1000.0]], np.float32)
    e = np.array([1000.0005, 1000.0], np.float32)
    exact = [(float32(a) - float32(1000.0005)) ** 2 for a in (1000.0, 1000.001)]
    np.testing.assert_array_equal(squared_distances(atoms, e), exact)


def test_the_k_smallest_come_in_ascending_order():
    assert k_smallest(np.array([5.0, 1.0, 4.0, 1.0, 3.0]), 3).tolist() == [1.0, 1.0, 3.0]
    assert k_smallest(np.array([2.0, 1.0]), 2).tolist() == [1.0, 2.0]
