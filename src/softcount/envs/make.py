"""One name, one vector environment: `make("disco-maze", num_envs=64, seed=0, size=11)`.

    disco-maze                                        DiscoMazeConfig
    atari/montezuma_revenge, atari/pitfall, …         AtariConfig
    minigrid/MultiRoom-N4-S5-v1, …                    MiniGridConfig
    vizdoom/my-way-home[-sparse | -very-sparse]       MyWayHomeConfig
    dm-hard-8/baseball, …                             DmHard8Config
    eight-rooms/baseball, …                           EightRoomsConfig
    point-maze/s, …                                   PointMazeConfig
    toy/catch, toy/chain, toy/cue-memory, …           the fields of `toys.Catch`, …
    gym/CartPole-v1, gym/my_package:MyEnv-v0, …       what `gymnasium.make` takes
    my_package.module:make_env                        what the function takes

Options are the fields of the family's config. `noisy-` before a name with images adds a
panel of noise: `noisy-atari/montezuma_revenge`, `noisy-disco-maze`; its option `noise` says of which
kind (see `noise`). `num_processes`, an option of all families that are stepped copy by copy, shares copies
out to processes (see `processes`). `listing()` says what is there and what to install for the rest; an
unknown name or option suggests the nearest.

Commas make a list of tasks, colons give a task options of its own, and `family/all` stands
for all names that a family lists: `disco-maze:layout=1,disco-maze:layout=2`, `minigrid/all`.
A value with commas stands in brackets there: `atari/pitfall:size=(84,84)`.
"""

from __future__ import annotations

import ast
import re
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from softcount.envs.disco_maze import DiscoMaze, DiscoMazeConfig
from softcount.envs.families import FAMILIES, OWN, Family, configure
from softcount.envs.tasks import TaskVector, seeds_of_tasks
from softcount.hints import install, nearest
from softcount.types import ActionSpec, ObservationSpec, VectorEnv

if TYPE_CHECKING:
    import gymnasium

    from softcount.envs.vector import GymnasiumVector

NOISY = "noisy-"
ALL = "all"
PROCESSES = "num_processes"
"""Option of all that is stepped copy by copy: into how many processes the copies are shared out."""
Option: TypeAlias = bool | int | float | str | tuple[bool | int | float | str, ...]
"""What an option of an environment can be."""


class Listing(NamedTuple):
    """One name that `make` knows."""

    name: str
    about: str
    is_installed: bool
    install: str  # the command that makes it available


class Task(NamedTuple):
    """One element of a list of tasks."""

    name: str  # of the environment
    options: dict[str, Any]  # its own
    text: str  # name and options as they were written


def make(name: str, num_envs: int = 1, seed: int = 0, **options: Any) -> VectorEnv:
    """Builds `num_envs` copies of an environment behind the project's vector interface.

    >>> make("disco-maze", num_envs=3, size=7).reset().observation.shape
    (3, 7, 7, 3)
    >>> make("disco-maize")
    Traceback (most recent call last):
    ValueError: no environment is called 'disco-maize'; did you mean 'disco-maze'?

    A list of tasks shares the copies out equally; options hold for every task that does not set its own.

    >>> env = make("disco-maze:layout=1,disco-maze:layout=2", num_envs=4, size=7)
    >>> env.task_names, env.task_ids.tolist()
    (('disco-maze:layout=1', 'disco-maze:layout=2'), [0, 0, 1, 1])
    """
    if num_envs < 1:
        raise ValueError(f"num_envs is {num_envs}; expected at least 1")
    tasks = parse_tasks(name)
    if len(tasks) == 1:
        env = _build(tasks[0].name, num_envs, seed, options | tasks[0].options)
        env.task_names = (tasks[0].name,)
        return env
    copies, rest = divmod(num_envs, len(tasks))
    if rest:
        raise ValueError(
            f"num_envs is {num_envs}, but {name!r} names {len(tasks)} tasks; "
            f"expected a multiple of {len(tasks)}, such as {(copies + 1) * len(tasks)}"
        )
    return _build_tasks(tasks, copies, seed, options)


