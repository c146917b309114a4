import numpy as np
import pytest

from softcount.agents.meme.policies import act, beta_ladder, discount_ladder, epsilon_ladder


def test_betas_of_sixteen_mixtures():
    expected = [0, 0.00019, 0.00079, 0.00329, 0.01358, 0.05431, 0.19332, 0.5]
    expected += [0.80668, 0.94569, 0.98642, 0.99671, 0.99921, 0.99981, 0.99995, 1]
    np.testing.assert_allclose(beta_ladder(16, 1.0), expected, atol=6e-6)
    np.testing.assert_allclose(beta_ladder(16, 0.3), 0.3 * beta_ladder(16, 1.0))


def test_discounts_of_sixteen_mixtures():
    expected = [0.9997, 0.99959, 0.99945, 0.99925, 0.99898, 0.99861, 0.99811, 0.99743]
    expected += [0.9965, 0.99525, 0.99354, 0.99121, 0.98806, 0.98376, 0.97793, 0.97]
    np.testing.assert_allclose(discount_ladder(16, 0.9997, 0.97), expected, atol=6e-6)


def test_short_discounts_are_allowed_and_horizons_shrink_by_a_constant_factor():
    horizons = 1 / (1 - discount_ladder(4, 0.997, 0.8))
    np.testing.assert_allclose(horizons[[0, -1]], [1 / 0.003, 5])
    np.testing.assert_allclose(horizons[1:] / horizons[:-1], horizons[1] / horizons[0])


def test_small_families():
    assert beta_ladder(1, 1.0).tolist() == [0.0]
    assert beta_ladder(2, 0.7).tolist() == [0.0, 0.7]
    assert beta_ladder(3, 1.0)[[0, 2]].tolist() == [0.0, 1.0]
    assert discount_ladder(1, 0.99, 0.5).tolist() == [0.99]


def test_epsilons_run_from_base_to_its_eighth_power():
    ladder = epsilon_ladder(8)
    np.testing.assert_allclose(ladder, [0.4**n for n in range(1, 9)])
    np.testing.assert_allclose(epsilon_ladder(4, base=0.2, power=3), [0.2**n for n in range(1, 5)])
    np.testing.assert_allclose(epsilon_ladder(1), [0.4**4.5])


def test_greedy_action_is_of_the_rows_own_mixture():
    logits = np.zeros((3, 2, 4))
    logits[0, 0, 1] = logits[0, 1, 3] = 1
    logits[1, 0, 2] = logits[1, 1, 0] = 1
    logits[2, 0, 3] = logits[2, 1, 1] = 1
    action, log_prob = act(logits, np.array([0, 1, 0]), 0.0, np.random.default_rng(0))
    assert action.tolist() == [1, 0, 3]
    np.testing.assert_allclose(log_prob, 0)


def test_exploration_is_uniform_over_all_actions_with_each_rows_epsilon():
    num = 60_000
    logits = np.tile(np.array([0.0, 0, 5, 0]), (num, 1))
    epsilon = np.where(np.arange(num) < num // 2, 0.4, 0.0)
    action, log_prob = act(logits, np.zeros(num, int), epsilon, np.random.default_rng(1))
    assert (action[num // 2 :] == 2).all()
    shares = np.bincount(action[: num // 2], minlength=4) / (num // 2)
    np.testing.assert_allclose(shares, [0.1, 0.1, 0.7, 0.1], atol=0.01)
    expected = np.where(action == 2, epsilon / 4 + 1 - epsilon, epsilon / 4)
    np.testing.assert_allclose(np.exp(log_prob), expected, rtol=1e-5)


def test_randomness_used_does_not_depend_on_epsilon():
    first, second = np.random.default_rng(3), np.random.default_rng(3)
    act(np.zeros((5, 1, 3)), np.zeros(5, int), 0.0, first)
    act(np.zeros((5, 1, 3)), np.zeros(5, int), 1.0, second)
    assert first.random() == second.random()


def test_wrong_ladders_are_refused():
    with pytest.raises(ValueError, match=r"0.5 and 0.9; expected 0 <= minimum"):
        discount_ladder(4, 0.5, 0.9)
    with pytest.raises(ValueError, match="num is 0"):
        beta_ladder(0, 1.0)
    with pytest.raises(ValueError, match="num_actors is 0"):
        epsilon_ladder(0)
