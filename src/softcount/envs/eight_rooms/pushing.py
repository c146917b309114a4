"""Where a block must be pushed, face by face, to reach a recess: a search over its positions.

A push needs room behind the block for whoever pushes, and a free way before it. Positions lie on the lattice of
`paths.py` around the block's own; turns cost extra, as one has to walk round the block.
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


def plan_pushes(state: Any, index: int, goal: tuple[float, float]) -> list[tuple[tuple[int, int], float]]:
    """Returns pushes (direction, metres) that bring a block over a goal; none where there is no way."""
    block = state["bodies"][index]
    origin = np.array([float(block["x"]), float(block["y"])])
    others = [
        np.array([float(body["x"]), float(body["y"])])
        for i, body in enumerate(state["bodies"][: int(state["num_bodies"])])
        if i != index and body["flags"] & core.ALIVE
    ]
    queue: list[tuple[int, tuple[int, int], int]] = [(0, (0, 0), -1)]
    came: dict[tuple[tuple[int, int], int], tuple[tuple[int, int], int] | None] = {((0, 0), -1): None}
    best = {((0, 0), -1): 0}
    while queue:
        cost, node, last = heapq.heappop(queue)
        if cost > best[(node, last)]:
            continue
        at = origin + LATTICE * np.array(node)
        if abs(at[0] - goal[0]) < 0.3 and abs(at[1] - goal[1]) < 0.3:
            return _legs(came, (node, last))
        for number, way in enumerate(WAYS):
            after = at + LATTICE * np.array(way)
            behind = at - (0.8 if number == last else 0.85) * np.array(way)
            if not _fits(state, after, 0.46, others, goal) or not _fits(state, behind, 0.34, others, None):
                continue
            key = ((node[0] + way[0], node[1] + way[1]), number)
            new = cost + 1 + (TURN_COST if number != last else 0)
            if new < best.get(key, 1 << 30):
                best[key] = new
                came[key] = (node, last)
                heapq.heappush(queue, (new, key[0], number))
    return []


def _fits(state: Any, at: Array, half: float, others: list[Array], goal: tuple[float, float] | None) -> bool:
    """Whether a square finds level ground and no other block there; over the goal it may sink."""
    for dx in (-half, 0.0, half):
        for dy in (-half, 0.0, half):
            x, y = at[0] + dx, at[1] + dy
            height = state["heights"][int(y / core.CELL), int(x / core.CELL)]
            if height > 0.05:
                return False
    return all(max(abs(at[0] - other[0]), abs(at[1] - other[1])) > half + 0.42 for other in others)


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