def make_env(name: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """Builds one environment as Gymnasium knows it, with `info["place"]` where there is ground truth.

    >>> make_env("disco-maze", size=7).reset(seed=0)[0].shape
    (7, 7, 3)
    """
    tasks = parse_tasks(name)
    if len(tasks) > 1:
        raise ValueError(f"{name!r} names {len(tasks)} tasks; expected one (`make` puts several together)")
    name, options = tasks[0].name, options | tasks[0].options
    if name.startswith(NOISY):
        from softcount.envs.noise_gym import NoisePanel

        if options.pop("noise", "fresh") != "fresh":
            raise ValueError(f"one copy of {name} has fresh noise; expected `make` for noise of other kinds")
        return NoisePanel(make_env(name.removeprefix(NOISY), **options))
    if name == "disco-maze":
        from softcount.envs.disco_maze_gym import DiscoMazeEnv

        return DiscoMazeEnv(configure(DiscoMazeConfig, options))
    family, rest = _find(name)
    return family.build(rest, 0, options)


def listing() -> list[Listing]:
    """Lists the names of the literature, each with the command that installs what it needs."""
    rows = [Listing("disco-maze", "the paper's maze, in NumPy", True, install())]
    for prefix, family in FAMILIES.items():
        rows += [
            Listing(f"{prefix}/{name}", family.about, family.is_installed, family.install)
            for name in family.names
        ]
    noisy = {"disco-maze", "atari/montezuma_revenge"}
    rows += [row._replace(name=NOISY + row.name, about="with noise") for row in rows if row.name in noisy]
    return rows


def parse_tasks(text: str) -> list[Task]:
    """Reads a list of tasks: names separated by commas, each followed by `:option=value` for its own options.

    >>> parse_tasks("disco-maze:size=7:lethal=false")
    [Task(name='disco-maze', options={'size': 7, 'lethal': False}, text='disco-maze:size=7:lethal=false')]
    >>> [task.name for task in parse_tasks("disco-maze,vizdoom/all")][:3]
    ['disco-maze', 'vizdoom/my-way-home', 'vizdoom/my-way-home-sparse']
    """
    tasks = []
    for element in re.split(r",(?![^(\[]*[)\]])", text):  # commas within brackets belong to a value
        name, *own = element.strip().split(":")
        if not name:
            raise ValueError(f"{text!r} has a task without a name; expected names separated by commas")
        if own and "=" not in own[0] and is_own(f"{name}:{own[0]}"):
            name = f"{name}:{own.pop(0)}"
        options = dict(map(parse_option, own))
        tasks += [Task(each, options, ":".join((each, *own))) for each in _expand(name)]
    return tasks


def is_own(name: str) -> bool:
    """Whether an environment is not one of the project's families.

    >>> [is_own(name) for name in ("gym/CartPole-v1", "my_module:make_env", "disco-maze", "atari/pitfall")]
    [True, True, False, False]
    """
    module, colon, function = name.partition(":")
    return name.startswith("gym/") or bool(colon and module.replace(".", "").isidentifier() and function)


def with_import(env: str, module: str) -> str:
    """Has Gymnasium import a module before it looks an environment up.

    >>> with_import("gym/MyEnv-v0,gym/MyEnv-v1", "my_package")
    'gym/my_package:MyEnv-v0,gym/my_package:MyEnv-v1'
    """
    names = re.split(r",(?![^(\[]*[)\]])", env)
    if not all(name.strip().startswith("gym/") for name in names):
        raise ValueError(
            f"--env-import {module} is for environments of Gymnasium: expected --env gym/ID, not {env!r}"
        )
    return ",".join(f"gym/{module}:{name.strip().removeprefix('gym/')}" for name in names)


def specs_of(name: str, options: dict[str, Any]) -> tuple[ObservationSpec, ActionSpec]:
    """What an environment shows and takes."""
    env = make(name, num_envs=len(parse_tasks(name)), **options)
    env.close()
    return env.observation_spec, env.action_spec


def parse_option(text: str) -> tuple[str, Option]:
    """Reads `name=value`: true, false and numbers are what they look like, everything else is a string.

    Commas make a tuple, with or without brackets around it.

    >>> parse_option("lethal=false"), parse_option("size=7"), parse_option("view=rgb")
    (('lethal', False), ('size', 7), ('view', 'rgb'))
    >>> parse_option("size=84,84"), parse_option("actions=(NOOP,)")
    (('size', (84, 84)), ('actions', ('NOOP',)))
    """
    name, separator, value = text.partition("=")
    if not name or not separator:
        raise ValueError(f"{text!r} is no option; expected NAME=VALUE")
    is_bracketed = value[:1] + value[-1:] in ("()", "[]")
    if not is_bracketed and "," not in value:
        return name, _parse_value(value)
    parts = [part.strip() for part in (value[1:-1] if is_bracketed else value).split(",")]
    return name, tuple(_parse_value(part) for part in parts if part)


def _parse_value(value: str) -> bool | int | float | str:
    try:
        parsed = ast.literal_eval(value.title() if value in ("true", "false") else value)
    except (ValueError, SyntaxError):
        return value
    return parsed if isinstance(parsed, bool | int | float | str) else value


def _expand(name: str) -> list[str]:
    """Replaces `family/all` by what the family lists."""
    if name.startswith(NOISY):
        return [NOISY + each for each in _expand(name.removeprefix(NOISY))]
    prefix, _, rest = name.partition("/")
    if rest != ALL or prefix not in FAMILIES:
        return [name]
    return [f"{prefix}/{each}" for each in FAMILIES[prefix].names]


def _distinct_names(tasks: list[Task]) -> list[str]:
    """Names tasks as they are called, and with their own options where several are called the same."""
    names = [task.name for task in tasks]
    return [task.name if names.count(task.name) == 1 else task.text for task in tasks]


def _build_tasks(tasks: list[Task], copies: int, seed: int, options: dict[str, Any]) -> TaskVector:
    """Builds tasks side by side; those already built are closed when a later one fails."""
    seeds = seeds_of_tasks(seed, len(tasks))
    with ExitStack() as on_failure:
        envs = []
        for i, task in enumerate(tasks):
            try:
                envs.append(_build(task.name, copies, seeds[i], options | task.options, i * copies))
            except ValueError as error:
                raise ValueError(f"task {i + 1} of {len(tasks)}, {task.text!r}: {error}") from error
            on_failure.callback(envs[-1].close)
        vector = TaskVector(envs, _distinct_names(tasks))
        on_failure.pop_all()
    return vector


def _build(name: str, num_envs: int, seed: int, options: dict[str, Any], first_copy: int = 0) -> VectorEnv:
    """Builds the copies of one task; copies are numbered through all tasks, from `first_copy` on here."""
    if name.startswith(NOISY):
        from softcount.envs.noise import NoisyVector

        options = {"noise": "fresh"} | options
        noise = options.pop("noise")
        inner = _build(name.removeprefix(NOISY), num_envs, seed, options, first_copy)
        return NoisyVector(inner, seed=seed, noise=noise)
    if name == "disco-maze":
        return DiscoMaze(configure(DiscoMazeConfig, options), num_envs=num_envs, seed=seed)
    family, rest = _find(name)
    if family.build_vector is not None:
        return family.build_vector(rest, num_envs, seed, options)
    own = dict(options)
    num_processes = own.pop(PROCESSES, 1)
    if not isinstance(num_processes, int) or isinstance(num_processes, bool) or num_processes < 1:
        raise ValueError(f"{PROCESSES} is {num_processes!r}; expected a whole number of at least 1")
    build = partial(_build_copies, name, seed, own, first_copy)
    if num_processes == 1:
        return build(0, num_envs)
    from softcount.envs.processes import ProcessVector

    return ProcessVector(build, num_envs=num_envs, num_processes=num_processes)


def _build_copies(
    name: str, seed: int, options: dict[str, Any], first_copy: int, start: int, num: int
) -> GymnasiumVector:
    """Builds copies of one task one by one, from `start` on; those already built are closed if one fails."""
    from softcount.envs.vector import GymnasiumVector

    family, rest = _find(name)
    envs: list[gymnasium.Env[Any, Any]] = []
    try:
        for i in range(num):
            envs.append(family.build(rest, first_copy + start + i, options))
        return GymnasiumVector(envs, seed=seed, first_copy=start)
    except BaseException:
        for env in envs:
            env.close()
        raise


def _find(name: str) -> tuple[Family, str]:
    prefix, _, rest = name.partition("/")
    if ":" in name and prefix == name:
        return OWN, name
    family = FAMILIES.get(prefix)
    if family is not None and not rest:
        raise ValueError(
            f"{name!r} is a family; expected a name such as '{prefix}/{family.names[0]}', or '{prefix}/{ALL}'"
        )
    if family is None:
        raise ValueError(f"no environment is called {name!r}{_hint(name)}")
    if not family.is_installed:
        raise ImportError(f"{name} needs {', '.join(family.packages)}: {family.install}")
    every = family.all_names(rest) if family.all_names else family.names
    if rest not in every:
        hint = nearest(name, [f"{prefix}/{known}" for known in every])
        raise ValueError(f"no environment is called {name!r}{hint}")
    return family, rest


def _hint(name: str) -> str:
    """What was probably meant, as the end of a sentence."""
    known = _known_names()
    as_own = f"gym/{name}"
    if as_own in known:
        return f"; did you mean {as_own!r}?"
    # Games that Gymnasium has registered too are meant as the family's, whose name they resemble as much.
    word = name.lower()
    holding = [each for each in known if word in each.lower() and not each.startswith("gym/")]
    return nearest(name, holding) or nearest(name, known)


def _known_names() -> list[str]:
    names = [row.name for row in listing()] + [f"{prefix}/{ALL}" for prefix in FAMILIES]
    for prefix, family in FAMILIES.items():
        if family.all_names and family.is_installed:
            names += [f"{prefix}/{rest}" for rest in family.all_names("")]
    return names
