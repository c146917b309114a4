"""What is known of each task beside its rules: time limits, stages, and when a level can no longer be solved.

A stage is how far an episode has come, read from the present state; it is ground truth for measurement and
no agent sees it. `is_lost` says that no way to the large apple is left, as far as that follows from keys
and blocks; nothing in the world says so. All functions take arrays of worlds `[B]`, so that a batch costs a
few NumPy calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.envs.eight_rooms import core
from softcount.envs.eight_rooms.levels import HEAVY, KEY, Variant
from softcount.types import Array

LIMITS: dict[Variant, int] = {"tiny": 400, "small": 900, "full": 1800}
"""Agent steps of an episode; Remember Sensor has twice as many."""


@dataclass(frozen=True)
class Worlds:
    """Worlds with what was true at their start."""

    states: Array  # [B] of core.STATE
    marks: Array  # [B, NUM_MARKS, 2] float32
    homes: Array  # [B, bodies, 2] float32, where bodies were

    @property
    def held_key(self) -> Array:
        """The key number of what is held `[B]`, -1 where the hand is empty."""
        held = self.states["agent"]["held"]
        keys = self.states["bodies"]["key"]
        return np.where(held < 0, -1, keys[np.arange(len(held)), held])

    @property
    def is_alive(self) -> Array:
        """Which bodies are in the world `[B, bodies]`."""
        return np.asarray(self.states["bodies"]["flags"] & core.ALIVE > 0)

    def is_on(self, sensor: int) -> Array:
        """Whether a sensor is on `[B]`."""
        return np.asarray(self.states["sensors"]["is_on"][:, sensor] > 0)

    def beyond(self, mark: int, x: Array, y: Array) -> Array:
        """Whether points are on the far side of a mark, seen along the direction to the next one."""
        at, to = self.marks[:, mark], self.marks[:, mark + 1]
        way = to - at
        if x.ndim == 2:
            at, way = at[:, None], way[:, None]
        return np.asarray((x - at[..., 0]) * way[..., 0] + (y - at[..., 1]) * way[..., 1] > 0)

    def agent_beyond(self, mark: int) -> Array:
        """Whether the agent is on the far side of a mark."""
        return self.beyond(mark, self.states["agent"]["x"], self.states["agent"]["y"])


def furthest(*conditions: Any) -> Array:
    """Returns the number of the last condition that holds, counted from 1; 0 where none does.

    >>> furthest(np.array([False, True, True]), np.array([False, False, True])).tolist()
    [0, 1, 2]
    """
    stage = np.zeros(conditions[0].shape, np.int64)
    for number, condition in enumerate(conditions, start=1):
        np.copyto(stage, number, where=condition)
    return stage


def _never(worlds: Worlds) -> Array:
    return np.zeros(len(worlds.states), bool)


def _wall_sensor(worlds: Worlds) -> Array:
    return furthest(worlds.held_key == KEY, worlds.is_on(0))


def _wall_sensor_stack(worlds: Worlds) -> Array:
    bodies = worlds.states["bodies"]
    foot = worlds.marks[:, 0]
    x, y, z = (bodies[axis][:, :2] for axis in "xyz")
    is_near = (x - foot[:, :1]) ** 2 + (y - foot[:, 1:]) ** 2 < 0.8**2
    is_stacked = is_near.all(1) & (np.abs(np.abs(z[:, 0] - z[:, 1]) - 0.6) < 0.05)
    return furthest(worlds.held_key == KEY, is_near.any(1), is_stacked, worlds.is_on(0))


def _baseball(worlds: Worlds) -> Array:
    is_down = worlds.states["bodies"]["z"][:, 0] < 3.0
    return furthest(worlds.states["agent"]["held"] == 1, is_down, worlds.held_key == KEY, worlds.is_on(0))


def _in_recess(worlds: Worlds) -> Array:
    bodies = worlds.states["bodies"]
    return np.asarray((bodies["z"] < 0.3) & (bodies["mass"] == HEAVY))


def _push_blocks(worlds: Worlds) -> Array:
    bodies = worlds.states["bodies"]
    recess = worlds.marks[:, 0]
    far = np.hypot(bodies["x"][:, 0] - recess[:, 0], bodies["y"][:, 0] - recess[:, 1])
    return furthest(far <= 4.0, far < 2.0, _in_recess(worlds)[:, 1:].any(1), worlds.is_on(0))


def _push_blocks_lost(worlds: Worlds) -> Array:
    """A wrong block is in the recess, or the right one is so near a wall that nobody fits behind it."""
    states = worlds.states
    wrong = _in_recess(worlds)[:, 1:].any(1)
    block = states["bodies"][:, 0]
    is_stuck = np.zeros(len(states), bool)
    for dx, dy in ((0.95, 0), (-0.95, 0), (0, 0.95), (0, -0.95)):
        column = ((block["x"] + dx) / core.CELL).astype(np.int64)
        row = ((block["y"] + dy) / core.CELL).astype(np.int64)
        is_stuck |= states["heights"][np.arange(len(states)), row, column] > 1.0
    return np.asarray((wrong | is_stuck) & ~worlds.is_on(0))


def _remember_sensor(worlds: Worlds) -> Array:
    return furthest(worlds.held_key == 0, worlds.held_key == KEY, worlds.is_on(0))


def _throw_across(worlds: Worlds) -> Array:
    across = _keys_across(worlds)
    has_key_beyond = (worlds.held_key == KEY) & worlds.agent_beyond(2)
    return furthest(
        across.any(1), worlds.is_on(0), has_key_beyond, worlds.is_on(2), _throw_across_lost(worlds)
    )


def _keys_across(worlds: Worlds) -> Array:
    bodies = worlds.states["bodies"][:, :2]
    return np.asarray(worlds.is_alive[:, :2] & worlds.beyond(0, bodies["x"], bodies["y"]))


def _throw_across_lost(worlds: Worlds) -> Array:
    """Too few keys are left on the side where they are needed."""
    alive, across = worlds.is_alive[:, :2], _keys_across(worlds)
    here = (alive & ~across).sum(1)
    first, second = worlds.is_on(0), worlds.is_on(2)
    is_past = worlds.agent_beyond(2)
    before_first = (here == 0) | (alive.sum(1) < 2)
    before_second = ~across.any(1) & ((here == 0) | is_past)
    return np.asarray(np.where(first, before_second, before_first) & ~second)


def _drawbridge(worlds: Worlds) -> Array:
    movers, apples = worlds.states["movers"], worlds.states["apples"]
    extended = ((movers["height"] == movers["open"]) & (movers["speed"] > 0)).sum(1)
    eaten = ((apples["is_eaten"] > 0) & (apples["is_terminal"] == 0)).sum(1)
    return np.asarray(4 * np.minimum(extended, 3) + np.minimum(eaten, 3), np.int64)


def _drawbridge_lost(worlds: Worlds) -> Array:
    """The key of a fork is gone and none of its bridges is out."""
    bodies, sensors = worlds.states["bodies"], worlds.states["sensors"]
    is_gone = (bodies["flags"] & (core.LIFTABLE | core.ALIVE)) == core.LIFTABLE
    is_lost = np.zeros(len(worlds.states), bool)
    for key in range(KEY, KEY + 3):
        is_used = ((sensors["key"] == key) & (sensors["is_on"] > 0)).any(1)
        is_lost |= (is_gone & (bodies["key"] == key)).any(1) & ~is_used
    return is_lost


def _navigate_cubes(worlds: Worlds) -> Array:
    bodies, agent = worlds.states["bodies"], worlds.states["agent"]
    far2 = (bodies["x"] - worlds.homes[..., 0]) ** 2 + (bodies["y"] - worlds.homes[..., 1]) ** 2
    moved = (far2 > 0.5**2).sum(1)
    is_up = agent["z"] > 0.2
    return furthest(moved >= 1, moved >= 2, moved >= 4, worlds.agent_beyond(0), is_up)


@dataclass(frozen=True)
class Task:
    """What measurement knows of a task."""

    num_stages: int
    stage: Callable[[Worlds], Array]  # [B] int64
    is_lost: Callable[[Worlds], Array]  # [B] bool
    patience: int = 1  # times the usual limit of steps

    def limit(self, variant: Variant) -> int:
        """Agent steps after which an episode is cut."""
        return self.patience * LIMITS[variant]


TASKS: dict[str, Task] = {
    "baseball": Task(5, _baseball, _never),
    "drawbridge": Task(16, _drawbridge, _drawbridge_lost),
    "navigate_cubes": Task(6, _navigate_cubes, _never),
    "push_blocks": Task(5, _push_blocks, _push_blocks_lost),
    "remember_sensor": Task(4, _remember_sensor, _never, patience=2),
    "throw_across": Task(6, _throw_across, _throw_across_lost),
    "wall_sensor": Task(3, _wall_sensor, _never),
    "wall_sensor_stack": Task(5, _wall_sensor_stack, _never),
}


def highest_score(task: str, state: Any) -> float:
    """What a faultless episode of a level pays: all its apples, and each strip once each way."""
    apples, strips = state["apples"], state["strips"]
    return float(apples["reward"].sum() + 2 * strips["reward"].sum())
