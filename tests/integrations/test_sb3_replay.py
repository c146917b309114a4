"""SB3's replay: what is sampled holds today's bonus, the loss sees it, and off nothing changes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from gymnasium import spaces
from integrations.worlds import Counter, Lever, pulled

pytest.importorskip("stable_baselines3")
from stable_baselines3 import DQN, SAC
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from softcount.bonuses import NormaliserConfig
from softcount.integrations import IntrinsicReward, IntrinsicRewardConfig
from softcount.integrations.relabel import Relabel
from softcount.integrations.sb3 import IntrinsicDictReplayBuffer, IntrinsicReplayBuffer
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
OPTIONS = {
    "learning_starts": 50,
    "train_freq": 1,
    "gradient_steps": 4,
    "seed": 0,
    "device": "cpu",
    "gamma": 0.0,
}


def replay(name="RND", baseline="none", kind=IntrinsicReplayBuffer, **options):
    kwargs = {"bonus": name, "bonus_options": {"config": PLAIN, **options}, "baseline": baseline}
    return {"replay_buffer_class": kind, "replay_buffer_kwargs": kwargs}


def levers(num=2):
    return DummyVecEnv([Lever] * num)


def counters():
    return DummyVecEnv([lambda i=i: Counter(i) for i in range(3)])


def parameters(model):
    return {key: value.clone() for key, value in model.policy.state_dict().items()}


def assert_equal(one, two):
    assert one.keys() == two.keys()
    assert all(torch.equal(one[key], two[key]) for key in one)


def test_dqn_learns_from_the_bonus_and_what_is_stored_is_the_games_own():
    env = levers()
    model = DQN("MlpPolicy", env, learning_rate=3e-3, **OPTIONS, **replay(encoder=Function(pulled))).learn(
        300
    )
    buffer = model.replay_buffer
    assert (buffer.rewards == 0).all()
    batch = buffer.sample(200)
    torch.testing.assert_close(batch.rewards, batch.next_observations[:, :1])  # where it arrives, not whence
    values = model.q_net(torch.tensor([[0.0, 0.5]]))[0]
    assert values[1] > values[0] + 0.3


def test_the_score_is_todays_and_its_mean_can_be_taken_off():
    env = levers()
    model = DQN("MlpPolicy", env, **OPTIONS, **replay(encoder=Function(pulled), weight=2.0)).learn(40)
    buffer = model.replay_buffer
    paid = np.concatenate([buffer.sample(100).rewards.numpy() for _ in range(5)])
    assert set(np.unique(paid)) == {0.0, 2.0}
    buffer.relabel = Relabel(buffer.bonus, "mean")
    batches = [buffer.sample(400).rewards.numpy() for _ in range(50)]
    assert abs(batches[0].mean()) < 1e-6  # the first batch is all that the mean knows
    assert abs(np.mean(batches)) < 0.05
    assert np.unique(batches[-1].round(4)).size == 2
    buffer.bonus.weight = lambda step: 0.0
    buffer.relabel = Relabel(buffer.bonus, "none")
    assert (buffer.sample(100).rewards == 0).all()


@pytest.mark.parametrize("normalised", [False, True])
def test_of_weight_0_it_is_sb3s_own_run_bit_for_bit(normalised):
    runs = []
    for kwargs in ({}, replay("RECODE-AP", "mean", weight=0.0)):
        if kwargs:
            kwargs["replay_buffer_kwargs"]["bonus_options"]["config"] = SMALL
        env = VecNormalize(counters()) if normalised else counters()
        runs.append(DQN("MlpPolicy", env, **OPTIONS, **kwargs).learn(300))
    assert_equal(*map(parameters, runs))
    bonus = runs[1].replay_buffer.bonus
    assert bonus.num_steps == 300
    assert bonus.trainer.num_updates > 0
    assert bonus.is_paying


def test_the_bonus_sees_observations_as_the_world_gives_them_where_sb3_normalises():
    env = VecNormalize(levers())
    model = DQN("MlpPolicy", env, **OPTIONS, **replay(encoder=Function(pulled))).learn(60)
    batch = model.replay_buffer.sample(100, env=env)
    raw = env.unnormalize_obs(batch.next_observations.numpy())
    np.testing.assert_allclose(batch.rewards[:, 0], raw[:, 0], atol=1e-4)


def test_episodes_in_the_bonuss_history_are_those_of_the_world():
    model = DQN("MlpPolicy", counters(), **OPTIONS, **replay("RECODE-AP"))
    model.replay_buffer.bonus.config = SMALL
    model.learn(120)
    model.learn(60, reset_num_timesteps=True)  # SB3 resets the environments in the middle of an episode
    history = model.replay_buffer.bonus.history
    for copy in range(3):
        rows = history.latest(np.array([copy]), int(history.num_rows[copy])).steps
        times = rows.observation[:, 0, 2]
        np.testing.assert_array_equal(rows.is_first[:, 0], times == 0)
        assert ((np.diff(times) == 1) | (times[1:] == 0)).all()
        cut = rows.observation[:, 0, 1] % 2 == 1
        assert not rows.is_terminal[cut].any()


class Slider(Lever):
    """The lever with a continuous action: pulled from above its middle, which is at 5."""

    action_space = spaces.Box(0.0, 10.0, (1,), np.float32)

    def step(self, action):
        return super().step(int(action[0] > 5))


def test_sac_learns_from_it_and_the_bonus_gets_actions_in_the_worlds_units():
    options = {**OPTIONS, "learning_starts": 20}
    model = SAC("MlpPolicy", DummyVecEnv([Slider] * 2), **options, **replay(encoder=Function(pulled))).learn(
        60
    )
    history = model.replay_buffer.bonus.history
    actions = history.latest(np.array([0]), 20).steps
    came_by, arrived = actions.prev_action[:, 0, 0], actions.observation[:, 0, 0]
    moved = ~actions.is_first[:, 0]
    np.testing.assert_array_equal(came_by[moved] > 5, arrived[moved] == 1)
    assert came_by.max() > 5


class Dicts(Lever):
    observation_space = spaces.Dict(lever=spaces.Discrete(2), rest=spaces.Box(0, 1, (1,), np.float32))

    @staticmethod
    def take(observation):
        return {"lever": int(observation[0]), "rest": observation[1:]}

    def reset(self, **options):
        observation, info = super().reset(**options)
        return self.take(observation), info

    def step(self, action):
        observation, *rest = super().step(action)
        return self.take(observation), *rest


class Tabular(Dicts):
    observation_space = spaces.Discrete(2)

    @staticmethod
    def take(observation):
        return int(observation[0])


@pytest.mark.parametrize(
    ("world", "kind", "policy"),
    [
        (Dicts, IntrinsicDictReplayBuffer, "MultiInputPolicy"),
        (Tabular, IntrinsicReplayBuffer, "MlpPolicy"),
    ],
)
def test_dicts_and_categories_are_scored_too(world, kind, policy):
    env = DummyVecEnv([world] * 2)
    kwargs = replay("RECODE-AP", kind=kind)
    kwargs["replay_buffer_kwargs"]["bonus_options"]["config"] = SMALL
    model = DQN(policy, env, **OPTIONS, **kwargs).learn(200)
    assert model.replay_buffer.bonus.is_paying
    assert model.replay_buffer.sample(50).rewards.max() > 0


def test_a_saved_replay_brings_its_bonus(tmp_path):
    kwargs = replay("RECODE-AP")
    kwargs["replay_buffer_kwargs"]["bonus_options"]["config"] = SMALL
    model = DQN("MlpPolicy", levers(), **OPTIONS, **kwargs).learn(100)
    model.save_replay_buffer(tmp_path / "replay")
    other = DQN("MlpPolicy", levers(), **OPTIONS, **kwargs)
    other.load_replay_buffer(tmp_path / "replay")
    states = np.array([[0.0, 0.5], [1.0, 0.5]], np.float32)
    np.testing.assert_array_equal(
        other.replay_buffer.bonus.score(states), model.replay_buffer.bonus.score(states)
    )
    assert other.replay_buffer.bonus.num_steps == 100
    assert other.replay_buffer.relabel.bonus is other.replay_buffer.bonus


@pytest.mark.parametrize("name", ["NGU-AP", "EMM-AP", "BYOL-Explore"])
def test_a_bonus_that_cannot_be_asked_later_is_refused_at_construction(name):
    space = spaces.Box(0, 1, (2,), np.float32)
    with pytest.raises(ValueError, match="cannot be asked again later"):
        IntrinsicReplayBuffer(100, space, spaces.Discrete(2), bonus=name)
    with pytest.raises(ValueError, match="baseline is 'median'"):
        Relabel(IntrinsicReward("RND", space, spaces.Discrete(2), num_envs=1), "median")
    assert issubclass(IntrinsicReplayBuffer, ReplayBuffer)
