"""NGU's episodic memory against a plain transcription, environment by environment."""

from dataclasses import replace

import numpy as np
import pytest
from oracles.ngu import Episodic

from softcount import store
from softcount.memory import episodic
from softcount.memory.episodic import EpisodicConfig, EpisodicMemory

CONFIG = EpisodicConfig(dim=3, capacity=50, neighbours=4)


def oracles(num, config=CONFIG):
    return [
        Episodic(
            config.capacity, config.neighbours, config.kernel_epsilon, config.cluster_distance,
            config.similarity_constant, config.max_similarity,
        )
        for _ in range(num)
    ]  # fmt: skip


def run(config, num_envs, num_steps, seed, scale=1.0):
    """Random subsets of environments in random order, episodes of random length; both sides."""
    rng = np.random.default_rng(seed)
    memory, expected_of = EpisodicMemory(config, num_envs), oracles(num_envs, config)
    for t in range(num_steps):
        ids = rng.permutation(num_envs)[: rng.integers(1, num_envs + 1)]
        is_first = (rng.random(len(ids)) < 0.02) | (t == 0)
        e = np.round(scale * rng.standard_normal((len(ids), config.dim)), 1).astype(np.float32)
        for i, first in zip(ids, is_first):
            if first:
                expected_of[i].reset()
        expected = [expected_of[i].observe(row) for i, row in zip(ids, e.tolist())]
        np.testing.assert_allclose(memory.observe(e, ids, is_first), expected, rtol=1e-10)
        assert memory.num_stored.tolist() == [len(oracle.stored) for oracle in expected_of]
    means = [sum(o.distances) / max(len(o.distances), 1) for o in expected_of]
    np.testing.assert_allclose(memory.d2_mean, means, rtol=1e-12)
    return memory, expected_of


@pytest.mark.parametrize("seed", range(3))
def test_rewards_are_those_of_the_transcription(seed):
    memory, expected_of = run(CONFIG, num_envs=4, num_steps=150, seed=seed)
    e = np.random.default_rng(9).standard_normal((4, 3)).astype(np.float32)
    expected = [oracle.score(row) for oracle, row in zip(expected_of, e.tolist())]
    np.testing.assert_allclose(memory.score(e, np.arange(4)), expected, rtol=1e-10)


def test_the_ring_drops_the_oldest_and_grows_before(monkeypatch):
    monkeypatch.setattr(episodic, "FIRST_LENGTH", 5)
    run(replace(CONFIG, capacity=37), num_envs=2, num_steps=120, seed=0)


def test_a_familiar_embedding_pays_nothing():
    config = EpisodicConfig(dim=1, neighbours=70)
    memory = EpisodicMemory(config, 1)
    for t in range(70):
        assert memory.observe([[float(t % 2)]], [0], [t == 0])[0] == 0.0
    # 35 of 70 neighbours are exact repeats: √35 < 8. Later nearly all are: √70 > 8.
    assert memory.observe([[0.0]], [0], [False])[0] == pytest.approx(1 / (np.sqrt(35) + 0.001), rel=1e-3)
    for _ in range(70):
        memory.observe([[0.0]], [0], [False])
    assert memory.observe([[0.0]], [0], [False])[0] == 0.0


def test_nothing_is_paid_until_k_are_stored_and_then_by_hand():
    memory = EpisodicMemory(EpisodicConfig(dim=1, neighbours=2), 1)
    assert memory.observe([[0.0]], [0], [True])[0] == 0.0
    assert memory.observe([[1.0]], [0], [False])[0] == 0.0
    # s = 4, 9; their mean 6.5; ρ = 4/6.5 − 0.008, 9/6.5 − 0.008
    kernels = [1e-4 / (s / 6.5 - 0.008 + 1e-4) for s in (4, 9)]
    assert memory.observe([[3.0]], [0], [False])[0] == pytest.approx(
        1 / (np.sqrt(sum(kernels)) + 0.001), rel=1e-6
    )
    assert memory.d2_mean[0] == pytest.approx(6.5)


def test_identical_embeddings_count_fully_while_the_mean_is_zero():
    memory = EpisodicMemory(EpisodicConfig(dim=2, neighbours=3), 1)
    rewards = [float(memory.observe(np.ones((1, 2)), [0], [t == 0])[0]) for t in range(5)]
    np.testing.assert_allclose(rewards, [0, 0, 0] + 2 * [1 / (np.sqrt(3) + 0.001)], rtol=1e-12)


