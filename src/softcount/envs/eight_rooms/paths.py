"""Ways over the ground for scripted players: distances to a goal on a lattice of a quarter of a metre.

A point of the lattice is free where the agent's cylinder fits: no step up by more than 0.3 m beside it, no
fall, no body. Steps down of up to 1.5 m are one-way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.envs.eight_rooms import core
from softcount.types import Array

LATTICE = 0.25
NUM = int(core.SIDE * core.CELL / LATTICE)
RADIUS = 0.3
STEP_UP, DROP = 0.31, 1.5
STEPS = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]


def ground_of(state: Any) -> Array:
    """Heights on which the agent stands at the points of the lattice `[NUM, NUM]`.

    The highest cell that it touches.
    """
    return _touched(state)[0]


def _touched(state: Any) -> tuple[Array, Array]:
    """The highest and the lowest cell that the agent's cylinder touches at each point."""
    heights = np.pad(np.asarray(state["heights"]), 1, constant_values=core.WALL)
    own = heights[1:-1, 1:-1]
    high, low = (np.zeros((core.SIDE, 2, core.SIDE, 2), np.float32) for _ in range(2))
    for half_y, dy in enumerate((-1, 1)):
        for half_x, dx in enumerate((-1, 1)):
            cells = [
                heights[1 + sy : 1 + sy + core.SIDE, 1 + sx : 1 + sx + core.SIDE]
                for sy, sx in ((dy, 0), (0, dx), (dy, dx))
            ]
            high[:, half_y, :, half_x] = np.maximum.reduce([own, *cells])
            low[:, half_y, :, half_x] = np.minimum.reduce([own, *cells])
    return high.reshape(NUM, NUM), low.reshape(NUM, NUM)


def free_points(state: Any, ignore: tuple[int, ...] = (), margin: float = 0.04) -> Array:
    """Where the agent can stand `[NUM, NUM]`; bodies in `ignore` are not in the way."""
    high, low = _touched(state)
    free = (high < core.WALL) & (low >= high - DROP) & (low > core.VOID + 1)
    for i in range(int(state["num_bodies"])):
        body = state["bodies"][i]
        if (
            i not in ignore
            and body["flags"] & core.ALIVE
            and body["kind"] != core.STICK
            and i != state["agent"]["held"]
        ):
            _block(free, body, RADIUS + margin)
    return free


def _block(free: Array, body: Any, room: float) -> None:
    reach = float(np.hypot(body["hx"], body["hy"])) + room
    x, y = float(body["x"]), float(body["y"])
    c0, c1 = max(0, int((x - reach) / LATTICE)), min(NUM, int((x + reach) / LATTICE) + 2)
    r0, r1 = max(0, int((y - reach) / LATTICE)), min(NUM, int((y + reach) / LATTICE) + 2)
    dx = (np.arange(c0, c1) + 0.5) * LATTICE - x
    dy = ((np.arange(r0, r1) + 0.5) * LATTICE - y)[:, None]
    if body["kind"] == core.BALL:
        is_near = dx**2 + dy**2 < (float(body["hx"]) + room) ** 2
    else:
        c, s = np.cos(body["yaw"]), np.sin(body["yaw"])
        u = np.maximum(np.abs(dx * c + dy * s) - body["hx"], 0)
        v = np.maximum(np.abs(dy * c - dx * s) - body["hy"], 0)
        is_near = u**2 + v**2 < room**2
    free[r0:r1, c0:c1] &= ~is_near


def distances(state: Any, goal: tuple[float, float], near: float, ignore: tuple[int, ...] = ()) -> Array:
    """Steps from every point of the lattice to within `near` of a goal.

    A large number where there is no way.
    """
    free, ground = free_points(state, ignore), ground_of(state)
    agent_row, agent_column = point_of(state)
    free[agent_row - 1 : agent_row + 2, agent_column - 1 : agent_column + 2] |= (
        np.abs(
            ground[agent_row - 1 : agent_row + 2, agent_column - 1 : agent_column + 2] - state["agent"]["z"]
        )
        < 0.05
    )
    at = (np.arange(NUM) + 0.5) * LATTICE
    is_goal = (at - goal[0]) ** 2 + ((at - goal[1]) ** 2)[:, None] <= near**2
    far = np.full((NUM, NUM), 10_000, np.int32)
    reached = free & is_goal
    far[reached] = 0
    padded = np.pad(ground, 1, constant_values=core.WALL)
    allowed = []
    for dy, dx in STEPS:  # from a point to its neighbour at (dy, dx)
        rise = padded[1 + dy : 1 + dy + NUM, 1 + dx : 1 + dx + NUM] - ground
        allowed.append(free & (rise <= STEP_UP) & (rise >= -DROP))
    frontier = reached.copy()
    for length in range(1, 400):
        wide = np.pad(frontier, 1)
        found = np.zeros_like(frontier)
        for (dy, dx), ok in zip(STEPS, allowed, strict=True):
            found |= ok & wide[1 + dy : 1 + dy + NUM, 1 + dx : 1 + dx + NUM]
        frontier = found & ~reached
        if not frontier.any():
            break
        far[frontier] = length
        reached |= frontier
    return far


def point_of(state: Any) -> tuple[int, int]:
    """Row and column of the lattice where the agent is."""
    return int(state["agent"]["y"] / LATTICE), int(state["agent"]["x"] / LATTICE)


def next_point(state: Any, far: Array, look_ahead: int = 4) -> tuple[float, float] | None:
    """A point some steps further on a shortest way, or None where there is no way."""
    ground, height = ground_of(state), float(state["agent"]["z"])
    row, column = point_of(state)
    if (
        far[row, column] >= 10_000 or abs(ground[row, column] - height) > 0.1
    ):  # between points: to the best one beside
        beside = [(row + dy, column + dx) for dy in (-2, -1, 0, 1, 2) for dx in (-2, -1, 0, 1, 2)]
        usable = [(far[at], *at) for at in beside if -DROP <= ground[at] - height <= 0.1 and far[at] < 10_000]
        if not usable:
            return None
        _, row, column = min(usable)
        look_ahead = 0
    for _ in range(look_ahead):
        around = [
            (far[row + dy, column + dx], abs(dy) + abs(dx), row + dy, column + dx)
            for dy, dx in STEPS
            if -DROP <= ground[row + dy, column + dx] - ground[row, column] <= STEP_UP
        ]
        best = min(around, default=(10_000, 0, row, column))
        if best[0] >= far[row, column]:
            break
        row, column = best[2], best[3]
        if abs(ground[row, column] - height) > 0.05:  # a step: straight at it, not past its corner
            break
    return (column + 0.5) * LATTICE, (row + 0.5) * LATTICE
