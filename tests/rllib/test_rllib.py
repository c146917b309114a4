"""RLlib: the loss sees the bonus, reports do not; one memory serves all. Run by `make test-rllib`."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

pytest.importorskip("ray.rllib")
import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.connectors.connector_v2 import ConnectorV2
from ray.rllib.env.single_agent_episode import SingleAgentEpisode

from softcount.bonuses import NormaliserConfig
from softcount.integrations import Fading, IntrinsicRewardConfig
from softcount.integrations.gymnasium import IntrinsicRewardWrapper
from softcount.integrations.rllib import Chunk, EpisodeMemory, IntrinsicConnector
from softcount.representations.compose import Function

PLAIN = IntrinsicRewardConfig(normaliser=NormaliserConfig(kind="none"))
NUM_ENVS = 2


class Lever(gymnasium.Env):
    """Observes whether the lever was pulled (action 1) in the last step. Never pays anything."""

    observation_space = spaces.Box(0, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, config=None):
        self.time = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.array([0.0, 0.5], np.float32), {}

    def step(self, action):
        self.time += 1
        return np.array([float(action == 1), 0.5], np.float32), 0.0, self.time == 8, False, {}


def pulled(observation):
    return observation[:, 0]


def not_pulled(observation):
    return 1 - observation[:, 0]


class Watch(ConnectorV2):
    """Keeps the rewards as the loss will get them."""

    seen: list = []  # noqa: RUF012

    def __call__(self, *, episodes, batch, **kwargs):
        Watch.seen += [episode.get_rewards().copy() for episode in episodes]
        return batch


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def config(connectors=(), seed=0):
    return (
        PPOConfig()
        .environment(Lever)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=NUM_ENVS)
        .training(train_batch_size=128, minibatch_size=64, num_epochs=4, lr=3e-3)
        .learners(learner_connector=lambda o, a: [make(o, a) for make in connectors])
        .debugging(seed=seed)
    )


def bonus(surprise, **options):
    arguments = {"name": "RND", "num_envs": NUM_ENVS, "encoder": Function(surprise), "config": PLAIN}
    return lambda o, a: IntrinsicConnector(o, a, **arguments, **options)


def weights(algorithm):
    return algorithm.get_module().get_state()


def chance_of_pulling(algorithm):
    import torch

    with torch.no_grad():
        inputs = {"obs": torch.tensor([[0.0, 0.5], [1.0, 0.5]])}
        logits = algorithm.get_module().forward_inference(inputs)["action_dist_inputs"]
    return torch.softmax(logits, -1)[:, 1].mean().item()


@pytest.mark.parametrize(("surprise", "sign"), [(pulled, 1), (not_pulled, -1)])
def test_ppo_learns_what_the_bonus_pays_for_and_reports_the_games_own_returns(surprise, sign):
    Watch.seen = []
    algorithm = config([bonus(surprise), lambda o, a: Watch(o, a)]).build_algo()
    before = chance_of_pulling(algorithm)
    for _ in range(3):
        result = algorithm.train()
    assert sign * (chance_of_pulling(algorithm) - before) > 0.05
    assert result["env_runners"]["episode_return_mean"] == 0.0
    rewards = np.concatenate([row[:-1] for row in Watch.seen])
    assert set(np.unique(rewards)) == {0.0, 1.0}
    assert all(row[-1] == 0 for row in Watch.seen)  # the step that RLlib adds is not paid
    algorithm.stop()


def test_of_weight_0_it_is_rllibs_own_run_bit_for_bit():
    runs = []
    for connectors in ([], [bonus(pulled, weight=0.0)]):
        algorithm = config(connectors).build_algo()
        algorithm.train()
        runs.append(weights(algorithm))
        algorithm.stop()
    assert runs[0].keys() == runs[1].keys()
    assert all(np.array_equal(runs[0][name], runs[1][name]) for name in runs[0])


def test_a_named_memory_is_shared_by_all_connectors():
    episode = SingleAgentEpisode(
        id_="a",
        observations=[np.zeros(2, np.float32), np.ones(2, np.float32), np.zeros(2, np.float32)],
        actions=[1, 0],
        rewards=[0.0, 0.0],
        len_lookback_buffer=0,
    )
    spaces_of_it = (Lever.observation_space, Lever.action_space)
    connectors = [
        IntrinsicConnector(*spaces_of_it, name="RND", num_envs=2, memory="shared") for _ in range(2)
    ]
    for connector in connectors:
        connector(episodes=[episode], batch={})
    assert [connector.metrics()["steps"] for connector in connectors] == [
        2.0,
        2.0,
    ]  # one step of each is RLlib's
    ray.kill(ray.get_actor("shared"))


def test_a_weight_that_falls_by_the_games_rewards_is_refused():
    with pytest.raises(ValueError, match="rewards of episodes are not counted here"):
        EpisodeMemory("RND", spaces.Box(0, 1, (1,)), spaces.Discrete(2), 2, weight=Fading(1.0, after=5))


def test_pieces_of_episodes_are_streams_that_go_on():
    space = spaces.Box(0, 100, (1,), np.float32)
    memory = EpisodeMemory("RECODE-AP", space, spaces.Discrete(2), 2)

    def piece(episode, first, last, is_terminated=False):
        rows = [np.array([x], np.float32) for x in range(first, last + 1)]
        return Chunk(episode, rows, [0] * (last - first), is_terminated)

    memory.pay([piece("a", 0, 3), piece("b", 10, 12)])
    memory.pay([piece("b", 12, 14, True), piece("a", 3, 5), piece("c", 20, 22), piece("d", 30, 31)])
    history = memory.bonus.history
    rows = [history.latest(np.array([i]), int(history.num_rows[i])).steps for i in range(2)]
    seen = [(step.observation[:, 0, 0].tolist(), step.is_first[:, 0].tolist()) for step in rows]
    assert seen[0][0] == [0, 1, 2, 3, 4, 5, 30, 31]
    assert seen[1][0] == [10, 11, 12, 13, 14, 20, 21, 22]
    assert [x for x, is_first in zip(*seen[0]) if is_first] == [0, 30]
    assert [x for x, is_first in zip(*seen[1]) if is_first] == [10, 20]
    assert rows[1].is_terminal[:, 0].tolist() == [False] * 4 + [True] + [False] * 3


def test_a_vector_environment_with_the_wrapper_trains_and_pays():
    def make(env_config):
        from gymnasium.vector import SyncVectorEnv

        envs = SyncVectorEnv([Lever] * env_config.get("num_envs", NUM_ENVS))
        return IntrinsicRewardWrapper(envs, "RND", encoder=Function(pulled), config=PLAIN)

    ray.tune.register_env("levers", make)
    Watch.seen = []
    settings = config([lambda o, a: Watch(o, a)]).environment("levers")
    settings = settings.env_runners(gym_env_vectorize_mode="vector_entry_point")
    algorithm = settings.build_algo()
    algorithm.train()
    assert set(np.unique(np.concatenate([row[:-1] for row in Watch.seen]))) == {0.0, 1.0}
    algorithm.stop()
