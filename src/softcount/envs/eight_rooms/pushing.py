"""Where a block must be pushed, face by face, to reach a recess: a search over its positions.

A push needs room behind the block for whoever pushes, and a free way before it. Positions lie on the
lattice of `paths.py` around the block's own; turns cost extra, as one has to walk round the block.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np

from softcount.envs.eight_rooms import core
from softcount.envs.eight_rooms.paths import LATTICE
from softcount.types import Array

WAYS = ((1, 0), (-1, 0), (0, 1), (0, -1))
TURN_COST = 8
REACH = 48
"""Points of the lattice to each side that are searched."""


def plan_pushes(state: Any, index: int, goal: tuple[float, float]) -> list[tuple[tuple[int, int], float]]:
    """Returns pushes (direction, metres) that bring a block over a goal; none where there is no way."""
    block = state["bodies"][index]
    origin = np.array([float(block["x"]), float(block["y"])])
    others = [
        (float(body["x"]), float(body["y"]))
        for i, body in enumerate(state["bodies"][: int(state["num_bodies"])])
        if i != index and body["flags"] & core.ALIVE
    ]
    offsets = np.arange(-REACH, REACH + 1) * LATTICE
    x, y = np.meshgrid(origin[0] + offsets, origin[1] + offsets, indexing="ij")
    is_free = _fits(state, x, y, 0.46, others)
    can_push = [
        (is_free & _fits(state, x - 0.73 * dx, y - 0.73 * dy, 0.31, others)).tolist() for dx, dy in WAYS
    ]  # somebody fits behind the block
    can_be, is_goal = is_free.tolist(), ((abs(x - goal[0]) < 0.3) & (abs(y - goal[1]) < 0.3)).tolist()
    first = ((REACH, REACH), -1)
    queue = [(0, *first)]
    came: dict[tuple[tuple[int, int], int], tuple[tuple[int, int], int] | None] = {first: None}
    best = {first: 0}
    while queue:
        cost, node, last = heapq.heappop(queue)
        if cost > best[(node, last)]:
            continue
        if is_goal[node[0]][node[1]]:
            return _legs(came, (node, last))
        for number, way in enumerate(WAYS):
            column, row = node[0] + way[0], node[1] + way[1]
            if not (0 <= column <= 2 * REACH and 0 <= row <= 2 * REACH):
                continue
            is_start = node == first[0] and _fits(
                state, x[node] - 0.73 * way[0], y[node] - 0.73 * way[1], 0.31, others
            )
            if not can_be[column][row] or not (can_push[number][node[0]][node[1]] or is_start):
                continue
            key = ((column, row), number)
            new = cost + 1 + (TURN_COST if number != last else 0)
            if new < best.get(key, 1 << 30):
                best[key] = new
                came[key] = (node, last)
                heapq.heappush(queue, (new, key[0], number))
    return []


def _fits(state: Any, x: Array, y: Array, half: float, others: list[tuple[float, float]]) -> Array:
    """Whether squares find ground there, no wall and no other block."""
    heights, fits = np.asarray(state["heights"]), np.ones(np.shape(x), bool)
    for dx in (-half, 0.0, half):
        for dy in (-half, 0.0, half):
            column = np.clip((x + dx) / core.CELL, 0, core.SIDE - 1).astype(np.int64)
            row = np.clip((y + dy) / core.CELL, 0, core.SIDE - 1).astype(np.int64)
            fits = fits & (heights[row, column] < 0.05)
    for at in others:
        fits = fits & (np.maximum(np.abs(x - at[0]), np.abs(y - at[1])) > half + 0.36)
    return fits


def _legs(came: dict[Any, Any], end: Any) -> list[tuple[tuple[int, int], float]]:
    steps = []
    while came[end] is not None:
        steps.append(end[1])
        end = came[end]
    steps.reverse()
    legs: list[tuple[tuple[int, int], float]] = []
    for number in steps:
        if legs and legs[-1][0] == WAYS[number]:
            legs[-1] = (legs[-1][0], legs[-1][1] + LATTICE)
        else:
            legs.append((WAYS[number], LATTICE))
    return legs
