"""Stable-Baselines3: the bonus reaches returns, advantages and the policy; off, nothing changes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces
from integrations.worlds import Counter, Lever, not_pulled, pulled

pytest.importorskip("stable_baselines3")
from stable_baselines3 import DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

from softcount.bonuses import NormaliserConfig
from softcount.integrations import IntrinsicRewardConfig
from softcount.integrations.critic import CriticConfig
from softcount.integrations.sb3 import IntrinsicRewardCallback, IntrinsicVecEnv
from softcount.memory import RecodeConfig
from softcount.representations.compose import Function

PLAIN = IntrinsicRewardConfig(normaliser=NormaliserConfig(kind="none"))
SMALL = IntrinsicRewardConfig(
    memory=RecodeConfig(size=50, neighbours=3, warmup_atoms=5),
    normaliser=NormaliserConfig(kind="none"),
    steps_per_update=16,
    first_update=32,
    batch_size=4,
    sequence_length=5,
    history_size=600,
)
SMALL_PPO = {"n_steps": 16, "batch_size": 32, "n_epochs": 4, "seed": 0, "device": "cpu"}


def levers(num=4):
    return DummyVecEnv([Lever] * num)


def counters():
    return DummyVecEnv([lambda i=i: Counter(i) for i in range(3)])


def probability_of_pulling(model):
    obs = torch.tensor([[0.0, 0.5], [1.0, 0.5]])
    return model.policy.get_distribution(obs).distribution.probs[:, 1].mean().item()


def parameters(model):
    return {key: value.clone() for key, value in model.policy.state_dict().items()}


def assert_equal(one, two):
    assert one.keys() == two.keys()
    assert all(torch.equal(one[key], two[key]) for key in one)


class Watch(BaseCallback):
    """Keeps the rollout buffer as the loss gets it."""

    def _on_step(self):
        return True

    def _on_rollout_end(self):
        buffer = self.locals["rollout_buffer"]
        self.rewards, self.advantages = buffer.rewards.copy(), buffer.advantages.copy()
        self.values, self.starts = buffer.values.copy(), buffer.episode_starts.copy()
        self.returns, self.actions = buffer.returns.copy(), buffer.actions.copy()
        self.seen = np.concatenate([buffer.observations, self.locals["new_obs"][None]])
        self.last_values = self.locals["values"].numpy().ravel()
        self.last_dones = self.locals["dones"].copy()


def expected_advantages(watch, gamma=0.99, gae_lambda=0.95):
    """GAE once more, by its definition."""
    time, width = watch.rewards.shape
    result = np.zeros((time, width))
    for i in range(width):
        running = 0.0
        for t in reversed(range(time)):
            is_over = watch.starts[t + 1, i] if t + 1 < time else watch.last_dones[i]
            following = watch.values[t + 1, i] if t + 1 < time else watch.last_values[i]
            delta = watch.rewards[t, i] + gamma * following * (1 - is_over) - watch.values[t, i]
            running = delta + gamma * gae_lambda * (1 - is_over) * running
            result[t, i] = running
    return result


def test_the_callback_adds_the_bonus_and_computes_the_advantages_anew():
    bonus = IntrinsicRewardCallback("RND", values="shared", encoder=Function(pulled), config=PLAIN)
    watch = Watch()
    PPO("MlpPolicy", levers(), **SMALL_PPO).learn(64, callback=[bonus, watch])
    without = Watch()
    PPO("MlpPolicy", levers(), **SMALL_PPO).learn(64, callback=without)
    np.testing.assert_allclose(watch.advantages, expected_advantages(watch), rtol=1e-4, atol=1e-5)
    assert set(np.unique(watch.rewards)) == {0.0, 1.0}  # the game pays nothing, the lever 1
    assert (without.rewards == 0).all()
    assert np.abs(watch.advantages - without.advantages).max() > 0.5


@pytest.mark.parametrize("values", ["head", "own"])
def test_with_values_of_its_own_the_bonus_adds_advantages_and_the_games_returns_stay(values):
    bonus = IntrinsicRewardCallback("RND", encoder=Function(pulled), config=PLAIN, weight=2.0, values=values)
    watch, without = Watch(), Watch()
    PPO("MlpPolicy", levers(), **SMALL_PPO).learn(64, callback=[bonus, watch])
    PPO("MlpPolicy", levers(), **SMALL_PPO).learn(64, callback=without)
    np.testing.assert_array_equal(watch.rewards, without.rewards)
    np.testing.assert_array_equal(watch.returns, without.returns)
    paid = 2.0 * watch.seen[1:, :, 0]  # of the observation that each action led to, but at ends
    is_over = np.concatenate([watch.starts[1:], watch.last_dones[None]]).astype(bool)
    expected, running = np.zeros_like(paid), np.zeros(4)
    for t in reversed(range(16)):
        rewards = np.where(is_over[t], 2.0 * watch.actions[t, :, 0], paid[t])
        running = rewards + 0.95 * 0.95 * running  # values are zero before the first rollout; no end cuts
        expected[t] = running
    np.testing.assert_allclose(watch.advantages - without.advantages, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("way", ["head callback", "own callback", "shared callback", "wrapper"])
@pytest.mark.parametrize(("surprise", "sign"), [(pulled, 1), (not_pulled, -1)])
def test_ppo_learns_to_do_what_the_bonus_pays_for(way, surprise, sign):
    options = {"encoder": Function(surprise), "config": PLAIN}
    env = levers()
    values, _, is_callback = way.partition(" ")
    callback = IntrinsicRewardCallback("RND", values=values, **options) if is_callback else None
    env = IntrinsicVecEnv(env, "RND", **options) if way == "wrapper" else env
    model = PPO("MlpPolicy", env, learning_rate=3e-3, **SMALL_PPO)
    before = probability_of_pulling(model)
    model.learn(64 * 4, callback=callback)
    assert sign * (probability_of_pulling(model) - before) > 0.05


@pytest.mark.parametrize(
    "way", ["callback, head", "callback, own", "callback, shared", "wrapper that pays the game's reward"]
)
def test_off_is_sb3s_own_run_bit_for_bit(way):
    plain = PPO("MlpPolicy", VecMonitor(counters()), **SMALL_PPO)
    plain.learn(16 * 3 * 4)
    env, callback = VecMonitor(counters()), None
    if way.startswith("callback"):
        values = way.partition(", ")[2]
        callback = IntrinsicRewardCallback("RECODE-AP", values=values, weight=0.0, config=SMALL)
    else:
        env = IntrinsicVecEnv(env, "RECODE-AP", reward="extrinsic", config=SMALL)
    model = PPO("MlpPolicy", env, **SMALL_PPO).learn(16 * 3 * 4, callback=callback)
    assert_equal(parameters(plain), parameters(model))
    bonus = callback.bonus if callback else env.bonus
    assert bonus.num_steps == 16 * 3 * 4
    assert bonus.trainer.num_updates > 0


def test_dqn_learns_from_the_bonus_and_without_it_runs_as_ever():
    options = {
        "learning_starts": 50,
        "train_freq": 1,
        "gradient_steps": 4,
        "seed": 0,
        "device": "cpu",
        "gamma": 0.0,
    }
    env = IntrinsicVecEnv(levers(), "RND", encoder=Function(pulled), config=PLAIN)
    model = DQN("MlpPolicy", env, learning_rate=3e-3, **options).learn(300)
    buffer = model.replay_buffer
    stored = buffer.rewards[: buffer.pos]
    np.testing.assert_array_equal(stored, buffer.next_observations[: buffer.pos, :, 0])
    values = model.q_net(torch.tensor([[0.0, 0.5]]))[0]
    assert values[1] > values[0] + 0.3
    plain = DQN("MlpPolicy", counters(), **options).learn(300)
    env = IntrinsicVecEnv(counters(), "RECODE-AP", reward="extrinsic", config=SMALL)
    assert_equal(parameters(plain), parameters(DQN("MlpPolicy", env, **options).learn(300)))


def test_final_observations_are_embedded_and_reset_frames_are_no_transitions():
    env = IntrinsicVecEnv(counters(), "RECODE-AP", config=SMALL)
    env.reset()
    for _ in range(40):
        env.step(np.zeros(3, int))
    for copy in range(3):
        num = int(env.bonus.history.num_rows[copy])
        rows = env.bonus.history.latest(np.array([copy]), num).steps
        times = rows.observation[:, 0, 2]
        np.testing.assert_array_equal(rows.is_first[:, 0], times == 0)
        assert ((np.diff(times) == 1) | (times[1:] == 0)).all()
        np.testing.assert_array_equal(rows.is_last[:-1, 0], times[1:] == 0)
        cut = rows.observation[:, 0, 1] % 2 == 1
        assert not rows.is_terminal[cut].any()
        assert rows.is_terminal[rows.is_last[:, 0] & ~cut].all()


def test_info_has_both_rewards_and_monitors_inside_see_the_games_own():
    env = IntrinsicVecEnv(VecMonitor(counters()), "RECODE-AP", config=SMALL, weight=50.0)
    env.reset()
    for t in range(40):
        _, rewards, dones, infos = env.step(np.full(3, t % 3))
        for reward, info in zip(rewards, infos):
            assert reward == pytest.approx(info["extrinsic_reward"] + info["intrinsic_reward"], rel=1e-5)
            assert info["extrinsic_reward"] == t % 3
        for i in np.flatnonzero(dones):
            assert infos[i]["episode"]["r"] <= 8
    assert any(info["intrinsic_reward"] > 0 for info in infos)


def test_a_saved_wrapper_pays_on_as_if_never_stopped(tmp_path):
    env = IntrinsicVecEnv(counters(), "RECODE-AP", config=SMALL)
    env.reset()
    for _ in range(30):
        env.step(np.zeros(3, int))
    env.save(tmp_path / "bonus")
    rest = []
    for source in (
        env,
        IntrinsicVecEnv.load(tmp_path / "bonus", counters(), "RECODE-AP", config=SMALL, seed=5),
    ):
        for game in source.venv.envs:
            game.unwrapped.episode = -1
        source.reset()
        rest.append([source.step(np.ones(3, int))[1] for _ in range(30)])
    np.testing.assert_array_equal(rest[0], rest[1])
    assert np.max(rest) > 1


class Screen(Lever):
    """The lever as a picture: bright where it was pulled; the last row is brighter than the rest."""

    observation_space = spaces.Box(0, 255, (40, 44, 3), np.uint8)

    @staticmethod
    def draw(observation):
        image = np.full((40, 44, 3), int(100 * observation[0]), np.uint8)
        image[-1] = 200
        return image

    def reset(self, **options):
        observation, info = super().reset(**options)
        return self.draw(observation), info

    def step(self, action):
        observation, *rest = super().step(action)
        return self.draw(observation), *rest


@pytest.mark.parametrize("way", ["callback", "wrapper"])
def test_images_arrive_channels_last_whatever_sb3_does_to_them(way):
    env, callback = DummyVecEnv([Screen, Screen]), None
    if way == "callback":
        callback = IntrinsicRewardCallback("RECODE-AP", config=SMALL)
    else:
        env = IntrinsicVecEnv(env, "RECODE-AP", config=SMALL)
    PPO("CnnPolicy", env, n_steps=20, batch_size=20, n_epochs=1, device="cpu").learn(40, callback=callback)
    bonus = callback.bonus if callback else env.bonus
    rows = bonus.history.latest(np.array([0]), 20).steps.observation[:, 0]
    assert rows.shape == (20, 40, 44, 3)
    assert (rows[:, -1] == 200).all()
    assert set(np.unique(rows[:, :-1])) == {0, 100}
    assert bonus.trainer.num_updates > 0


def test_wrong_use_is_explained():
    with pytest.raises(TypeError, match="DQN keeps no rollouts; wrap its environment in IntrinsicVecEnv"):
        DQN("MlpPolicy", levers()).learn(10, callback=IntrinsicRewardCallback("RND"))
    with pytest.raises(RuntimeError, match="built when learning starts"):
        _ = IntrinsicRewardCallback("RND").bonus
    with pytest.raises(ValueError, match="reward is 'all'"):
        IntrinsicVecEnv(levers(), "RND", reward="all")
    with pytest.raises(ValueError, match="values is 'two'; expected 'head', 'own' or 'shared'"):
        IntrinsicRewardCallback("RND", values="two")
    with pytest.raises(ValueError, match="critic would do nothing"):
        IntrinsicRewardCallback("RND", values="shared", critic=CriticConfig())


def critic_of(values, **options):
    """A model that has trained for one rollout with a bonus, and its callback."""
    callback = IntrinsicRewardCallback(
        "RND", encoder=Function(pulled), config=PLAIN, values=values, **options
    )
    return PPO("MlpPolicy", levers(), **SMALL_PPO).learn(64, callback=callback), callback


@pytest.mark.parametrize("values", ["head", "own"])
def test_a_saved_callback_brings_the_values_of_the_bonus(tmp_path, values):
    model, callback = critic_of(values)
    callback.save(tmp_path / "bonus")
    model.save(tmp_path / "model")
    other = IntrinsicRewardCallback("RND", encoder=Function(pulled), config=PLAIN, seed=7, values=values)
    other.load(tmp_path / "bonus")
    model = PPO.load(tmp_path / "model", levers(), device="cpu")
    model._setup_learn(64)
    other.init_callback(model)
    other._on_training_start()
    states = np.array([[0.0, 0.5], [1.0, 0.5]], np.float32)
    found = [each.bonus.critic.values(states) for each in (callback, other)]
    np.testing.assert_array_equal(*found)
    assert np.abs(found[0]).max() > 0


def test_the_bonus_has_a_head_on_the_features_the_policy_acts_by():
    model, callback = critic_of("head")
    states = torch.tensor([[0.0, 0.5], [1.0, 0.5]])
    with torch.no_grad():
        latent = model.policy.mlp_extractor.forward_actor(states)
        head = callback.bonus.critic.network[1]
        expected = callback.bonus.critic.unit * head(latent)[:, 0]
    found = callback.bonus.critic.values(states.numpy())
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5)
    assert np.abs(found).max() > 0


def test_the_bonus_teaches_the_policys_features_when_the_policy_has_learned():
    """With a learning rate of nothing PPO changes nothing; the value head still shapes what it acts by."""
    learners = {"learning_rate": 0.0, **SMALL_PPO}
    model = PPO("MlpPolicy", levers(), **learners)
    starts, ends = [], []

    class Look(BaseCallback):
        def _on_step(self):
            return True

        def _on_rollout_start(self):
            starts.append(parameters(self.model))

        def _on_rollout_end(self):
            ends.append(parameters(self.model))

    bonus = IntrinsicRewardCallback("RND", encoder=Function(pulled), config=PLAIN)
    model.learn(128, callback=[bonus, Look()])
    for start, end in zip(starts, ends, strict=True):
        assert_equal(start, end)  # PPO needs the policy that acted
    for now, later in ((starts[0], starts[1]), (starts[1], parameters(model))):
        changed = {name for name in now if not torch.equal(now[name], later[name])}
        assert changed == {name for name in now if name.startswith("mlp_extractor.policy_net")}


def test_a_policy_with_a_memory_is_told_to_use_values_apart():
    model = PPO("MlpPolicy", levers(), **SMALL_PPO)
    model.policy.lstm_actor = torch.nn.Identity()
    with pytest.raises(TypeError, match="no value head on a ActorCriticPolicy; use values='own'"):
        model.learn(64, callback=IntrinsicRewardCallback("RND"))


class Rooms(Lever):
    """The lever as two categories."""

    observation_space = spaces.MultiDiscrete([2, 3])

    def reset(self, **options):
        observation, info = super().reset(**options)
        return np.array([int(observation[0]), 2]), info

    def step(self, action):
        observation, *rest = super().step(action)
        return np.array([int(observation[0]), 2]), *rest


@pytest.mark.parametrize("way", ["callback", "wrapper"])
def test_categories_are_seen_as_one_hot_vectors(way):
    env, callback = DummyVecEnv([Rooms, Rooms]), None
    if way == "callback":
        callback = IntrinsicRewardCallback("RECODE-AP", config=SMALL)
    else:
        env = IntrinsicVecEnv(env, "RECODE-AP", config=SMALL)
    PPO("MlpPolicy", env, n_steps=20, batch_size=20, n_epochs=1, device="cpu").learn(80, callback=callback)
    bonus = callback.bonus if callback else env.bonus
    rows = bonus.history.latest(np.array([0]), 20).steps.observation[:, 0]
    assert set(map(tuple, rows.tolist())) == {(1, 0, 0, 0, 1), (0, 1, 0, 0, 1)}
    assert bonus.is_paying
