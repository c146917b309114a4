"""Environments of one's own: found by id, by module and id, or by function; saved where they can be."""

from __future__ import annotations

import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from softcount.envs.make import is_own, make, make_env, parse_tasks, specs_of, with_import
from softcount.envs.own import with_state
from softcount.types import ArraySpec, DiscreteActions


@pytest.fixture(autouse=True)
def in_the_folder_of_the_worlds(monkeypatch):
    monkeypatch.chdir(Path(__file__).parent)
    yield
    sys.modules.pop("my_worlds", None)
    gymnasium.registry.pop("Walk-v0", None)


@pytest.mark.parametrize("name", ["my_worlds:Walk", "gym/my_worlds:Walk-v0"])
def test_a_world_of_ones_own_is_built_by_name(name):
    env = make(name, num_envs=2, length=3)
    assert (env.observation_spec, env.action_spec) == (ArraySpec((3,), "float32"), DiscreteActions(2))
    assert env.reset().observation.tolist() == [[1, 0, 0]] * 2
    step = env.step(np.array([1, 0]))
    assert step.observation.argmax(1).tolist() == [1, 0]  # 0 and 1 are its actions 1 and 2
    assert env.step(np.array([1, 1])).is_terminal.tolist() == [True, False]
    assert specs_of(name, {"length": 3}) == (env.observation_spec, env.action_spec)


def test_names_with_modules_have_options_and_stand_in_lists():
    tasks = parse_tasks("my_worlds:Walk:length=4,gym/my_worlds:Walk-v0,disco-maze:size=7")
    assert [(task.name, task.options) for task in tasks] == [
        ("my_worlds:Walk", {"length": 4}),
        ("gym/my_worlds:Walk-v0", {}),
        ("disco-maze", {"size": 7}),
    ]
    assert make("my_worlds:Walk:length=5,gym/my_worlds:Walk-v0", num_envs=2).num_envs == 2
    assert [is_own(task.name) for task in tasks] == [True, True, False]


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Walk-v9", {}, "no environment is called 'Walk-v9'"),
        ("CartPole-v1", {}, "did you mean 'gym/CartPole-v1'?"),
        ("gym/CartPole-v7", {}, "did you mean 'gym/CartPole-v1'?"),
        ("gym/my_worlds:Wolk-v0", {}, "did you mean 'gym/my_worlds:Walk-v0'?"),
        ("my_worlds:Wilk", {}, "my_worlds has no function 'Wilk'; it has Walk, Forgetful"),
        ("my_worlds:Walk", {"size": 3}, "could not be called with the options {'size': 3}"),
        ("gym/my_worlds:Walk-v0", {"size": 3}, "could not be made with the options {'size': 3}"),
        ("my_worlds:not_an_environment", {}, "returned int; expected one gymnasium.Env"),
    ],
)
def test_wrong_names_and_options_are_explained(name, options, message):
    with pytest.raises(ValueError) as raised:
        make(name, **options)
    assert message in str(raised.value)


def test_a_module_that_is_not_there_is_told_from_one_that_needs_something(tmp_path, monkeypatch):
    with pytest.raises(ImportError, match=r"no module is called 'my_wurlds'; install it, or start from"):
        make("my_wurlds:Walk")
    (tmp_path / "needy.py").write_text("import nothing_like_this\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ImportError, match="importing needy failed: No module named 'nothing_like_this'"):
        make("needy:Walk")


def test_the_module_to_import_becomes_part_of_the_name():
    assert with_import("gym/A-v0", "m") == "gym/m:A-v0"
    with pytest.raises(ValueError, match="--env-import m is for environments of Gymnasium: expected"):
        with_import("disco-maze", "m")


def test_a_world_with_a_time_limit_goes_on_exactly_where_it_was_saved():
    env, other = make_env("gym/my_worlds:Walk-v0"), make_env("gym/my_worlds:Walk-v0")
    env.reset(seed=0)
    for _ in range(3):
        env.step(1)
    other.set_state(env.get_state())
    assert [env.step(2)[:4], other.step(2)[:4]] == [(1, 0.0, False, True)] * 2  # the limit is at 4
    vector = make("gym/my_worlds:Walk-v0", num_envs=2)
    vector.reset()
    vector.step(np.array([1, 0]))
    copy = make("gym/my_worlds:Walk-v0", num_envs=2)
    copy.reset()
    copy.set_state(vector.get_state())
    for _ in range(5):
        one, two = vector.step(np.array([1, 1])), copy.step(np.array([1, 1]))
        np.testing.assert_array_equal(one.observation, two.observation)
        np.testing.assert_array_equal(one.is_last, two.is_last)


def test_what_cannot_save_itself_or_is_wrapped_in_something_unknown_does_not_pretend_to():
    forgetful = make("my_worlds:Forgetful", num_envs=1)
    forgetful.reset()
    with pytest.raises(NotImplementedError, match="cannot save its state"):
        forgetful.get_state()

    class Noise(gymnasium.Wrapper):
        """Has a state of its own."""

    assert not hasattr(with_state(Noise(make_env("my_worlds:Walk"))), "get_state")
