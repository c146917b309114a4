"""Families of environments: what each is called, what it needs, and how one is built.

Packages are imported when an environment of theirs is built, and not before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar

from softcount.hints import install, nearest
from softcount.types import VectorEnv

if TYPE_CHECKING:
    import gymnasium

Config = TypeVar("Config")
EIGHT_GAMES = (
    "gravitar",
    "hero",
    "montezuma_revenge",
    "pitfall",
    "private_eye",
    "qbert",
    "solaris",
    "venture",
)
"""The paper's eight hard-exploration games (Decision 24); every other game works too."""
EIGHT_TASKS = (
    "baseball",
    "drawbridge",
    "navigate_cubes",
    "push_blocks",
    "remember_sensor",
    "throw_across",
    "wall_sensor",
    "wall_sensor_stack",
)
"""DM-HARD-8, and the tasks of Eight Rooms, which stands in for it."""
GRID_TASKS = (
    "MultiRoom-N2-S4-v0",
    "MultiRoom-N4-S5-v1",
    "MultiRoom-N6-v0",
    "KeyCorridorS3R3-v0",
    "KeyCorridorS6R3-v0",
    "ObstructedMaze-2Dlh-v0",
    "ObstructedMaze-Full-v1",
)
"""MiniGrid's exploration tasks; every other task works too."""


@dataclass(frozen=True)
class Family:
    """Environments that share a prefix, a package and a config."""

    about: str
    extra: str
    packages: tuple[str, ...]
    names: tuple[str, ...]  # what stands after the slash and is worth listing
    build: Callable[..., gymnasium.Env[Any, Any]]  # (rest of the name, index of the copy, options)
    all_names: Callable[[str], list[str]] | None = None  # every name that works beside one like this
    build_vector: Callable[..., VectorEnv] | None = None  # (rest, num_envs, seed, options) instead of `build`
    remedy: str = ""  # what makes it available, where installing the extra does not

    @property
    def is_installed(self) -> bool:
        """Whether all packages can be imported."""
        return all(find_spec(package) is not None for package in self.packages)

    @property
    def install(self) -> str:
        """What makes it available."""
        return self.remedy or install(self.extra)


def configure(config: type[Config], options: dict[str, Any]) -> Config:
    """Makes a config from options, and says which option was meant where one is unknown.

    >>> from softcount.envs.disco_maze import DiscoMazeConfig
    >>> configure(DiscoMazeConfig, {"letal": False})
    Traceback (most recent call last):
    ValueError: DiscoMazeConfig has no option 'letal'; did you mean 'lethal'?
    """
    known = [field.name for field in fields(config)]  # type: ignore[arg-type]
    for option in options:
        if option not in known:
            hint = nearest(option, known) or f" (options: {', '.join(known)})"
            raise ValueError(f"{config.__name__} has no option {option!r}{hint}")
    return config(**options)


