"""Starts further along the way, for curves that show where an agent fails. No rule changes, only the start.

0  the task as it is
1  the key in the hand (Push Blocks: behind the right block; Navigate Cubes: a cube in the hand)
2  doors open, bridges out (Navigate Cubes: beyond the wall)
3  beside the large apple, looking at it
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.envs.eight_rooms import core
from softcount.envs.eight_rooms.level import Builder

LEVELS = (0, 1, 2, 3)


def apply_assist(builder: Builder, task: str, assist: int) -> None:
    """Moves the start of a level that is not yet turned."""
    if assist == 1:
        _give_key(builder, task)
    elif assist == 2 and task == "navigate_cubes":
        behind, further = builder.marks[:2]
        builder.start((float(behind[0]), float(behind[1] + 0.6 * (further[1] - behind[1]))))
    elif assist == 2:
        _open_all(builder.state)
    elif assist == 3:
        _go_to_apple(builder)


def _give_key(builder: Builder, task: str) -> None:
    state = builder.state
    agent, bodies = state["agent"], state["bodies"][: int(state["num_bodies"])]
    if task == "push_blocks":
        block = bodies[0]
        toward = builder.marks[0] - (block["x"], block["y"])
        along_x = abs(toward[0]) > abs(toward[1])
        step = -0.75 * np.sign(toward[0 if along_x else 1])
        at = (block["x"] + (step if along_x else 0.0), block["y"] + (0.0 if along_x else step))
        yaw = float(np.arctan2(0.0 if along_x else -step, -step if along_x else 0.0))
        builder.start((float(at[0]), float(at[1])), yaw)
        return
    index = 1 if task == "baseball" else _nearest_liftable(state)
    body = bodies[index]
    yaw, hand = _clear_direction(builder, index)
    eye = np.array([agent["x"], agent["y"], agent["z"] + 1.5])
    agent["yaw"], agent["held"], agent["hand"], agent["was_gripping"] = yaw, index, hand, 1
    body["x"], body["y"], body["z"] = eye + hand * np.array([np.cos(yaw), np.sin(yaw), 0.0])
    body["yaw"] = yaw
    body["flags"] &= ~core.ASLEEP


def _nearest_liftable(state: Any) -> int:
    """The key that is nearest; of many cubes the nearest one of the top layer."""
    bodies = state["bodies"][: int(state["num_bodies"])]
    is_liftable = (bodies["flags"] & core.LIFTABLE) > 0
    is_key = is_liftable & (bodies["key"] > 0) if (bodies["key"] > 0).any() else is_liftable
    is_top = bodies["z"] >= bodies["z"][is_key].max() - 0.1
    far = (bodies["x"] - state["agent"]["x"]) ** 2 + (bodies["y"] - state["agent"]["y"]) ** 2
    return int(np.where(is_key & (is_top | (bodies["key"] > 0)), far, np.inf).argmin())


def _clear_direction(builder: Builder, index: int) -> tuple[float, float]:
    """A direction and a distance at which a held body is free of walls and other bodies."""
    state = builder.state
    bodies, agent = state["bodies"][: int(state["num_bodies"])], state["agent"]
    reach = float(np.hypot(bodies["hx"][index], bodies["hy"][index])) + 0.05
    around = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    others = np.delete(bodies, index)
    for hand in (1.2, 0.95, 0.75):
        for yaw in builder.rng.permutation(24) * (np.pi / 12) - np.pi:
            x, y = agent["x"] + hand * np.cos(yaw), agent["y"] + hand * np.sin(yaw)
            radii = np.array([[0.0], [0.5 * reach], [reach]])
            xs, ys = x + radii * np.cos(around), y + radii * np.sin(around)
            heights = state["heights"][(ys / core.CELL).astype(int), (xs / core.CELL).astype(int)]
            far = np.hypot(others["x"] - x, others["y"] - y) - np.hypot(others["hx"], others["hy"])
            if (heights <= agent["z"] + 0.3).all() and (far > reach).all():
                return float(yaw), hand
    raise ValueError("there is no room for a body in the hand")


def _open_all(state: Any) -> None:
    for sensor in state["sensors"][: int(state["num_sensors"])]:
        if sensor["mode"] != core.DESTROY:
            sensor["is_on"] = 1
            sensor["mode"] = core.LATCH
    for mover in state["movers"][: int(state["num_movers"])]:
        mover["height"] = mover["open"]
        rows, columns = slice(mover["row0"], mover["row1"]), slice(mover["column0"], mover["column1"])
        state["heights"][rows, columns] = mover["open"]


def _go_to_apple(builder: Builder) -> None:
    """Stands 1.2 to 2 m from the apple on ground of its height, looking at it."""
    state = builder.state
    apples = state["apples"][: int(state["num_apples"])]
    apple = apples[apples["is_terminal"] > 0][0]
    floor = state["heights"][int(apple["y"] / core.CELL), int(apple["x"] / core.CELL)]
    for far in (2.0, 1.6, 1.2, 0.9):
        for yaw in builder.rng.permutation(16) * (np.pi / 8):
            x, y = apple["x"] - far * np.cos(yaw), apple["y"] - far * np.sin(yaw)
            around = [(x + dx, y + dy) for dx in (-0.31, 0.0, 0.31) for dy in (-0.31, 0.0, 0.31)]
            heights = [state["heights"][int(b / core.CELL), int(a / core.CELL)] for a, b in around]
            if all(height == floor for height in heights):
                builder.start((float(x), float(y)), float(yaw), floor=float(floor))
                return
    raise ValueError("there is no room beside the apple")
