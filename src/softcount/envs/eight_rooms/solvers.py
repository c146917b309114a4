"""Eight scripts that solve the tasks: they show that a level can be solved, and what a good episode scores.

Each is what a person who knew the level would do, again and again until the apple is eaten. They act through
`player.Player` and know the state; no agent is compared with them but by score.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from softcount.envs.eight_rooms import core, paths
from softcount.envs.eight_rooms.player import Moves, Player, Point
from softcount.envs.eight_rooms.pushing import plan_pushes
from softcount.types import Array

FOREVER = 1000


def walk_to_apple(p: Player) -> Moves:
    """Goes and eats the large apple."""
    apples = p.state["apples"][: int(p.state["num_apples"])]
    apple = p.at(apples[apples["is_terminal"] > 0][0])
    yield from p.walk(apple, 0.2)
    yield p.act(to=apple)


def _use_key(p: Player, key: int, sensor: int) -> Moves:
    for _ in range(FOREVER):
        if p.is_on(sensor):
            return
        yield from p.fetch(key)
        yield from p.touch(sensor)
        yield p.act()


def wall_sensor(p: Player) -> Moves:
    """Key to plate, then through the door."""
    yield from _use_key(p, 0, 0)
    yield from p.drop()
    for _ in range(FOREVER):
        yield from walk_to_apple(p)


def wall_sensor_stack(p: Player) -> Moves:
    """One cube below the plate, the other on top of it."""
    foot = p.marks[0]
    sensor = p.state["sensors"][0]
    out = np.array([sensor["x"] - foot[0], sensor["y"] - foot[1]])
    out = out / np.hypot(*out)
    spot = foot + 0.31 * out

    def goal(z: float) -> tuple[float, float, float]:
        return float(spot[0]), float(spot[1]), z

    def is_placed(index: int) -> bool:
        body = p.body(index)
        return bool(np.hypot(body["x"] - spot[0], body["y"] - spot[1]) < 0.16 and body["z"] < 0.35)

    for _ in range(FOREVER):
        if p.is_on(0) and p.held < 0:
            yield from walk_to_apple(p)
            continue
        below = next((i for i in (0, 1) if is_placed(i) and p.held != i), -1)
        first = below < 0
        index = int(np.argmin([p.far(p.at(p.body(i))) for i in (0, 1)])) if first else 1 - below
        yield from p.fetch(index)
        stand = foot + 1.45 * out
        yield from p.walk((float(stand[0]), float(stand[1])), 0.12, ignore=(0, 1), hand=0.9)
        if p.held != index:
            continue
        heights = (0.6, 0.3, 0.3) if first else (1.6, 1.3, 1.0, 0.9)
        for z in heights:
            for _ in range(7):
                yield p.act(look=goal(z), to=(float(stand[0]), float(stand[1])), push=1.5 if z < 1.5 else 0.0)
        yield from p.drop(4)
        for _ in range(3):
            yield p.act(to=(float(foot[0] + 2.2 * out[0]), float(foot[1] + 2.2 * out[1])))


def baseball(p: Player) -> Moves:
    """Sweep the ball off its plinth from one side after the other, then use it."""
    plinth = p.marks[0]
    side = 0
    for _ in range(FOREVER):
        if p.body(0)["z"] < 3.0:
            break
        yield from p.fetch(1)
        if p.held != 1:
            yield p.act()
            continue
        stand = _stand_around(p, plinth, (1.18, 1.12, 1.24)[side % 3], side)
        side += 1
        yield from p.walk(stand, 0.06)
        high = 1.2
        for to_left in (0.75, -0.75, 0.75, -0.75):
            yield from _sweep(p, plinth, stand, to_left, high)
            if p.body(0)["z"] < 3.0:
                break
    yield from p.drop()
    for _ in range(FOREVER):
        if p.is_on(0):
            break
        for _ in range(30):  # wait until the ball lies still
            if abs(p.body(0)["vx"]) + abs(p.body(0)["vy"]) < 0.1:
                break
            yield p.act()
        yield from p.fetch(0)
        yield from p.touch(0)
        yield p.act()
    yield from p.drop()
    for _ in range(FOREVER):
        yield from walk_to_apple(p)


def _stand_around(p: Player, centre: Array, far: float, turn: int) -> Point:
    """A free point at a distance from a centre, another one at each turn."""
    free = paths.free_points(p.state)
    candidates = []
    for k in range(16):
        angle = k * np.pi / 8
        x, y = float(centre[0] + far * np.cos(angle)), float(centre[1] + far * np.sin(angle))
        if free[int(y / paths.LATTICE), int(x / paths.LATTICE)]:
            candidates.append((p.far((x, y)), x, y))
    candidates.sort()
    _, x, y = candidates[(turn * 3) % len(candidates)]
    return x, y


def _sweep(p: Player, plinth: Array, stand: Point, offset: float, pitch: float) -> Moves:
    """Lifts the stick beside the plinth, then swings it to the other side at full speed."""
    x, y = p.place
    toward = float(np.arctan2(plinth[1] - y, plinth[0] - x)) - 0.18  # the stick is held to the right
    for _ in range(12):
        angle = toward + offset
        point = (x + float(np.cos(angle)), y + float(np.sin(angle)), 0.0)
        yield p.act(look=point, pitch=pitch, push=4.0, to=stand)
    for _ in range(4):
        angle = toward - offset
        point = (x + float(np.cos(angle)), y + float(np.sin(angle)), 0.0)
        yield p.act(look=point, pitch=pitch, push=4.0)


def push_blocks(p: Player) -> Moves:
    """Push the right block along a planned way, face by face."""
    for _ in range(FOREVER):
        if p.is_on(0):
            break
        legs = plan_pushes(p.state, 0, (float(p.marks[0][0]), float(p.marks[0][1])))
        if not legs:
            for _ in range(50):
                yield p.act()
            continue
        yield from _push(p, 0, *legs[0])
    for _ in range(FOREVER):
        yield from walk_to_apple(p)


def _push(p: Player, index: int, way: tuple[int, int], length: float) -> Moves:
    """Pushes a block along an axis by a length."""
    body, direction = p.body(index), np.array(way, float)
    start = np.array(p.at(body))
    stand = start - 0.85 * direction
    behind = (float(stand[0]), float(stand[1]))
    for near in (0.3, 0.45, 0.6):
        yield from p.walk(behind, near, steps=80)
        if p.far(behind) <= near:
            break
    for _ in range(3):
        yield p.act(to=behind)
    if p.far(behind) > 0.35 or (np.array(p.place) - start) @ direction > -0.55:
        x, y = p.place
        yield p.act(to=(2 * x - float(start[0]), 2 * y - float(start[1])))
        return
    for _ in range(int(length / 0.1) + 12):
        at = np.array(p.at(body))
        left = length - float((at - start) @ direction)
        if left < 0.05 or p.is_on(0) or body["z"] < 0.35:
            break
        place = np.array(p.place)
        gap = max(float((at - place) @ direction) - 0.7, 0.0)
        goal = at + direction * left
        goal += ((at - place) - ((at - place) @ direction) * direction) * 0.5  # in line with the block
        pace = float(np.clip((gap + (left - 0.06) / 0.6) / 0.4, 0.1, 1.0))  # it moves by 0.6 of a push
        yield p.act(to=(float(goal[0]), float(goal[1])), look=(float(at[0]), float(at[1]), 0.8), pace=pace)
    back = np.array(p.place) - 0.35 * direction
    yield p.act(to=(float(back[0]), float(back[1])))


def throw_across(p: Player) -> Moves:
    """One key over the void, the other into the first lock, round, and the first into the second."""
    way = p.marks[1] - p.marks[0]

    def is_across(index: int) -> bool:
        return bool((np.array(p.at(p.body(index))) - p.marks[0]) @ way > 0)

    for _ in range(FOREVER):
        if any(is_across(i) for i in (0, 1)) or p.is_on(0):
            break
        key = int(np.argmin([p.far(p.at(p.body(i))) for i in (0, 1)]))
        yield from p.fetch(key)
        if p.held != key:
            continue
        edge = _edge_of_void(p, way)
        yield from p.walk(edge, 0.15, hand=0.8)
        over = np.array(p.place) + 5.0 * way
        point = (float(over[0]), float(over[1]), float(p.state["agent"]["z"]) + 2.2)
        for _ in range(14):
            if p.is_facing(point) and p.state["agent"]["hand"] < 0.75:
                break
            yield p.act(look=point, push=-3.0)
        yield p.act(push=10.0)
        yield from p.drop(8)
    thrown = 0 if is_across(0) else 1
    yield from _use_key(p, 1 - thrown, 0)
    for _ in range(FOREVER):
        if p.is_on(2):
            break
        body = p.body(thrown)
        yield from p.walk(p.at(body), 1.2, ignore=(thrown,), steps=300)
        yield from p.fetch(thrown)
        yield from p.touch(2)
        yield p.act()
    for _ in range(FOREVER):
        yield from walk_to_apple(p)


def _edge_of_void(p: Player, way: Array) -> Point:
    """The free point nearest to the void, not far along it."""
    free = paths.free_points(p.state)
    at = (np.arange(paths.NUM) + 0.5) * paths.LATTICE
    x, y = np.meshgrid(at, at)
    forward = (x - p.marks[0][0]) * way[0] + (y - p.marks[0][1]) * way[1]
    aside = np.abs((x - p.place[0]) * way[1] - (y - p.place[1]) * way[0])
    level = np.abs(paths.ground_of(p.state) - p.state["agent"]["z"]) < 0.1
    cost = np.where(free & level & (forward < 0) & (aside < 4.0), -forward + 0.1 * aside, np.inf)
    row, column = np.unravel_index(cost.argmin(), cost.shape)
    return float(at[column]), float(at[row])


def drawbridge(p: Player) -> Moves:
    """At each fork the bridge with the small apple behind it."""
    state = p.state
    bodies = state["bodies"][: int(state["num_bodies"])]
    keys = np.flatnonzero(bodies["flags"] & core.LIFTABLE)
    apples = state["apples"][: int(state["num_apples"])]
    for fork, key in enumerate(keys):
        sensors = np.flatnonzero(state["sensors"]["key"] == bodies[key]["key"])
        small = apples[np.flatnonzero(apples["is_terminal"] == 0)[fork]]
        bridges = [state["movers"][i] for i in sensors]
        middles = [_middle(bridge) for bridge in bridges]
        best = int(np.argmin([np.hypot(x - small["x"], y - small["y"]) for x, y in middles]))
        yield from _use_key(p, int(key), int(sensors[best]))
        mark = p.marks[fork + 1]
        for _ in range(FOREVER):
            if small["is_eaten"]:
                break
            yield from p.walk(p.at(small), 0.2)
            yield p.act()
        for _ in range(FOREVER):
            if p.far((float(mark[0]), float(mark[1]))) < 1.6:
                break
            yield from p.walk((float(mark[0]), float(mark[1])), 1.5)
            yield p.act()
    for _ in range(FOREVER):
        yield from walk_to_apple(p)


def _middle(mover: Any) -> Point:
    return 0.25 * float(mover["column0"] + mover["column1"]), 0.25 * float(mover["row0"] + mover["row1"])


def navigate_cubes(p: Player) -> Moves:
    """Take cubes out of one line of the wall, the upper first, until the way is free."""
    state = p.state
    apple = p.at(state["apples"][0])
    way = p.marks[1] - p.marks[0]
    across = np.array([-way[1], way[0]])
    homes = np.stack([state["bodies"]["x"], state["bodies"]["y"], state["bodies"]["z"]], 1)[
        : int(state["num_bodies"])
    ]
    along, aside = homes[:, :2] @ way, homes[:, :2] @ across
    inner = aside[np.argsort(np.abs(aside - aside.mean()))[:24]]
    chosen = inner[np.argmin(np.abs(inner - np.array(p.place) @ across))]
    line = np.flatnonzero(np.abs(aside - chosen) < 0.2)
    order = line[np.lexsort((-homes[line, 2], along[line]))]
    for _ in range(FOREVER):
        for index in order:
            body = p.body(int(index))
            moved = np.hypot(body["x"] - homes[index, 0], body["y"] - homes[index, 1])
            if moved > 0.9:
                continue
            yield from _take_out(p, int(index), way, float(along.min()) - 1.0)
            break
        else:
            yield from _go_through(p, way, float(chosen), float(along.min()) - 1.0, float(along.max()) + 1.0)
            yield from p.walk(apple, 0.2)
            yield p.act(to=apple)
            if p.far(apple) > 1.0:  # something fell into the gap: take what is nearest away
                homes = np.stack([state["bodies"][axis] for axis in "xyz"], 1)[: len(homes)]
                order = np.argsort([p.far(p.at(p.body(i))) for i in range(len(homes))])[:2]


def _go_through(p: Player, way: Array, aside: float, first: float, last: float) -> Moves:
    """Walks straight through the gap in the wall, in the middle between what stands left and right of it."""
    across = np.array([-way[1], way[0]])
    bodies = p.state["bodies"][: int(p.state["num_bodies"])]
    at = np.stack([bodies["x"], bodies["y"]], 1)
    beside = (at @ across - aside)[(at @ way > first) & (at @ way < last)]
    left = max([-1.0, *(float(d) + 0.4 for d in beside if -1.4 < d < -0.4)])
    right = min([1.0, *(float(d) - 0.4 for d in beside if 0.4 < d < 1.4)])
    aside += 0.5 * (left + right)
    entry, leave = first * way + aside * across, (last + 0.3) * way + aside * across
    if np.array(p.place) @ way > last - 0.3:
        return
    yield from p.walk((float(entry[0]), float(entry[1])), 0.12, steps=120)
    for _ in range(24):
        if np.array(p.place) @ way > last:
            return
        ahead = min(float(np.array(p.place) @ way) + 0.5, last + 0.3) * way + aside * across
        yield p.act(to=(float(ahead[0]), float(ahead[1])), look=(float(leave[0]), float(leave[1]), 1.2))


def _take_out(p: Player, index: int, way: Array, first: float) -> Moves:
    """Grips a cube, from within the gap if it is deep in the wall, and lays it down behind."""
    across = np.array([-way[1], way[0]])
    at = np.array(p.at(p.body(index)))
    if at @ way > first + 1.6:
        entry = first * way + (at @ across) * across
        yield from p.walk((float(entry[0]), float(entry[1])), 0.12, steps=120)
        for _ in range(10):
            here = np.array(p.place)
            if (at - here) @ way < 1.5 or abs((at - here) @ across) > 0.4:
                break
            ahead = here + 0.4 * way + ((at - here) @ across) * across
            yield p.act(
                to=(float(ahead[0]), float(ahead[1])), look=(float(at[0]), float(at[1]), 1.0), pace=0.7
            )
        yield from p.fetch(index, tries=2, nears=(2.1, 1.9))
    else:
        yield from p.fetch(index, tries=3, nears=(1.7, 1.85, 1.5))
    if p.held != index:
        return
    start = np.array(p.place)
    for _ in range(16):  # straight back, still looking at the wall, lifting it a little
        here = np.array(p.place)
        if (start - here) @ way > 1.5 and here @ way < first - 0.3:
            break
        back, look = here - way, here + 2.0 * way
        yield p.act(
            to=(float(back[0]), float(back[1])), look=(float(look[0]), float(look[1]), 1.1), push=-2.0
        )
    behind = np.array(p.place) - 3.0 * way
    for _ in range(9):
        yield p.act(look=(float(behind[0]), float(behind[1]), 0.6))
    yield from p.drop(3)


SOLVERS: dict[str, Callable[[Player], Moves]] = {
    "baseball": baseball,
    "drawbridge": drawbridge,
    "navigate_cubes": navigate_cubes,
    "push_blocks": push_blocks,
    "remember_sensor": wall_sensor,
    "throw_across": throw_across,
    "wall_sensor": wall_sensor,
    "wall_sensor_stack": wall_sensor_stack,
}
