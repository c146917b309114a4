"""One adapter serves both: DM-HARD-8's wraps Eight Rooms directly, and over the wire."""

import unittest

import numpy as np
import pytest
from dm_env import test_utils
from dm_env_rpc.v1 import dm_env_rpc_pb2 as pb
from dm_env_rpc.v1 import tensor_utils
from fakes import dm_hard_8_server as fake
from gymnasium.utils.env_checker import check_env

from softcount.envs.dm_hard_8 import LEVELS, DmHard8, DmHard8Config
from softcount.envs.eight_rooms.tasks import TASKS
from softcount.envs.eight_rooms.vector import EightRooms, EightRoomsConfig
from softcount.envs.eight_rooms.world import EightRoomsWorld
from softcount.envs.nine_actions import ACTIONS, action_table
from softcount.envs.vector import GymnasiumVector

pytestmark = pytest.mark.timeout(60)


def config(task="wall_sensor", **options):
    return EightRoomsConfig(
        **{"task": task, "variant": "tiny", "width": 32, "height": 24, "max_steps": 30, **options}
    )


class TestAsADmEnvironment(test_utils.EnvironmentTestMixin, unittest.TestCase):
    """dm_env's own battery."""

    def make_object_under_test(self):
        return EightRoomsWorld(config())

    def make_action_sequence(self):
        rng = np.random.default_rng(0)
        for _ in range(80):
            yield {name: rng.uniform(*bounds) for name, bounds in ACTIONS.items()}


@pytest.mark.parametrize("task", TASKS)
def test_the_adapter_wraps_every_task_unchanged(task):
    world = EightRoomsWorld(config(task), seed=3)
    env = DmHard8(DmHard8Config(level=task), world=world)
    direct = EightRooms(config(task), seed=3)
    observation, info = env.reset()
    assert np.array_equal(observation, direct.reset().observation[0])
    assert info == {"score": 0.0}
    rng, total = np.random.default_rng(0), 0.0
    for _ in range(25):
        action = int(rng.integers(len(action_table())))
        observation, reward, _, _, info = env.step(action)
        step = direct.step(np.array([action]))
        assert np.array_equal(observation, step.observation[0])
        assert reward == step.reward[0]
        total += reward
        assert info["score"] == pytest.approx(total, abs=1e-5)


def test_names_order_and_bounds_are_the_published_ones():
    assert set(TASKS) == set(LEVELS)
    world = EightRoomsWorld(config())
    assert list(world.action_spec()) == list(ACTIONS)
    for name, spec in world.action_spec().items():
        assert (float(spec.minimum), float(spec.maximum)) == ACTIONS[name]
    assert set(world.observation_spec()) == {
        "RGB_INTERLEAVED",
        "ACCELERATION",
        "HAND_FORCE",
        "HAND_IS_HOLDING",
        "HAND_DISTANCE",
        "Score",
    }


def test_actions_that_are_not_sent_stick():
    one, other = EightRoomsWorld(config(), seed=1), EightRoomsWorld(config(), seed=1)
    one.reset(), other.reset()
    one.step({"MOVE_BACK_FORWARD": 1.0})
    other.step({"MOVE_BACK_FORWARD": 1.0})
    moved = one.step({})
    stopped = other.step({"MOVE_BACK_FORWARD": 0.0})
    assert not np.array_equal(moved.observation["RGB_INTERLEAVED"], stopped.observation["RGB_INTERLEAVED"])
    with pytest.raises(ValueError, match="no action is called 'JUMP'"):
        one.step({"JUMP": 1.0})


def test_the_apple_is_terminal_and_the_limit_is_not():
    env = DmHard8(DmHard8Config(), world=EightRoomsWorld(config(assist=3)))
    env.reset()
    steps = [env.step(1)]
    while not (steps[-1][2] or steps[-1][3]):
        steps.append(env.step(1))
    assert steps[-1][1:4] == (10.0, True, False)
    env = DmHard8(DmHard8Config(), world=EightRoomsWorld(config(max_steps=2)))
    env.reset()
    assert [env.step(0)[2:4] for _ in range(2)] == [(False, False), (False, True)]


@pytest.mark.parametrize("observation", ["image", "all"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gymnasiums_checker_passes_through_the_adapter(observation):
    settings = DmHard8Config(observation=observation, actions="continuous")
    env = DmHard8(settings, world=lambda seed: EightRoomsWorld(config(), seed))
    check_env(env, skip_render_check=True)


class RoomsOnTheWire(fake.World):
    """The loopback server's world with a real one behind it."""

    def on_join_world(self, request, response):
        super().on_join_world(request, response)
        names = {level: task for task, level in LEVELS.items()}
        height, width, _ = self.shape
        task = names[str(self.settings["levelName"])]
        self.world = EightRoomsWorld(config(task, assist=3, width=width, height=height), self.seed)

    def on_step(self, request, response):
        if not self.is_running:
            step, self.is_running = self.world.reset(), True
        else:
            names = {uid: spec.name for uid, spec in self.specs.actions.items()}
            step = self.world.step(
                {names[uid]: float(tensor_utils.unpack_tensor(t)) for uid, t in request.actions.items()}
            )
        response.state = pb.EnvironmentStateType.RUNNING
        if step.last():
            self.is_running = False
            kinds = pb.EnvironmentStateType
            response.state = kinds.TERMINATED if step.discount == 0 else kinds.INTERRUPTED
        values = {**step.observation, "reward": np.float64(step.reward or 0.0)}
        for uid in request.requested_observations:
            response.observations[uid].CopyFrom(
                tensor_utils.pack_tensor(values[self.specs.observations[uid].name])
            )


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setattr(fake, "World", RoomsOnTheWire)
    with fake.LoopbackServer() as running:
        yield running


def test_the_adapter_plays_a_task_over_the_wire_as_it_does_directly(server):
    settings = DmHard8Config(port=server.port, level="baseball", seed=5, width=32, height=24, timeout=5.0)
    remote = DmHard8(settings)
    local = DmHard8(settings, world=EightRoomsWorld(config("baseball", assist=3), seed=5))
    assert np.array_equal(remote.reset()[0], local.reset()[0])
    for _ in range(30):
        ours, theirs = remote.step(1), local.step(1)
        assert np.array_equal(ours[0], theirs[0])
        assert ours[1:] == theirs[1:]
        if ours[2]:
            break
    assert ours[1:4] == (10.0, True, False)
    remote.close()


def test_copies_over_the_wire_make_a_vector_environment(server):
    settings = DmHard8Config(port=server.port, level="drawbridge", width=32, height=24, timeout=5.0)
    env = GymnasiumVector([DmHard8(settings) for _ in range(2)], seed=0)
    assert env.reset().is_first.all()
    ends = [env.step(np.array([1, 0])).is_last.tolist() for _ in range(12)]
    assert [True, False] in ends
    env.close()
