import numpy as np
import pytest
from oracles import replay as oracle

from softcount.replay.priorities import SumTree, importance_weights


@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 100])
def test_found_leaves_are_where_the_running_sum_passes(size):
    rng = np.random.default_rng(size)
    weights = rng.integers(0, 5, size).astype(float)
    weights[rng.integers(size)] = 3.0
    tree = SumTree(size)
    tree.set(np.arange(size), weights)
    prefixes = np.concatenate((np.arange(weights.sum()), rng.random(50) * weights.sum()))
    assert tree.find(prefixes).tolist() == [oracle.find(weights, p) for p in prefixes]
    assert tree.total == weights.sum()


def test_the_tree_is_a_function_of_its_leaves_alone():
    rng = np.random.default_rng(0)
    tree, fresh = SumTree(37), SumTree(37)
    for _ in range(200):
        leaves = rng.integers(37, size=rng.integers(1, 6))
        tree.set(leaves, rng.random(len(leaves)) * 10.0 ** rng.integers(-8, 8))
    fresh.set(np.arange(37), tree.weights(np.arange(37)))
    np.testing.assert_array_equal(tree.nodes, fresh.nodes)


def test_samples_follow_the_weights():
    tree = SumTree(5)
    tree.set([0, 1, 3, 4], [1.0, 2.0, 3.0, 4.0])
    drawn = np.concatenate([tree.sample(16, np.random.default_rng(n)) for n in range(2000)])
    np.testing.assert_allclose(
        np.bincount(drawn, minlength=5) / len(drawn), [0.1, 0.2, 0, 0.3, 0.4], atol=0.005
    )


def test_stratified_samples_hardly_vary():
    tree = SumTree(4)
    tree.set(np.arange(4), np.ones(4))
    for seed in range(20):
        assert sorted(tree.sample(8, np.random.default_rng(seed)).tolist()) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_empty_leaves_are_never_drawn_even_at_the_very_end():
    tree = SumTree(8)
    tree.set([2, 4], [0.1, 0.7])
    assert tree.find([0.0, tree.total, 10.0]).tolist() == [2, 4, 4]


def test_setting_a_leaf_twice_keeps_the_last():
    tree = SumTree(4)
    tree.set([1, 1], [5.0, 2.0])
    assert tree.total == 2.0
    tree.set([], [])
    assert tree.total == 2.0


def test_importance_weights_undo_the_priorities_with_exponent_one():
    p = np.array([0.5, 0.1, 0.2])
    weights = importance_weights(p, 100, 1.0)
    np.testing.assert_allclose(weights * p, 0.1 * np.ones(3), rtol=1e-6)
    assert importance_weights(p, 100, 0.0).tolist() == [1, 1, 1]
    np.testing.assert_allclose(importance_weights(p, 7, 0.6), (0.1 / p) ** 0.6, rtol=1e-6)


def test_wrong_use_is_refused():
    with pytest.raises(ValueError, match="all weights are zero"):
        SumTree(3).sample(1, np.random.default_rng(0))
    with pytest.raises(IndexError, match="expected 0 to 2"):
        SumTree(3).set([3], [1.0])
    with pytest.raises(ValueError, match="size is 0"):
        SumTree(0)
