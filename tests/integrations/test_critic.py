"""The bonus's own values: advantages by their definition, and what is learned from them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from softcount.integrations.critic import CriticConfig, IntrinsicCritic
from softcount.types import ArraySpec

SPEC = ArraySpec((3,), "float32")


def rollout(seed=0, time=6, width=2):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(time + 1, width, 3)).astype(np.float32), rng.random((time, width)).astype(
        np.float32
    )


def test_advantages_are_discounted_sums_of_errors_that_no_episode_ends():
    observations, rewards = rollout()
    critic = IntrinsicCritic(SPEC, CriticConfig(discount=0.9, gae_lambda=0.8, epochs=3), seed=1)
    for _ in range(3):
        critic.advantages(observations, rewards)  # so that values are not zero
    values = np.array([critic.values(row) for row in observations])
    assert np.abs(values).min() > 1e-3
    found = critic.advantages(observations, rewards)
    for t in range(6):
        errors = [rewards[k] + 0.9 * values[k + 1] - values[k] for k in range(t, 6)]
        expected = sum((0.9 * 0.8) ** k * error for k, error in enumerate(errors))
        np.testing.assert_allclose(found[t], expected, rtol=1e-4, atol=1e-6)


def test_values_learn_what_is_still_to_come():
    observations = np.zeros((9, 4, 3), np.float32)
    observations[..., 0] = 1.0
    rewards = np.full((8, 4), 0.5, np.float32)
    critic = IntrinsicCritic(SPEC, CriticConfig(discount=0.8, gae_lambda=1.0, learning_rate=1e-2))
    assert critic.values(observations[0]).tolist() == [0.0] * 4  # nothing is expected at first
    for _ in range(60):
        advantages = critic.advantages(observations, rewards)
    assert critic.values(observations[0]) == pytest.approx(0.5 / 0.2, rel=0.05)
    assert np.abs(advantages).max() < 0.2


def test_the_draws_of_the_agent_stay_as_they_were():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    critic = IntrinsicCritic(SPEC, seed=5)
    critic.advantages(*rollout())
    assert torch.equal(torch.rand(3), expected)


def test_a_critic_goes_on_where_it_was_saved():
    one, two = (IntrinsicCritic(SPEC, seed=seed) for seed in (0, 1))
    one.advantages(*rollout(0))
    two.load_state_dict(one.state_dict())
    for seed in (1, 2):
        np.testing.assert_array_equal(one.advantages(*rollout(seed)), two.advantages(*rollout(seed)))
    with pytest.raises(ValueError, match="discount"):
        CriticConfig(discount=1.5)


def test_each_observation_learns_its_own_value():
    observations = np.zeros((9, 4, 3), np.float32)
    observations[::2, :, 0], observations[1::2, :, 1] = 1.0, 1.0
    rewards = np.zeros((8, 4), np.float32)
    rewards[::2] = 1.0  # paid for what is done in the first kind alone
    critic = IntrinsicCritic(SPEC, CriticConfig(discount=0.0, learning_rate=1e-2))
    for _ in range(60):
        critic.advantages(observations, rewards)
    assert critic.values(observations[0]).mean() > 0.9
    assert critic.values(observations[1]).mean() < 0.1
