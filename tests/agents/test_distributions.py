"""Policies over each kind of action: samples, likelihoods and what is sent."""

import math

import numpy as np
import pytest
import torch
from oracles import vmpo as oracle

from softcount.agents.distributions import Categoricals, DiagonalGaussian, GaussianConfig, make_distribution
from softcount.types import ContinuousActions, DiscreteActions, MultiDiscreteActions

BOX = ContinuousActions((-2.0, 0.0), (2.0, 10.0))


def test_samples_come_as_often_as_the_policy_says():
    rng = np.random.default_rng(0)
    distribution = make_distribution(MultiDiscreteActions((2, 3)))
    policy = np.tile(np.log([0.9, 0.1, 0.2, 0.3, 0.5]), (20_000, 1))
    drawn = distribution.sample(policy, rng)
    assert drawn.shape == (20_000, 2)
    shares = [np.bincount(drawn[:, i]) / len(drawn) for i in range(2)]
    np.testing.assert_allclose(np.concatenate(shares), [0.9, 0.1, 0.2, 0.3, 0.5], atol=0.015)
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 0.03  # independent


def test_discrete_actions_are_plain_numbers():
    distribution = make_distribution(DiscreteActions(3))
    drawn = distribution.sample(np.zeros((5, 3)), np.random.default_rng(0))
    assert drawn.shape == (5,)
    assert drawn.dtype == np.int64
    assert distribution.to_env(drawn) is drawn


def test_gaussian_samples_have_mean_and_std_of_the_policy():
    distribution = make_distribution(BOX)
    policy = np.tile([0.5, -0.25, 0.1, 0.8], (20_000, 1))
    drawn = distribution.sample(policy, np.random.default_rng(0))
    np.testing.assert_allclose(drawn.mean(0), [0.5, -0.25], atol=0.02)
    np.testing.assert_allclose(drawn.std(0), [0.1, 0.8], atol=0.02)
    np.testing.assert_array_equal(distribution.mode(policy)[0], np.float32([0.5, -0.25]))


def test_what_is_sent_lies_in_the_box():
    distribution = make_distribution(BOX)
    sent = distribution.to_env(np.float32([[0.0, 0.0], [-1.0, 1.0], [7.0, -7.0]]))
    assert sent.dtype == np.float32
    np.testing.assert_array_equal(sent, np.float32([[0.0, 5.0], [-2.0, 10.0], [2.0, 0.0]]))


def test_the_std_stays_between_its_bounds_and_has_a_gradient_at_both():
    distribution = DiagonalGaussian(BOX, GaussianConfig())
    outputs = torch.tensor([0.0, 0.0, -9.0, 9.0], requires_grad=True)
    std = distribution.policy(outputs)[2:]
    assert (std > 0.01).all()
    assert (std < 1.0).all()
    std.sum().backward()
    assert (outputs.grad[2:] > 1e-5).all()
    start = distribution.policy(torch.zeros(4))
    np.testing.assert_allclose(start, [0.0, 0.0, 0.5, 0.5], atol=1e-6)


@pytest.mark.parametrize("per_dimension", [False, True])
def test_gaussian_distances_are_the_oracles(per_dimension):
    rng = np.random.default_rng(1)
    old, new = (np.concatenate((rng.normal(size=2), rng.uniform(0.2, 1, 2))) for _ in range(2))
    distribution = DiagonalGaussian(BOX, GaussianConfig(per_dimension=per_dimension))
    found = distribution.distances(torch.tensor(old), torch.tensor(new))
    expected = oracle.gaussian_kl(old.reshape(2, 2).tolist(), new.reshape(2, 2).tolist(), per_dimension)
    for name, numbers in expected.items():
        np.testing.assert_allclose(found[name], numbers, rtol=1e-12)
        assert distribution.num_distances[name] == len(numbers)


def test_categorical_distance_is_of_the_behaviour_to_the_learner():
    distribution = Categoricals((2, 3))
    old, new = [0.3, -1.0, 0.5, 0.0, 2.0], [1.0, 0.0, -0.5, 0.2, 0.1]
    found = distribution.distances(torch.tensor(old), torch.tensor(new))["kl"]
    there = oracle.categorical_kl([old[:2], old[2:]], [new[:2], new[2:]])["kl"][0]
    back = oracle.categorical_kl([new[:2], new[2:]], [old[:2], old[2:]])["kl"][0]
    assert found.item() == pytest.approx(there, rel=1e-5)
    assert abs(there - back) > 0.05


def test_entropies():
    assert Categoricals((2, 4)).entropy(torch.zeros(6)).item() == pytest.approx(math.log(8), rel=1e-6)
    gaussian = DiagonalGaussian(BOX, GaussianConfig())
    expected = sum(0.5 * math.log(2 * math.pi * math.e * s * s) for s in (0.3, 0.7))
    assert gaussian.entropy(torch.tensor([5.0, 5.0, 0.3, 0.7])).item() == pytest.approx(expected, rel=1e-6)


def test_bounds_of_the_std_must_be_in_order():
    with pytest.raises(ValueError, match="expected positive numbers in growing order"):
        GaussianConfig(std_start=2.0)
