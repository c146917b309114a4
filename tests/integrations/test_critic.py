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


def round_of(critic, observations, rewards):
    """Advantages of a rollout, from which the values then learn."""
    advantages = critic.advantages(observations, rewards)
    critic.learn()
    return advantages


def test_advantages_are_discounted_sums_of_errors_that_no_episode_ends():
    observations, rewards = rollout()
    critic = IntrinsicCritic(SPEC, CriticConfig(discount=0.9, gae_lambda=0.8, epochs=3), seed=1)
    for _ in range(3):
        round_of(critic, observations, rewards)  # so that values are not zero
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
        advantages = round_of(critic, observations, rewards)
    assert critic.values(observations[0]) == pytest.approx(0.5 / 0.2, rel=0.05)
    assert np.abs(advantages).max() < 0.2


def test_the_draws_of_the_agent_stay_as_they_were():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    critic = IntrinsicCritic(SPEC, seed=5)
    round_of(critic, *rollout())
    assert torch.equal(torch.rand(3), expected)


def test_a_critic_goes_on_where_it_was_saved():
    one, two = (IntrinsicCritic(SPEC, seed=seed) for seed in (0, 1))
    one.advantages(*rollout(0))
    two.load_state_dict(one.state_dict())
    for critic in (one, two):  # saved between the two halves of a round
        critic.learn()
    for seed in (1, 2):
        np.testing.assert_array_equal(round_of(one, *rollout(seed)), round_of(two, *rollout(seed)))
    assert np.abs(one.values(rollout()[0][0])).max() > 0
    with pytest.raises(ValueError, match="discount"):
        CriticConfig(discount=1.5)


def test_each_observation_learns_its_own_value():
    observations = np.zeros((9, 4, 3), np.float32)
    observations[::2, :, 0], observations[1::2, :, 1] = 1.0, 1.0
    rewards = np.zeros((8, 4), np.float32)
    rewards[::2] = 1.0  # paid for what is done in the first kind alone
    critic = IntrinsicCritic(SPEC, CriticConfig(discount=0.0, learning_rate=1e-2))
    for _ in range(60):
        round_of(critic, observations, rewards)
    assert critic.values(observations[0]).mean() > 0.9
    assert critic.values(observations[1]).mean() < 0.1


def test_a_thousandth_of_the_bonus_has_a_thousandth_of_the_advantages():
    one, small = (IntrinsicCritic(SPEC, seed=3) for _ in range(2))
    for seed in range(5):
        observations, rewards = rollout(seed)
        expected = round_of(one, observations, rewards) / 1000
        found = round_of(small, observations, rewards / 1000)
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-7)
    np.testing.assert_allclose(small.values(observations[0]), one.values(observations[0]) / 1000, rtol=1e-3)


def test_values_follow_a_bonus_that_fades():
    observations = np.zeros((9, 4, 3), np.float32)
    observations[::2, :, 0], observations[1::2, :, 1] = 1.0, 1.0
    rewards = np.zeros((8, 4), np.float32)
    rewards[::2] = 1.0
    critic = IntrinsicCritic(SPEC, CriticConfig(discount=0.0))
    for fade in np.geomspace(1.0, 1e-3, 300):
        round_of(critic, observations, np.float32(fade) * rewards)
    assert critic.unit == pytest.approx(1.8 * 0.5e-3, rel=0.1)  # the mean of twenty rollouts, half paid
    assert critic.values(observations[0]) == pytest.approx(1e-3, rel=0.3)
    assert critic.values(observations[1]) == pytest.approx(0.0, abs=1e-4)


def test_what_was_seen_some_rollouts_ago_is_learned_from_still():
    here, there = np.zeros((9, 4, 3), np.float32), np.zeros((9, 4, 3), np.float32)
    here[..., 0], there[..., 1] = 1.0, 1.0
    paid, even = np.ones((8, 4), np.float32), np.ones((8, 4), np.float32)
    even[::2] = -1.0  # nothing in the mean, and the same unit
    values = {}
    for rollouts in (1, 8):
        critic = IntrinsicCritic(SPEC, CriticConfig(discount=0.0, learning_rate=1e-2, rollouts=rollouts))
        round_of(critic, here, paid)
        for _ in range(7):
            round_of(critic, there, even)
        values[rollouts] = critic.values(here[0]).mean()
    assert values[8] > 0.7
    assert values[1] < 0.5


def test_nothing_is_learned_before_the_agent_has_and_only_once():
    observations, rewards = rollout()
    critic = IntrinsicCritic(SPEC)
    critic.advantages(observations, rewards)
    assert critic.values(observations[0]).tolist() == [0.0, 0.0]
    critic.learn()
    once = critic.values(observations[0])
    assert np.abs(once).min() > 0
    critic.learn()
    np.testing.assert_array_equal(critic.values(observations[0]), once)


class Body(torch.nn.Linear):
    """An encoder that an agent has."""

    def __init__(self):
        super().__init__(3, 5)


def test_a_body_of_the_agents_learns_along_and_stays_the_agents():
    torch.manual_seed(0)
    body, other = Body(), Body()
    critic = IntrinsicCritic(SPEC, CriticConfig(discount=0.0, learning_rate=1e-2), body=body)
    before = body.weight.detach().clone()
    for _ in range(60):
        observations, rewards = rollout()
        round_of(critic, observations, rewards)
    assert (body.weight - before).abs().max() > 0.01
    with torch.no_grad():
        features = body(torch.from_numpy(observations[0]))
    head = critic.network[1]
    expected = critic.unit * (features @ head.weight.T + head.bias)[:, 0].detach().numpy()
    np.testing.assert_allclose(critic.values(observations[0]), expected, rtol=1e-5)
    own = other.weight.detach().clone()
    two = IntrinsicCritic(SPEC, body=other)
    two.load_state_dict(critic.state_dict())
    assert torch.equal(other.weight, own)  # an agent brings its own weights
    assert torch.equal(two.network[1].weight, head.weight)


def test_values_that_count_less_move_a_body_less():
    moved = []
    for share in (1.0, 0.25, 0.0):
        torch.manual_seed(0)
        body = Body()
        critic = IntrinsicCritic(SPEC, CriticConfig(epochs=2), body=body)
        round_of(critic, *rollout())  # so that the head passes gradients on
        before = body.weight.detach().clone()
        critic.advantages(*rollout(1))
        critic.learn(share)
        moved.append((body.weight - before).abs().max().item())
    assert moved[1] == pytest.approx(0.25 * moved[0], rel=0.1)
    assert moved[2] == 0.0


def test_a_large_error_moves_the_values_by_a_bounded_gradient():
    observations, rewards = rollout()
    rewards[0, 0] = 100.0  # beside what is usual
    critic = IntrinsicCritic(SPEC, CriticConfig(epochs=1))
    round_of(critic, 10 * observations, rewards)
    norm = torch.stack([p.grad.norm() for p in critic.network.parameters()]).norm().item()
    assert norm == pytest.approx(0.5, rel=1e-4)
