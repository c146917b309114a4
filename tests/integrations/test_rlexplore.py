"""RLeXplore's names: rollouts in, rewards out, each step taken in once."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch

from softcount.bonuses import NormaliserConfig
from softcount.integrations import IntrinsicReward, IntrinsicRewardConfig
from softcount.integrations.rlexplore import NGU, RECODE, RND, PseudoCounts
from softcount.memory import RecodeConfig

CONFIG = IntrinsicRewardConfig(
    memory=RecodeConfig(size=100, neighbours=3, warmup_atoms=5),
    normaliser=NormaliserConfig(kind="none"),
    steps_per_update=40,
    first_update=80,
)
STEPS, NUM_ENVS = 60, 2


@pytest.fixture(scope="module")
def envs():
    return gymnasium.make_vec("CartPole-v1", num_envs=NUM_ENVS)


@pytest.fixture(scope="module")
def rollout(envs):
    """Random steps of next-step environments, as RLeXplore's users store them."""
    rng, columns = np.random.default_rng(0), {}
    obs, _ = envs.reset(seed=0)
    for _ in range(STEPS):
        actions = rng.integers(0, 2, NUM_ENVS)
        arrived, rewards, terminated, truncated, _ = envs.step(actions)
        row = (obs, actions, rewards, terminated, truncated, arrived)
        names = ("observations", "actions", "rewards", "terminateds", "truncateds", "next_observations")
        for name, value in zip(names, row):
            columns.setdefault(name, []).append(value)
        obs = arrived
    return {name: np.stack(values) for name, values in columns.items()}


def first(samples, num):
    return {name: column[:num] for name, column in samples.items()}


def rest(samples, num):
    return {name: column[num:] for name, column in samples.items()}


@pytest.mark.parametrize("make", [RECODE, RND, NGU, PseudoCounts])
def test_a_rollout_gets_one_reward_per_step_and_environment(make, envs, rollout):
    rewards = make(envs, config=CONFIG).compute(rollout)
    assert rewards.shape == (STEPS, NUM_ENVS)
    assert np.isfinite(rewards).all()


def test_compute_pays_what_step_pays_between_updates(envs, rollout):
    irs = RECODE(envs, config=CONFIG)
    irs.compute(first(rollout, 50))
    plain = IntrinsicReward(
        "RECODE-AP", envs.single_observation_space, envs.single_action_space, num_envs=NUM_ENVS, config=CONFIG
    )
    plain.load_state_dict(irs.reward.state_dict())
    columns = ("observations", "actions", "next_observations", "terminateds", "truncateds")
    later = rest(rollout, 50)
    expected = [plain.step(*(later[name][t] for name in columns)) for t in range(10)]
    np.testing.assert_array_equal(irs.compute(later), expected)


def test_watched_steps_are_taken_in_once(envs, rollout):
    watched, computed = RECODE(envs, config=CONFIG), RECODE(envs, config=CONFIG)
    for t in range(STEPS):
        names = ("observations", "actions", "rewards", "terminateds", "truncateds", "next_observations")
        watched.watch(*(rollout[name][t] for name in names))
    np.testing.assert_array_equal(watched.compute(rollout), computed.compute(rollout))
    assert watched.reward.num_steps == STEPS * NUM_ENVS


def test_without_sync_nothing_is_learnt_until_update(envs, rollout):
    irs = RECODE(envs, config=CONFIG)
    irs.compute(rollout, sync=False)
    assert irs.reward.trainer.num_updates == 0
    assert irs.update(rollout)["loss"] > 0
    assert irs.reward.trainer.num_updates == 3  # 120 steps, one update each 40


def test_tensors_come_back_as_tensors_and_the_weight_falls_geometrically(envs, rollout):
    tensors = {name: torch.tensor(column) for name, column in rollout.items()}
    plain, weighted = RECODE(envs, config=CONFIG), RECODE(envs, config=CONFIG, beta=2.0, kappa=0.01)
    rewards = []
    for irs in (plain, weighted):
        irs.compute(first(tensors, 50))
        rewards.append(irs.compute(rest(tensors, 50)))
    factors = 2.0 * 0.99 ** (NUM_ENVS * np.arange(50, STEPS))[:, None]
    assert isinstance(rewards[0], torch.Tensor)
    assert rewards[0].max() > 0
    torch.testing.assert_close(rewards[1], rewards[0] * torch.tensor(factors, dtype=torch.float32))


def test_state_holds_watched_steps_too(envs, rollout):
    names = ("observations", "actions", "rewards", "terminateds", "truncateds", "next_observations")
    one, two = RECODE(envs, config=CONFIG), RECODE(envs, config=CONFIG, seed=3)
    for t in range(30):
        one.watch(*(rollout[name][t] for name in names))
    two.load_state_dict(one.state_dict())
    for irs in (one, two):
        for t in range(30, STEPS):
            irs.watch(*(rollout[name][t] for name in names))
    np.testing.assert_array_equal(one.compute(rollout), two.compute(rollout))


def test_wrong_rollouts_are_explained(envs, rollout):
    irs = RECODE(envs, config=CONFIG)
    with pytest.raises(ValueError, match="samples lack next_observations"):
        irs.compute({name: rollout[name] for name in rollout if name != "next_observations"})
    names = ("observations", "actions", "rewards", "terminateds", "truncateds", "next_observations")
    irs.watch(*(rollout[name][0] for name in names))
    with pytest.raises(ValueError, match="1 steps were watched; the rollout has 60"):
        irs.compute(rollout)
    with pytest.raises(TypeError, match="envs has no single_observation_space"):
        RND(object())
