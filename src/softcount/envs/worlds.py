"""What there is to know of a world without entering it: records of plain numbers, one for each task.

Whoever maps places or looks at them asks for these; they cross any border, and open environments do not.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softcount.envs.tasks import TaskVector
from softcount.types import Array, Observation, VectorEnv


class Chart(NamedTuple):
    """Where places lie on a map of rows and columns.

    >>> Chart((2, 3), np.array([4, 7]), np.array([[0, 1], [1, 2]])).cell_of(7)
    (1, 2)
    """

    map_shape: tuple[int, int]
    places: Array  # [N] int64, ascending
    cells: Array  # [N, 2] int64

    def cell_of(self, place: int) -> tuple[int, int]:
        """Returns row and column of a place that the chart has."""
        row, column = self.cells[int(np.searchsorted(self.places, place))]
        return int(row), int(column)


class World(NamedTuple):
    """One task's world, and which of the places asked for lie in it."""

    task: str
    num_places: int | None
    numbers: Array  # [N] int64, as they were asked for: counted through all tasks
    places: Array  # [N] int64, the same as this world counts them
    chart: Chart | None
    goal: tuple[int, int] | None  # the cell of a goal that stays where it is


class Portraits(NamedTuple):
    """Observations of all places of a world, one after the other, the whole row several times."""

    observation: Observation  # [looks · places, ...]
    places: Array  # [looks · places] int64
    is_terminal: Array  # [looks · places] bool: an episode ends there for good


def describe_worlds(env: VectorEnv, places: Array) -> list[World]:
    """Returns the world of every task, with charts of its places: all, or those given where none are known.

    >>> from softcount.envs.make import make
    >>> one, two = describe_worlds(make("disco-maze:size=7,disco-maze:size=7:layout=1", 2), np.array([3, 20]))
    >>> one.places.tolist(), two.numbers.tolist(), two.places.tolist(), two.chart.map_shape
    ([3], [20], [3], (7, 7))
    """
    places = np.unique(places)
    tasks, own = split_places(env, places)
    parts: list[Any] = env.envs if isinstance(env, TaskVector) else [env]
    return [
        _describe(part, name, places[tasks == task], own[tasks == task])
        for task, (part, name) in enumerate(zip(parts, env.task_names, strict=True))
    ]


def split_places(env: VectorEnv, places: Array) -> tuple[Array, Array]:
    """Returns the task of each place, and the place as that task counts it."""
    if isinstance(env, TaskVector):
        return env.split_places(places)
    return np.zeros(len(places), np.int64), np.asarray(places)


def portray(env: Any, looks: int, seed: int) -> Portraits | None:
    """Looks at every place of a world; None where a world cannot show its places."""
    if env.num_places is None or not hasattr(env, "terminal_places"):
        return None
    places = np.tile(np.arange(env.num_places), looks)
    observation = env.portray(places, np.random.default_rng(seed))
    return Portraits(observation, places, np.isin(places, env.terminal_places))


def _describe(env: Any, task: str, numbers: Array, places: Array) -> World:
    chart, goal = None, None
    if getattr(env, "map_shape", None) is not None:
        charted = places if env.num_places is None else np.arange(env.num_places)
        cells = np.array([env.cell_of(int(place)) for place in charted], np.int64).reshape(-1, 2)
        chart = Chart(tuple(env.map_shape), charted, cells)
    if env.num_places is not None and getattr(env, "goal", None) is not None:
        row, column = env.goal
        goal = int(row), int(column)
    return World(task, env.num_places, numbers, places, chart, goal)