def _atari(game: str, copy: int, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    from softcount.envs.atari import Atari, AtariConfig

    return Atari(configure(AtariConfig, {**options, "game": game}))


def _all_games(name: str) -> list[str]:
    from softcount.envs.atari import games

    return games()


def _minigrid(task: str, copy: int, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    from softcount.envs.minigrid import MiniGridConfig, make_minigrid

    return make_minigrid(configure(MiniGridConfig, {**options, "task": task}))


def _all_tasks(name: str) -> list[str]:
    from softcount.envs.minigrid import tasks

    return tasks()


def _vizdoom(rest: str, copy: int, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    from softcount.envs.vizdoom import MyWayHomeConfig, make_my_way_home

    start = rest.removeprefix("my-way-home").lstrip("-") or "dense"
    return make_my_way_home(configure(MyWayHomeConfig, {**options, "start": start}))


def _dm_hard_8(level: str, copy: int, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    from softcount.envs.dm_hard_8 import DmHard8, DmHard8Config

    config = configure(DmHard8Config, {**options, "level": level})
    return DmHard8(configure(DmHard8Config, {**options, "level": level, "port": config.port + copy}))


def _eight_rooms(task: str, copy: int, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    from softcount.envs.eight_rooms.gym import EightRoomsEnv
    from softcount.envs.eight_rooms.vector import EightRoomsConfig

    return EightRoomsEnv(configure(EightRoomsConfig, {**options, "task": task}))


def _eight_rooms_vector(task: str, num_envs: int, seed: int, options: dict[str, Any]) -> VectorEnv:
    from softcount.envs.eight_rooms.vector import EightRooms, EightRoomsConfig

    return EightRooms(configure(EightRoomsConfig, {**options, "task": task}), num_envs=num_envs, seed=seed)


def _point_maze_vector(plan: str, num_envs: int, seed: int, options: dict[str, Any]) -> VectorEnv:
    from softcount.envs.point_maze import PointMaze, PointMazeConfig

    return PointMaze(configure(PointMazeConfig, {**options, "plan": plan}), num_envs=num_envs, seed=seed)


def _point_maze(plan: str, copy: int, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    from softcount.envs.one_copy import OneCopy

    return OneCopy(_point_maze_vector(plan, 1, 0, options))


def _toy_vector(name: str, num_envs: int, seed: int, options: dict[str, Any]) -> VectorEnv:
    from softcount.envs.toys import TOYS, ToyVector

    return ToyVector(configure(TOYS[name], options), num_envs=num_envs, seed=seed)


def _toy(name: str, copy: int, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    from softcount.envs.one_copy import OneCopy

    return OneCopy(_toy_vector(name, 1, 0, options))


def _gymnasium(name: str, copy: int, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    from softcount.envs.own import make_registered

    return make_registered(name, options)


def _by_function(name: str, copy: int, options: dict[str, Any]) -> gymnasium.Env[Any, Any]:
    from softcount.envs.own import make_by_function

    return make_by_function(name, options)


def _registered(name: str) -> list[str]:
    from softcount.envs.own import registered

    return registered(name)


FAMILIES = {
    "atari": Family(
        "Atari 2600, the paper's protocol",
        "atari",
        ("gymnasium", "ale_py", "cv2"),
        EIGHT_GAMES,
        _atari,
        _all_games,
    ),
    "minigrid": Family(
        "MiniGrid",
        "minigrid",
        ("gymnasium", "minigrid"),
        GRID_TASKS,
        _minigrid,
        _all_tasks,
    ),
    "vizdoom": Family(
        "first-person search in nine rooms",
        "vizdoom",
        ("gymnasium", "vizdoom"),
        ("my-way-home", "my-way-home-sparse", "my-way-home-very-sparse"),
        _vizdoom,
    ),
    "dm-hard-8": Family(
        "needs a running server",
        "dm-hard-8",
        ("gymnasium", "dm_env", "dm_env_rpc"),
        EIGHT_TASKS,
        _dm_hard_8,
    ),
    "eight-rooms": Family(
        "our stand-in for DM-HARD-8",
        "envs",
        ("softcount.envs.eight_rooms._rooms",),
        EIGHT_TASKS,
        _eight_rooms,
        build_vector=_eight_rooms_vector,
        remedy=f"a C++ compiler, then again {install()}",
    ),
    "point-maze": Family(
        "a point among walls, continuous actions",
        "envs",
        (),
        ("s", "n", "hook", "open"),
        _point_maze,
        build_vector=_point_maze_vector,
    ),
    "toy": Family(
        "worlds of seconds",
        "envs",
        (),
        ("catch", "chain", "cue-memory", "two-worlds"),
        _toy,
        build_vector=_toy_vector,
    ),
    "gym": Family(
        "Gymnasium's own, and all that are registered there",
        "envs",
        ("gymnasium",),
        ("CartPole-v1", "MountainCarContinuous-v0"),
        _gymnasium,
        _registered,
    ),
}

OWN = Family("of one's own", "envs", ("gymnasium",), (), _by_function)
"""`my_package.module:make_env`; has no names of its own."""
