"""A weight that falls once the game pays: every adapter counts the game's rewards, and only those."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium.vector import SyncVectorEnv
from integrations.worlds import Lever, pulled

from softcount.bonuses import NormaliserConfig
from softcount.integrations import Fading, IntrinsicReward, IntrinsicRewardConfig
from softcount.integrations.gymnasium import IntrinsicRewardWrapper
from softcount.representations.compose import Function

AFTER = 5
OPTIONS = {
    "encoder": Function(pulled),
    "config": IntrinsicRewardConfig(normaliser=NormaliserConfig(kind="none")),
    "weight": Fading(2.0, after=AFTER),
}


class Paying(Lever):
    """A lever whose pulls the game pays for."""

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, 7.0 * float(action == 1), *rest


def weights(pulls):
    """What the bonus of a pull is worth at each step `[T, N]`, by the definition."""
    num = np.cumsum(np.asarray(pulls, bool).sum(1))
    return np.array([2.0 * AFTER / (AFTER + n) for n in num])[:, None]


def test_half_is_left_after_so_many_rewards_and_nothing_falls_before():
    bonus = IntrinsicReward("RND", Lever.observation_space, Lever.action_space, num_envs=2, **OPTIONS)
    assert bonus.current_weight == 2.0
    bonus.see_rewards(np.zeros(2))
    assert bonus.current_weight == bonus.metrics()["weight"] == 2.0
    for _ in range(AFTER):
        bonus.see_rewards(np.array([0.0, -3.0]))  # any reward counts once, whatever its size and sign
    assert bonus.current_weight == bonus.metrics()["weight"] == 1.0
    seen = np.array([[1.0, 0.5]], np.float32)
    assert bonus.score(seen).tolist() == [1.0]
    with pytest.raises(ValueError, match="after is 0; expected at least 1"):
        Fading(1.0, after=0)


def test_a_saved_bonus_remembers_how_often_the_game_paid(tmp_path):
    bonus, other = (
        IntrinsicReward("RND", Lever.observation_space, Lever.action_space, num_envs=2, **OPTIONS)
        for _ in range(2)
    )
    bonus.see_rewards(np.ones(2))
    bonus.save(tmp_path / "bonus")
    other.load(tmp_path / "bonus")
    assert other.current_weight == 2.0 * AFTER / (AFTER + 2)


def test_the_vector_wrapper_counts_the_games_rewards():
    envs = IntrinsicRewardWrapper(SyncVectorEnv([Paying] * 2), "RND", **OPTIONS)
    envs.reset(seed=0)
    pulls = np.random.default_rng(0).integers(0, 2, (6, 2))  # an episode has eight steps
    paid = np.stack([envs.step(row)[4]["intrinsic_reward"] for row in pulls])
    np.testing.assert_allclose(paid, weights(pulls) * pulls, rtol=1e-6)
    assert pulls.sum() > AFTER


def test_torchrl_counts_the_games_rewards():
    pytest.importorskip("torchrl")
    from torchrl.envs import GymWrapper, SerialEnv, TransformedEnv

    from softcount.integrations.torchrl import IntrinsicRewardTransform

    torch.manual_seed(0)
    base = SerialEnv(2, lambda: GymWrapper(Paying()))
    batch = TransformedEnv(base, IntrinsicRewardTransform("RND", **OPTIONS)).rollout(6)
    pulls = batch["action"][..., 1].T.numpy()
    paid = batch["next", "intrinsic_reward"][..., 0].T.numpy()
    np.testing.assert_allclose(paid, weights(pulls) * pulls, rtol=1e-6)
    assert pulls.sum() > 0


def sb3_levers():
    from stable_baselines3.common.vec_env import DummyVecEnv

    return DummyVecEnv([Paying] * 2)


def test_sb3s_wrapper_counts_the_games_rewards():
    pytest.importorskip("stable_baselines3")
    from softcount.integrations.sb3 import IntrinsicVecEnv

    env = IntrinsicVecEnv(sb3_levers(), "RND", reward="intrinsic", **OPTIONS)
    env.reset()
    pulls = np.random.default_rng(1).integers(0, 2, (6, 2))
    paid = np.stack([env.step(row)[1] for row in pulls])
    np.testing.assert_allclose(paid, weights(pulls) * pulls, rtol=1e-6)


def test_sb3s_callback_counts_the_games_rewards():
    sb3 = pytest.importorskip("stable_baselines3")
    from softcount.integrations.sb3 import IntrinsicRewardCallback

    callback = IntrinsicRewardCallback("RND", values="shared", **OPTIONS)
    model = sb3.PPO("MlpPolicy", sb3_levers(), n_steps=6, batch_size=12, seed=0, device="cpu")
    model.learn(12, callback=callback)
    pulls = model.rollout_buffer.actions.reshape(2, 6).T  # SB3 has joined time and environments by now
    paid = model.rollout_buffer.rewards - 7.0 * pulls
    np.testing.assert_allclose(paid, weights(pulls) * pulls, rtol=1e-4, atol=1e-5)
    assert callback.bonus.num_rewards == pulls.sum() > 0


def test_sb3s_head_learns_by_what_is_left_of_the_weight():
    sb3 = pytest.importorskip("stable_baselines3")
    from softcount.integrations.sb3 import IntrinsicRewardCallback

    callback = IntrinsicRewardCallback("RND", **OPTIONS)
    sb3.PPO("MlpPolicy", sb3_levers(), n_steps=6, batch_size=12, seed=0, device="cpu").learn(12, callback)
    critic, num = callback.bonus.critic, callback.bonus.num_rewards
    assert num > 0
    rate = critic.config.learning_rate * AFTER / (AFTER + num)
    assert critic.optimiser.param_groups[0]["lr"] == pytest.approx(rate)


def test_sb3s_replay_counts_the_games_rewards_and_scores_by_what_is_left():
    sb3 = pytest.importorskip("stable_baselines3")
    from softcount.integrations.sb3 import IntrinsicReplayBuffer

    kwargs = {"bonus": "RND", "bonus_options": OPTIONS, "baseline": "none"}
    model = sb3.DQN(
        "MlpPolicy",
        sb3_levers(),
        replay_buffer_class=IntrinsicReplayBuffer,
        replay_buffer_kwargs=kwargs,
        seed=0,
        device="cpu",
    ).learn(40)
    buffer = model.replay_buffer
    num = int(buffer.actions[: buffer.pos].sum())
    assert buffer.bonus.num_rewards == num > 0
    batch = buffer.sample(30)
    expected = (7.0 + 2.0 * AFTER / (AFTER + num)) * batch.next_observations[:, :1]
    torch.testing.assert_close(batch.rewards, expected)
