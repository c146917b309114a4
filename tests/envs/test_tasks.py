import gymnasium
import numpy as np
import pytest

from softcount import store
from softcount.envs.disco_maze import DiscoMaze, DiscoMazeConfig
from softcount.envs.noise import NoisyVector
from softcount.envs.tasks import TaskVector, seeds_of_tasks
from softcount.envs.toys import Catch, Chain, ToyVector
from softcount.envs.vector import GymnasiumVector
from softcount.types import ArraySpec, ContinuousActions, DiscreteActions, TimeStep, VectorEnv

COPIES = (2, 3, 1)
NAMES = ("a", "b", "c")


def mazes(seeds=(0, 0, 0), max_steps=20):
    configs = [DiscoMazeConfig(size=7, layout=i, lethal=False, max_steps=max_steps) for i in range(3)]
    return [
        DiscoMaze(config, num_envs=copies, seed=seed)
        for config, copies, seed in zip(configs, COPIES, seeds, strict=True)
    ]


def random_actions(steps, num_envs, seed=0):
    return np.random.default_rng(seed).integers(4, size=(steps, num_envs))


class Scripted:
    """Reports the places it was given, for ever; knows `num_places` of them."""

    observation_spec, action_spec = ArraySpec((), "float32"), DiscreteActions(2)
    task_names = ("scripted",)

    def __init__(self, places, num_places=None, num_envs=2):
        self.place = None if places is None else np.array(places)
        self.num_envs, self.num_places = num_envs, num_places
        self.task_ids = np.zeros(num_envs, np.int64)
        self.is_closed = False

    def reset(self, seed=None):
        no = np.zeros(self.num_envs, bool)
        nothing = np.zeros(self.num_envs, np.float32)
        return TimeStep(nothing, nothing, ~no, no, no, self.place)

    def close(self):
        self.is_closed = True


class Sliders(gymnasium.Env):
    """Shows the last action twice, under two keys."""

    observation_space = gymnasium.spaces.Dict(
        {"sum": gymnasium.spaces.Box(-9, 9, (1,)), "both": gymnasium.spaces.Box(-9, 9, (2,))}
    )
    action_space = gymnasium.spaces.Box(-1, 1, (2,))

    def reset(self, *, seed=None, options=None):
        return self.observe(np.zeros(2, np.float32)), {}

    def step(self, action):
        return self.observe(action), float(action[0]), False, False, {}

    def observe(self, action):
        return {"sum": np.array([action.sum()], np.float32), "both": np.array(action, np.float32)}


def test_every_task_goes_on_as_it_would_alone():
    env, alone = TaskVector(mazes(max_steps=200), NAMES), mazes(max_steps=200)
    assert isinstance(env, VectorEnv)
    seeds = seeds_of_tasks(7, 3)
    ours, theirs = env.reset(7), [part.reset(seed) for part, seed in zip(alone, seeds, strict=True)]
    first_place = np.repeat(np.cumsum([0, alone[0].num_places, alone[1].num_places]), COPIES)
    num_goals = np.zeros(6)
    for actions in random_actions(1500, 6):
        for field in TimeStep._fields[:-1]:
            expected = np.concatenate([getattr(step, field) for step in theirs])
            assert np.array_equal(getattr(ours, field), expected), field
            assert getattr(ours, field).dtype == expected.dtype
        assert np.array_equal(ours.place, first_place + np.concatenate([step.place for step in theirs]))
        num_goals += ours.reward
        ours = env.step(actions)
        rows = (actions[:2], actions[2:5], actions[5:])
        theirs = [part.step(own) for part, own in zip(alone, rows, strict=True)]
    assert (np.bincount(env.task_ids, num_goals) > 0).all()


def test_rows_say_which_task_they_belong_to():
    env = TaskVector(mazes(), NAMES)
    assert env.num_envs == 6
    assert env.task_names == NAMES
    assert env.task_ids.tolist() == [0, 0, 1, 1, 1, 2]
    assert env.task_ids.dtype == np.int64


def test_noise_around_tasks_keeps_them():
    noisy = NoisyVector(TaskVector(mazes(), NAMES))
    assert noisy.task_names == NAMES
    assert noisy.task_ids.tolist() == [0, 0, 1, 1, 1, 2]


def test_seeds_differ_from_task_to_task_and_without_one_the_parts_keep_theirs():
    twins = [DiscoMaze(DiscoMazeConfig(size=7), num_envs=1, seed=3) for _ in range(2)]
    env = TaskVector(twins, ("left", "right"))
    same, other = env.reset(), env.reset(5)
    assert np.array_equal(same.observation[0], same.observation[1])
    assert not np.array_equal(other.observation[0], other.observation[1])
    assert np.array_equal(env.reset(5).observation, other.observation)
    assert not np.array_equal(env.reset(6).observation, other.observation)


def test_dicts_are_joined_by_key_and_continuous_actions_reach_their_rows():
    parts = [GymnasiumVector([Sliders() for _ in range(copies)]) for copies in (1, 2)]
    env = TaskVector(parts, ("one", "two"))
    assert parts[0].task_names == ("Sliders",)
    assert env.action_spec == ContinuousActions((-1.0, -1.0), (1.0, 1.0))
    assert env.reset(0).observation["both"].shape == (3, 2)
    actions = np.array([[0.1, 0.2], [0.3, 0.5], [-0.4, 1.0]], np.float32)
    step = env.step(actions)
    assert np.array_equal(step.observation["both"], actions)
    assert np.allclose(step.observation["sum"], actions.sum(1, keepdims=True))
    assert np.array_equal(step.reward, actions[:, 0])
    assert step.place is None


