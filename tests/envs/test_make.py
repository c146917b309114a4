import builtins
import importlib.util

import numpy as np
import pytest

from softcount.envs import families
from softcount.envs.disco_maze import DiscoMaze, DiscoMazeConfig
from softcount.envs.dm_hard_8 import LEVELS
from softcount.envs.make import listing, make, make_env, parse_option, parse_tasks
from softcount.envs.noise import NoisyVector
from softcount.envs.tasks import TaskVector, seeds_of_tasks
from softcount.types import ArraySpec, ContinuousActions, DiscreteActions, VectorEnv


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("disco-maise", "disco-maze"),
        ("atari/montezuma_revange", "atari/montezuma_revenge"),
        ("montezuma", "atari/montezuma_revenge"),
        ("minigrid/MultiRoom-N4-S5", "minigrid/MultiRoom-N4-S5-v1"),
        ("vizdoom/mywayhome-sparse", "vizdoom/my-way-home-sparse"),
        ("dm-hard-8/basebal", "dm-hard-8/baseball"),
        ("eight-rooms/throw-across", "eight-rooms/throw_across"),
        ("noisy-disco-mase", "disco-maze"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(name, nearest):
    for build in (make, make_env):
        with pytest.raises(ValueError, match=f"no environment is called .*; did you mean '{nearest}'"):
            build(name)


def test_a_family_alone_and_unknown_options_are_explained():
    with pytest.raises(ValueError, match="'atari' is a family; expected a name such as 'atari/gravitar'"):
        make("atari")
    with pytest.raises(ValueError, match="no option 'windo'; did you mean 'window'"):
        make("disco-maze", windo=5)
    with pytest.raises(ValueError, match="no option 'sticky_probabilty'; did you mean 'sticky_probability'"):
        make("atari/pitfall", sticky_probabilty=0.25)
    with pytest.raises(ValueError, match="num_envs is 0"):
        make("disco-maze", num_envs=0)


def test_the_listing_names_what_is_there_and_what_to_install():
    rows = {row.name: row for row in listing()}
    assert len(rows) == len(listing())
    assert rows["disco-maze"].install == "`pip install .` in a checkout of softcount"
    assert rows["atari/montezuma_revenge"].install == '`pip install ".[atari]"` in a checkout of softcount'
    assert {
        "noisy-atari/montezuma_revenge",
        "vizdoom/my-way-home-very-sparse",
        "dm-hard-8/throw_across",
    } <= set(rows)
    assert all(row.is_installed for row in rows.values())
    assert families.FAMILIES["dm-hard-8"].names == families.FAMILIES["eight-rooms"].names == tuple(LEVELS)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("atari/pitfall", "ale_py", "atari"),
        ("minigrid/MultiRoom-N6-v0", "minigrid", "minigrid"),
        ("vizdoom/my-way-home", "vizdoom", "vizdoom"),
        ("dm-hard-8/baseball", "dm_env_rpc", "dm-hard-8"),
    ],
)
def test_a_missing_package_is_listed_and_the_error_names_the_extra(name, package, extra, monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(families, "find_spec", lambda wanted: None if wanted == package else find(wanted))
    assert not {row.name: row for row in listing()}[name].is_installed
    with pytest.raises(ImportError, match=rf'{package}.*pip install "\.\[{extra}\]"'):
        make(name)


def test_noise_on_the_maze_needs_no_gymnasium(monkeypatch):
    original = builtins.__import__

    def refuse(name, *rest, **options):
        assert not name.startswith("gymnasium")
        return original(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert make("noisy-disco-maze", size=7).reset().observation.shape == (1, 14, 7, 3)


def test_copies_already_built_are_closed_when_a_later_one_fails(monkeypatch):
    closed = []

    class Fragile:
        def close(self):
            closed.append(self)

    def build(rest, copy, options):
        if copy == 2:
            raise OSError("no more")
        return Fragile()

    family = families.Family("", "envs", (), ("one",), build)
    monkeypatch.setitem(families.FAMILIES, "fragile", family)
    with pytest.raises(OSError, match="no more"):
        make("fragile/one", num_envs=4)
    assert len(closed) == 2


def test_every_game_of_ale_py_can_be_named_and_options_reach_it():
    env = make("atari/breakout", num_envs=2, size=(84, 84), full_actions=False)
    assert isinstance(env, VectorEnv)
    assert env.action_spec.num == 4
    assert env.reset().observation.shape == (2, 84, 84, 1)
    assert env.step(np.array([0, 3])).place is None


class Numbered:
    """A vector environment that knows how it was built; also good for a family of them."""

    observation_spec, action_spec, num_places = ArraySpec((), "float32"), DiscreteActions(2), None

    def __init__(self, rest, num_envs, seed, options):
        self.rest, self.num_envs, self.seed, self.options = rest, num_envs, seed, options
        self.task_ids, self.task_names = np.zeros(num_envs, np.int64), ("unnamed",)
        self.is_closed = False

    def close(self):
        self.is_closed = True


@pytest.fixture
def numbered(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("built one by one")

    names = ("one", "two", "three")
    family = families.Family("", "envs", (), names, refuse, build_vector=Numbered)
    monkeypatch.setitem(families.FAMILIES, "numbered", family)
    return names


def test_a_family_may_build_its_vector_environment_itself(numbered):
    env = make("numbered/two", num_envs=3, seed=5, speed=2)
    assert isinstance(env, Numbered)
    assert (env.rest, env.num_envs, env.seed, env.options) == ("two", 3, 5, {"speed": 2})


def test_one_task_is_called_as_it_was_asked_for():
    assert make("disco-maze", size=7).task_names == ("disco-maze",)
    assert make("disco-maze:size=7").task_names == ("disco-maze",)
    assert make("noisy-disco-maze", size=7).task_names == ("noisy-disco-maze",)
    env = make("minigrid/MultiRoom-N2-S4-v0", num_envs=2)
    assert env.task_names == ("minigrid/MultiRoom-N2-S4-v0",)
    assert env.task_ids.tolist() == [0, 0]


def test_one_task_in_a_list_is_that_task_with_its_options_and_the_seed_as_given():
    env = make("disco-maze:size=9:lethal=false", num_envs=2, seed=3)
    plain = DiscoMaze(DiscoMazeConfig(size=9, lethal=False), num_envs=2, seed=3)
    assert isinstance(env, DiscoMaze)
    assert env.config == plain.config
    assert np.array_equal(env.reset().observation, plain.reset().observation)
    assert make_env("disco-maze:size=9").observation_space.shape == (9, 9, 3)


def test_tasks_keep_their_order_share_the_copies_and_set_their_own_options_over_the_common(numbered):
    env = make(" numbered/two:speed=3:mode=fast, numbered/one", num_envs=6, seed=8, speed=1, depth=4)
    assert isinstance(env, TaskVector)
    assert env.task_names == ("numbered/two", "numbered/one")
    assert env.task_ids.tolist() == [0, 0, 0, 1, 1, 1]
    assert [part.rest for part in env.envs] == ["two", "one"]
    assert [part.seed for part in env.envs] == seeds_of_tasks(8, 2)
    assert env.envs[0].options == {"speed": 3, "depth": 4, "mode": "fast"}
    assert env.envs[1].options == {"speed": 1, "depth": 4}


def test_tasks_of_one_name_are_told_apart_by_their_own_options():
    env = make("disco-maze:layout=1,disco-maze,disco-maze:layout=2:lethal=false", num_envs=3, size=7)
    assert env.task_names == ("disco-maze:layout=1", "disco-maze", "disco-maze:layout=2:lethal=false")
    assert [part.config.layout for part in env.envs] == [1, 0, 2]
    assert [part.config.lethal for part in env.envs] == [True, True, False]
    with pytest.raises(ValueError, match="the tasks are called disco-maze, disco-maze; expected different"):
        make("disco-maze,disco-maze", num_envs=2)


def test_a_list_starts_with_the_seed_as_if_reset_with_it():
    names = "noisy-disco-maze:layout=1,noisy-disco-maze:layout=2"
    first, second = make(names, num_envs=4, seed=6, size=7), make(names, num_envs=4, seed=1, size=7)
    assert np.array_equal(first.reset().observation, second.reset(6).observation)


def test_noise_is_added_task_by_task_with_streams_of_their_own():
    env = make("noisy-disco-maze:layout=1,noisy-disco-maze:layout=2", num_envs=4, seed=2, size=7)
    alone = [
        make("noisy-disco-maze", num_envs=2, seed=seed, size=7, layout=layout)
        for seed, layout in zip(seeds_of_tasks(2, 2), (1, 2), strict=True)
    ]
    assert [type(part) for part in env.envs] == [NoisyVector, NoisyVector]
    observation = env.reset().observation
    assert np.array_equal(observation, np.concatenate([part.reset().observation for part in alone]))
    assert not np.array_equal(observation[:2, 7:], observation[2:, 7:])
    with pytest.raises(
        ValueError, match=r"observations of noisy-disco-maze are .*14, 7.*, of disco-maze .*7, 7"
    ):
        make("noisy-disco-maze,disco-maze", num_envs=2, size=7)


def test_all_of_a_family_are_the_names_that_it_lists(numbered):
    env = make("numbered/all:speed=2", num_envs=6)
    assert env.task_names == ("numbered/one", "numbered/two", "numbered/three")
    assert [part.rest for part in env.envs] == ["one", "two", "three"]
    assert all(part.options == {"speed": 2} for part in env.envs)
    mixed = [task.name for task in parse_tasks("disco-maze,noisy-numbered/all")]
    assert mixed == ["disco-maze", "noisy-numbered/one", "noisy-numbered/two", "noisy-numbered/three"]
    for family in ("atari", "dm-hard-8", "minigrid"):
        found = [task.name for task in parse_tasks(f"{family}/all")]
        assert found == [f"{family}/{name}" for name in families.FAMILIES[family].names]


def test_all_of_minigrid_go_side_by_side():
    env = make("minigrid/all", num_envs=2 * len(families.GRID_TASKS), seed=1)
    assert env.task_names == tuple(f"minigrid/{name}" for name in families.GRID_TASKS)
    step = env.reset()
    for task, (name, seed) in enumerate(zip(env.task_names, seeds_of_tasks(1, 7), strict=True)):
        own = make(name, num_envs=2, seed=seed).reset()
        rows = slice(2 * task, 2 * task + 2)
        assert np.array_equal(step.observation[rows], own.observation)
        assert [part.tolist() for part in env.split_places(step.place[rows])] == [
            [task] * 2,
            own.place.tolist(),
        ]


@pytest.mark.parametrize("name", ["server/all", "noisy-server/all"])
def test_copies_are_numbered_through_all_tasks(name, monkeypatch):
    built = []

    def build(rest, copy, options):
        built.append((rest, copy))
        return make_env("disco-maze", size=7)

    family = families.Family("", "envs", (), ("one", "two"), build)
    monkeypatch.setitem(families.FAMILIES, "server", family)
    make(name, num_envs=6).close()
    assert built == [("one", 0), ("one", 1), ("one", 2), ("two", 3), ("two", 4), ("two", 5)]


@pytest.mark.parametrize(("num_envs", "advised"), [(1, 3), (4, 6), (8, 9)])
def test_copies_that_cannot_be_shared_out_are_refused_with_advice(num_envs, advised):
    names = "disco-maze:layout=1,disco-maze:layout=2,disco-maze:layout=3"
    with pytest.raises(
        ValueError,
        match=f"num_envs is {num_envs}, but .* 3 tasks; expected a multiple of 3, such as {advised}",
    ):
        make(names, num_envs=num_envs)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (
            "disco-maze,disco-maise:layout=2",
            "task 2 of 2, 'disco-maise:layout=2': no environment .* 'disco-maise'; did you mean 'disco-maze'",
        ),
        (
            "atari/montezuma_revange,disco-maze",
            "task 1 of 2, 'atari/montezuma_revange': .* did you mean 'atari/montezuma_revenge'",
        ),
        ("disco-maze,minigird/all", "task 2 of 2, 'minigird/all': .* did you mean 'minigrid/all'"),
        ("disco-maze,disco-maze:windo=5", "task 2 of 2, 'disco-maze:windo=5': .* did you mean 'window'"),
        ("disco-maze,atari", "task 2 of 2, 'atari': 'atari' is a family; .*'atari/gravitar', or 'atari/all'"),
        ("disco-maze,,disco-maze:layout=1", "has a task without a name"),
        ("disco-maze:layout=1,", "has a task without a name"),
        ("disco-maze:layout,disco-maze", "'layout' is no option; expected NAME=VALUE"),
        ("disco-maze:=3,disco-maze", "'=3' is no option; expected NAME=VALUE"),
    ],
)
def test_what_is_wrong_with_an_element_of_a_list_is_said_of_it(names, message):
    with pytest.raises(ValueError, match=message):
        make(names, num_envs=2)


def test_tasks_already_built_are_closed_when_a_later_one_fails(numbered, monkeypatch):
    built = []

    def build(*arguments):
        built.append(Numbered(*arguments))
        return built[-1]

    family = families.Family("", "envs", (), numbered, build, build_vector=build)
    monkeypatch.setitem(families.FAMILIES, "numbered", family)
    for last in ("numbered/four", "disco-maze"):  # unknown, and of other specs
        built.clear()
        with pytest.raises(ValueError, match=r"four|specs"):
            make(f"numbered/one,numbered/two,{last}", num_envs=3)
        assert [part.is_closed for part in built] == [True, True]
    make("numbered/one,numbered/two", num_envs=2)
    assert [part.is_closed for part in built[2:]] == [False, False]


def test_one_gymnasium_environment_is_one_task():
    with pytest.raises(ValueError, match="'disco-maze,minigrid/MultiRoom-N6-v0' names 2 tasks; expected one"):
        make_env("disco-maze,minigrid/MultiRoom-N6-v0")


def test_commas_in_brackets_belong_to_a_value_and_not_to_the_list_of_tasks():
    tasks = parse_tasks("atari/pitfall:size=(84,84):stack=2,disco-maze,atari/hero:actions=[UP,DOWN]")
    assert [task.name for task in tasks] == ["atari/pitfall", "disco-maze", "atari/hero"]
    assert tasks[0].options == {"size": (84, 84), "stack": 2}
    assert tasks[2].options == {"actions": ("UP", "DOWN")}


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("size=7", ("size", 7)),
        ("goal_reward=0.5", ("goal_reward", 0.5)),
        ("lethal=false", ("lethal", False)),
        ("lethal=True", ("lethal", True)),
        ("view=rgb", ("view", "rgb")),
        ("view='rgb'", ("view", "rgb")),
        ("note=a=b", ("note", "a=b")),
        ("size=(84, 84)", ("size", (84, 84))),
        ("size=84,84", ("size", (84, 84))),
        ("size=[84,84]", ("size", (84, 84))),
        ("actions=NOOP,LEFT", ("actions", ("NOOP", "LEFT"))),
        ("actions=(NOOP,)", ("actions", ("NOOP",))),
        ("mixed=true,1,0.5,a", ("mixed", (True, 1, 0.5, "a"))),
        ("actions=()", ("actions", ())),
        ("note={1: 2}", ("note", "{1: 2}")),
    ],
)
def test_values_of_options_are_read_as_what_they_look_like(text, option):
    name, value = parse_option(text)
    assert (name, value) == option
    assert type(value) is type(option[1])


def test_registered_environments_and_toys_are_made_by_name():
    pole = make("gym/CartPole-v1", num_envs=2)
    assert pole.reset(seed=0).observation.shape == (2, 4)
    assert make("gym/MountainCarContinuous-v0").action_spec == ContinuousActions((-1.0,), (1.0,))
    chain = make("toy/chain", num_envs=3, length=5)
    assert chain.reset(seed=0).observation.shape == (3, 6)
    assert make_env("toy/catch", rows=4).reset(seed=0)[0].shape == (4, 5)
    with pytest.raises(ValueError, match="did you mean 'gym/CartPole-v1'"):
        make("gym/CartPole-v9")
    with pytest.raises(ValueError, match="Chain has no option 'lenght'; did you mean 'length'"):
        make("toy/chain", lenght=5)
