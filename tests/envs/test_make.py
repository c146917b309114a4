import builtins
import importlib.util

import numpy as np
import pytest

from softcount.envs import make as making
from softcount.envs.dm_hard_8 import LEVELS
from softcount.envs.make import FAMILIES, listing, make, make_env
from softcount.types import VectorEnv


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
    assert rows["disco-maze"].install == "pip install softcount"
    assert rows["atari/montezuma_revenge"].install == "pip install softcount[atari]"
    assert {
        "noisy-atari/montezuma_revenge",
        "vizdoom/my-way-home-very-sparse",
        "dm-hard-8/throw_across",
    } <= set(rows)
    assert all(row.is_installed for row in rows.values())
    assert FAMILIES["dm-hard-8"].names == FAMILIES["eight-rooms"].names == tuple(LEVELS)


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
    monkeypatch.setattr(making, "find_spec", lambda wanted: None if wanted == package else find(wanted))
    assert not {row.name: row for row in listing()}[name].is_installed
    with pytest.raises(ImportError, match=rf"{package}.*pip install softcount\[{extra}\]"):
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

    family = making.Family("", "envs", (), ("one",), build)
    monkeypatch.setitem(making.FAMILIES, "fragile", family)
    with pytest.raises(OSError, match="no more"):
        make("fragile/one", num_envs=4)
    assert len(closed) == 2


def test_every_game_of_ale_py_can_be_named_and_options_reach_it():
    env = make("atari/breakout", num_envs=2, size=(84, 84), full_actions=False)
    assert isinstance(env, VectorEnv)
    assert env.action_spec.num == 4
    assert env.reset().observation.shape == (2, 84, 84, 1)
    assert env.step(np.array([0, 3])).place is None