def test_an_illegal_action_is_named_by_its_row_among_all():
    env = TaskVector(mazes(), NAMES)
    env.reset()
    with pytest.raises(ValueError, match="action 4 of copy 5 is illegal"):
        env.step(np.array([0, 0, 0, 0, 0, 4]))


def test_a_state_taken_in_the_middle_of_episodes_continues_in_another_instance(tmp_path):
    env, other = TaskVector(mazes(), NAMES), TaskVector(mazes(seeds=(4, 5, 6)), NAMES)
    env.reset(1)
    actions = random_actions(90, 6)
    for action in actions[:25]:
        env.step(action)
    store.save(tmp_path / "state", env.get_state(), kind="env")
    other.set_state(store.load(tmp_path / "state", kind="env"))
    for action in actions[25:]:
        for ours, theirs in zip(env.step(action), other.step(action), strict=True):
            assert np.array_equal(ours, theirs)


def test_a_state_of_other_tasks_or_in_another_order_is_refused():
    env, parts = TaskVector(mazes(), NAMES), mazes()
    with pytest.raises(ValueError, match="the state is of the tasks a, b, c; expected c, b, a"):
        TaskVector(parts[::-1], NAMES[::-1]).set_state(env.get_state())


def test_the_task_that_cannot_be_saved_is_named():
    parts = [GymnasiumVector([Sliders()]) for _ in range(2)]
    parts[0].get_state = dict
    with pytest.raises(
        NotImplementedError, match=r"the task second cannot be saved: .*Sliders.* no get_state"
    ):
        TaskVector(parts, ("first", "second")).get_state()


def test_unequal_specs_name_both_tasks_and_both_specs():
    chain, longer = ToyVector(Chain()), ToyVector(Chain(length=20))
    with pytest.raises(ValueError, match=r"observations of short are .*\(13,\).*, of long .*\(21,\)"):
        TaskVector([chain, chain, longer], ("short", "shorter", "long"))
    board = ToyVector(Catch(rows=2, columns=2))
    board.observation_spec = chain.observation_spec
    with pytest.raises(ValueError, match=r"actions of chain are .*num=2\), of board .*num=3\)"):
        TaskVector([chain, board], ("chain", "board"))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("a", "b"), "3 environments and 2 names"),
        (("a", "b", "a"), "the tasks are called a, b, a; expected different names"),
    ],
)
def test_tasks_need_one_name_each_and_no_name_twice(names, message):
    with pytest.raises(ValueError, match=message):
        TaskVector(mazes(), names)
    with pytest.raises(ValueError, match="0 environments and 0 names"):
        TaskVector([], [])


def test_places_are_numbered_task_after_task():
    parts = [Scripted([0, 4], 5), Scripted([-1, 2], 3), Scripted([9, 0], 10)]
    env = TaskVector(parts, NAMES)
    place = env.reset().place
    assert env.num_places == 18
    assert place.tolist() == [0, 4, -1, 7, 17, 8]
    assert place.dtype == np.int64
    task, within = env.split_places(place)
    assert task.tolist() == [0, 0, -1, 1, 2, 2]
    assert within.tolist() == [0, 4, -1, 2, 9, 0]
    with pytest.raises(ValueError, match="place 18 was given; expected less than 18"):
        env.split_places(np.array([3, 18]))


def test_every_place_splits_into_a_task_and_a_place_of_it():
    env = TaskVector([Scripted([0, 0], 5), Scripted([0, 0], 0), Scripted([0, 0], 2)], NAMES)
    task, within = env.split_places(np.arange(7))
    assert task.tolist() == [0, 0, 0, 0, 0, 2, 2]
    assert within.tolist() == [0, 1, 2, 3, 4, 0, 1]


def test_places_take_turns_where_a_task_does_not_know_how_many_it_has():
    env = TaskVector([Scripted([0, 4], 5), Scripted([-1, 200]), Scripted([9, 0], 10)], NAMES)
    place = env.reset().place
    assert env.num_places is None
    assert place.tolist() == [0, 12, -1, 601, 29, 2]
    task, within = env.split_places(place)
    assert task.tolist() == [0, 0, -1, 1, 2, 2]
    assert within.tolist() == [0, 4, -1, 200, 9, 0]


def test_a_task_without_places_is_nowhere_and_none_has_places_if_no_task_has():
    mixed = TaskVector([Scripted([3, 1], 5), Scripted(None, num_envs=3)], ("with", "without"))
    place = mixed.reset().place
    assert place.tolist() == [6, 2, -1, -1, -1]
    assert place.dtype == np.int64
    assert mixed.num_places is None
    assert TaskVector([Scripted(None), Scripted(None)], ("a", "b")).reset().place is None


def test_every_task_is_closed_even_if_one_fails_to():
    parts = [Scripted([0, 0]) for _ in range(3)]

    def fail():
        raise OSError("stuck")

    parts[1].close = fail
    with pytest.raises(OSError, match="stuck"):
        TaskVector(parts, NAMES).close()
    assert parts[0].is_closed
    assert parts[2].is_closed