def test_a_new_episode_forgets_embeddings_but_not_the_scale():
    memory, _ = run(CONFIG, num_envs=3, num_steps=60, seed=1)
    means = memory.d2_mean
    memory.observe(np.zeros((1, 3), np.float32), [1], [True])
    assert memory.num_stored[1] == 1
    np.testing.assert_array_equal(memory.d2_mean, means)
    memory.reset([0])
    assert memory.num_stored[0] == 0
    assert memory.num_stored[2] > 0
    memory.reset()
    assert memory.num_stored.tolist() == [0, 0, 0]
    np.testing.assert_array_equal(memory.d2_mean, means)


def test_scoring_changes_nothing_and_is_what_observing_pays():
    memory, _ = run(CONFIG, num_envs=3, num_steps=60, seed=2)
    before = memory.state_dict()
    e = np.random.default_rng(0).standard_normal((3, 3)).astype(np.float32)
    scores = memory.score(e, [2, 0, 1])
    for name, value in memory.state_dict().items():
        np.testing.assert_equal(value, before[name])
    np.testing.assert_allclose(memory.observe(e, [2, 0, 1], [False] * 3), scores, rtol=1e-12)


def test_states_go_to_disk_and_continue_exactly(tmp_path):
    memory, _ = run(CONFIG, num_envs=3, num_steps=80, seed=3)
    store.save(tmp_path / "episodic", memory.state_dict(), kind="episodic")
    other = EpisodicMemory(CONFIG, 3)
    other.load_state_dict(store.load(tmp_path / "episodic", kind="episodic"))
    rng = np.random.default_rng(0)
    for _ in range(60):
        e = rng.standard_normal((3, 3)).astype(np.float32)
        first = rng.random(3) < 0.05
        np.testing.assert_array_equal(memory.observe(e, [0, 1, 2], first), other.observe(e, [0, 1, 2], first))


def test_storage_grows_with_each_episode_only():
    memory = EpisodicMemory(EpisodicConfig(dim=8), num_envs=16)
    assert memory.bytes < 1000
    for t in range(300):
        memory.observe(np.zeros((1, 8), np.float32), [3], [t == 0])
    assert memory.bytes < 512 * 8 * 4 + 1000
    assert [len(rows) for rows in memory.state_dict()["rows"]] == [0, 0, 0, 300] + 12 * [0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((2, 4)), [0, 1], [False] * 2), r"\(2, 4\).*\(B, 3\)"),
        ((np.zeros((2, 3)), [0], [False] * 2), r"env_ids have shape \(1,\)"),
        ((np.zeros((2, 3)), [0, 1], [False]), r"is_first has shape \(1,\)"),
        ((np.zeros((2, 3)), [0, 3], [False] * 2), "0 … 3; expected 0 … 2"),
        ((np.zeros((2, 3)), [1, 1], [False] * 2), "twice"),
        ((np.array([[0.0] * 3, [0.0, np.nan, 0.0]]), [0, 1], [True] * 2), r"embeddings\[1\]"),
    ],
)
def test_bad_input_is_named_and_leaves_no_trace(arguments, message):
    memory, _ = run(CONFIG, num_envs=3, num_steps=20, seed=4)
    before = memory.state_dict()
    with pytest.raises(ValueError, match=message):
        memory.observe(*arguments)
    for name, value in memory.state_dict().items():
        np.testing.assert_equal(value, before[name])


@pytest.mark.parametrize(
    ("field", "value"),
    [("dim", 0), ("capacity", 2.0), ("capacity", 3), ("neighbours", True), ("kernel_epsilon", 0.0),
     ("cluster_distance", -1.0), ("similarity_constant", 0), ("max_similarity", float("nan"))],
)  # fmt: skip
def test_a_config_out_of_range_names_field_and_value(field, value):
    with pytest.raises(ValueError, match=f"EpisodicConfig.{field} is {value!r}"):
        EpisodicConfig(**{field: value})


def test_a_state_of_other_shape_is_refused():
    memory, _ = run(CONFIG, num_envs=3, num_steps=20, seed=5)
    with pytest.raises(ValueError, match="3 environments; this memory has 2"):
        EpisodicMemory(CONFIG, 2).load_state_dict(memory.state_dict())
    with pytest.raises(ValueError, match=r"rows'\]\[0\] has shape"):
        EpisodicMemory(replace(CONFIG, dim=2), 3).load_state_dict(memory.state_dict())


def test_defaults_are_the_table_of_ngu():
    config = EpisodicConfig()
    assert (config.capacity, config.neighbours, config.kernel_epsilon) == (30_000, 10, 1e-4)
    assert (config.cluster_distance, config.similarity_constant, config.max_similarity) == (0.008, 0.001, 8.0)
