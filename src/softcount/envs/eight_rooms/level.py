"""A level as data: rooms of cells, movers, sensors, bodies, apples and strips, put into one record.

Generators (`levels.py`) draw a level with the words of this file; nothing here knows a task. Lengths of rooms
are in cells of half a metre, everything else is in metres. `finish` turns or mirrors the whole by one of
eight symmetries and returns the record with its `marks`: points that measurement and solvers need.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softcount.envs.eight_rooms import core
from softcount.types import Array

COLOURS = {
    "red": (0.86, 0.10, 0.12),
    "green": (0.10, 0.62, 0.18),
    "blue": (0.12, 0.24, 0.92),
    "yellow": (0.96, 0.88, 0.10),
    "purple": (0.62, 0.08, 0.66),
    "cyan": (0.15, 0.82, 0.88),
    "orange": (0.98, 0.50, 0.05),
    "pink": (0.98, 0.58, 0.78),
}
"""What keys and sensors can be painted; any two differ by more than 20 in CIE's ΔE, also on a dark side."""
NUM_MARKS = 8
GREY = (0.55, 0.55, 0.56)
Rectangle = tuple[int, int, int, int]
"""Columns and rows: first column, first row, and those after the last."""


class Level(NamedTuple):
    """A world at its start."""

    state: Array  # a record of core.STATE
    marks: Array  # [NUM_MARKS, 2] float32, points of the map; what they mean is the task's


class Builder:
    """Draws one level."""

    def __init__(self, rng: np.random.Generator, columns: int, rows: int, *, cap: float = 3.0) -> None:
        if not (1 <= columns <= core.SIDE and 1 <= rows <= core.SIDE):
            raise ValueError(
                f"the map is {columns} by {rows} cells; expected at most {core.SIDE} by {core.SIDE}"
            )
        self.rng = rng
        self.state: Any = np.zeros((), core.STATE)
        self.marks = np.zeros((NUM_MARKS, 2), np.float32)
        self._kept: list[tuple[float, float]] = []  # spots that must stay apart from later ones
        self._materials: dict[tuple[float, ...], int] = {}
        state = self.state
        state["version"] = core.version()
        state["columns"], state["rows"], state["cap"] = columns, rows, cap
        state["heights"] = core.WALL
        state["agent"]["held"] = -1
        state["agent"]["hand"] = 0.7

    # ---- surfaces

    def material(
        self,
        colour: tuple[float, float, float],
        *,
        bricks: tuple[float, float] = (1.0, 1.0),
        shift: float = 0.0,
        checker: float = 0.0,
        noise: float = 0.0,
    ) -> int:
        """Returns the number of a surface; equal ones share it."""
        values = (*colour, *bricks, shift, checker, noise)
        if values not in self._materials:
            index = len(self._materials)
            if index >= len(self.state["materials"]):
                raise ValueError("the level has more materials than fit")
            self._materials[values] = index
            self.state["materials"][index] = values
        return self._materials[values]

    def tint(self, low: float, high: float) -> tuple[float, float, float]:
        """Draws a muted colour."""
        grey, red, blue = self.rng.uniform(low, high), *self.rng.uniform(-0.09, 0.09, 2)
        return float(grey + red), float(grey - 0.5 * (red + blue)), float(grey + blue)

    def draw_surfaces(self, *, is_grey: bool = False) -> None:
        """Chooses walls and floor, anew for each level, and covers everything with them."""
        wall = GREY if is_grey else self.tint(0.45, 0.75)
        floor = (0.42, 0.42, 0.42) if is_grey else self.tint(0.35, 0.6)
        self.wall = self.material(wall, bricks=(2.0, 4.0), shift=0.5, noise=0.25)
        self.floor = self.material(floor, bricks=(2.0, 2.0), checker=0.12, noise=0.06)
        self.void = self.material((0.03, 0.03, 0.05))
        self.door_surface = self.material((0.45, 0.36, 0.28), bricks=(2.0, 0.5), checker=0.35)
        self.apple_skin = self.material((0.80, 0.06, 0.10))
        self.state["sides"] = self.wall
        self.state["tops"] = self.floor

    def paint(self, colour: str) -> int:
        """Returns the surface of keys and sensors of a colour."""
        return self.material(COLOURS[colour], bricks=(4.0, 4.0), checker=0.10)

    def draw_colours(self, num: int) -> list[str]:
        """Draws different colours."""
        return [list(COLOURS)[i] for i in self.rng.permutation(len(COLOURS))[:num]]

    # ---- ground

    def ground(self, where: Rectangle, height: float = 0.0, *, top: int | None = None) -> None:
        """Sets the height of cells."""
        c0, r0, c1, r1 = where
        self.state["heights"][r0:r1, c0:c1] = height
        self.state["tops"][r0:r1, c0:c1] = (
            (self.void if height == core.VOID else self.floor) if top is None else top
        )

    def _mover(self, where: Rectangle, closed: float, opened: float, speed: float, sensors: list[int]) -> Any:
        index = int(self.state["num_movers"])
        self.state["num_movers"] += 1
        mover = self.state["movers"][index]
        mover["column0"], mover["row0"], mover["column1"], mover["row1"] = where
        mover["closed"], mover["open"], mover["speed"], mover["height"] = closed, opened, speed, closed
        mover["sensors"] = sum(1 << sensor for sensor in sensors)
        mover["material"] = self.door_surface
        return mover

    def door(self, where: Rectangle, sensors: list[int], *, floor: float = 0.0) -> None:
        """Adds a door that sinks into the floor while all its sensors are on."""
        self.ground(where, floor)
        self._mover(where, float(self.state["cap"]), floor, 3.0, sensors)["is_door"] = 1
        c0, r0, c1, r1 = where
        self.state["heights"][r0:r1, c0:c1] = core.WALL

    def bridge(self, where: Rectangle, sensors: list[int], *, height: float = 0.0) -> None:
        """Adds a deck that rises out of the void."""
        self.ground(where, core.VOID)
        self._mover(where, core.VOID, height, 8.0, sensors)

    # ---- things

    def sensor(
        self,
        at: tuple[float, float, float],
        half: tuple[float, float, float],
        key: int,
        mode: int,
        material: int,
    ) -> int:
        """Adds a box that feels bodies with its key number; returns its number."""
        index = int(self.state["num_sensors"])
        self.state["num_sensors"] += 1
        self.state["sensors"][index] = (*at, *half, key, mode, 0, material)
        return index

    def plate(
        self,
        room: Rectangle,
        wall: str,
        along: float,
        key: int,
        mode: int,
        colour: str,
        *,
        span: tuple[float, float] = (0.9, 1.5),
        floor: float = 0.0,
    ) -> int:
        """Adds a sensor plate to a wall of a room, its middle `along` metres from the room's corner."""
        x0, y0, x1, y1 = (core.CELL * edge for edge in room)
        x, y, outward = {
            "west": (x0, y0 + along, (1, 0)),
            "east": (x1, y0 + along, (-1, 0)),
            "north": (x0 + along, y0, (0, 1)),
            "south": (x0 + along, y1, (0, -1)),
        }[wall]
        low, high = span
        at = (x + 0.02 * outward[0], y + 0.02 * outward[1], floor + 0.5 * (low + high))
        half = (0.02 if outward[0] else 0.35, 0.35 if outward[0] else 0.02, 0.5 * (high - low))
        return self.sensor(at, half, key, mode, self.paint(colour))

    def body(
        self,
        kind: int,
        at: tuple[float, float],
        half: tuple[float, float, float],
        material: int,
        *,
        floor: float = 0.0,
        key: int = 0,
        mass: float = 1.0,
        flags: int = core.LIFTABLE | core.PUSHABLE,
        yaw: float = 0.0,
    ) -> int:
        """Adds a body that stands on `floor`; returns its number."""
        index = int(self.state["num_bodies"])
        self.state["num_bodies"] += 1
        body = self.state["bodies"][index]
        body["kind"], body["key"], body["material"], body["mass"] = kind, key, material, mass
        body["flags"] = flags | core.ALIVE | core.ASLEEP
        body["hx"], body["hy"], body["hz"] = half
        body["x"], body["y"], body["z"] = *at, floor + half[2]
        body["yaw"] = yaw
        self._kept.append(at)
        return index

    def box(self, at: tuple[float, float], half: float, material: int, **options: Any) -> int:
        """Adds a cube."""
        return self.body(core.BOX, at, (half, half, half), material, **options)

    def ball(self, at: tuple[float, float], radius: float, material: int, **options: Any) -> int:
        """Adds a ball."""
        return self.body(core.BALL, at, (radius, radius, radius), material, **options)

    def apple(self, at: tuple[float, float], *, floor: float = 0.0, is_large: bool = True) -> None:
        """Adds the large apple, which pays 10 and ends the episode, or a small one, which pays 1."""
        index = int(self.state["num_apples"])
        self.state["num_apples"] += 1
        radius, reward = (0.35, 10.0) if is_large else (0.22, 1.0)
        self.state["apples"][index] = (
            *at,
            floor + radius + 0.15,
            radius,
            reward,
            is_large,
            0,
            self.apple_skin,
        )
        self._kept.append(at)

    def strip(self, where: tuple[float, float, float, float], reward: float) -> None:
        """Adds a band on the floor (x0, y0, x1, y1 in metres) that pays at every entry."""
        index = int(self.state["num_strips"])
        self.state["num_strips"] += 1
        surface = self.material((0.75, 0.08, 0.08), bricks=(4.0, 4.0), checker=0.3)
        self.state["strips"][index] = (*where, 0.0, reward, 0, 0, surface)

    def spot(self, room: Rectangle, *, margin: float, gap: float) -> tuple[float, float]:
        """Draws a place in a room, `margin` from its walls and `gap` from all that is there.

        Gaps shrink if they must.
        """
        x0, y0, x1, y1 = (core.CELL * edge for edge in room)
        if x1 - x0 < 2 * margin or y1 - y0 < 2 * margin:
            raise ValueError(
                f"a room of {x1 - x0:g} by {y1 - y0:g} m has no place {margin:g} m from its walls"
            )
        for shrunk in (gap, 0.85 * gap, 0.7 * gap, 0.55 * gap):
            for _ in range(60):
                x = float(self.rng.uniform(x0 + margin, x1 - margin))
                y = float(self.rng.uniform(y0 + margin, y1 - margin))
                if all((x - a) ** 2 + (y - b) ** 2 >= shrunk**2 for a, b in self._kept):
                    return x, y
        raise ValueError(f"no place {0.55 * gap:g} m from everything was found in a room of {room}")

    def keep_clear(self, at: tuple[float, float]) -> None:
        """Lets later spots keep their distance from a point."""
        self._kept.append(at)

    def start(self, at: tuple[float, float], yaw: float | None = None, *, floor: float = 0.0) -> None:
        """Puts the agent somewhere, looking anywhere unless told."""
        agent = self.state["agent"]
        agent["x"], agent["y"] = at
        agent["z"] = floor
        agent["yaw"] = self.rng.uniform(-np.pi, np.pi) if yaw is None else yaw

    def mark(self, index: int, at: tuple[float, float]) -> None:
        """Remembers a point for measurement and solvers."""
        self.marks[index] = at

    def finish(self, symmetry: int) -> Level:
        """Turns and mirrors the whole level: bit 0 mirrors x, bit 1 mirrors y, bit 2 swaps them."""
        state, marks = self.state, self.marks
        if symmetry & 1:
            _mirror(state, marks, "x", "columns")
        if symmetry & 2:
            _mirror(state, marks, "y", "rows")
        if symmetry & 4:
            _swap(state, marks)
        return Level(state, marks)


def _mirror(state: Any, marks: Array, axis: str, count: str) -> None:
    num = int(state[count])
    length = num * core.CELL
    for grid in ("heights", "tops", "sides"):
        used = state[grid][:, :num] if axis == "x" else state[grid][:num]
        used[:] = used[:, ::-1].copy() if axis == "x" else used[::-1].copy()
    for things in ("bodies", "sensors", "apples"):
        state[things][axis] = length - state[things][axis]
    strips = state["strips"]
    low, high = strips[f"{axis}0"].copy(), strips[f"{axis}1"].copy()
    strips[f"{axis}0"], strips[f"{axis}1"] = length - high, length - low
    name = "column" if axis == "x" else "row"
    movers = state["movers"][: int(state["num_movers"])]
    low, high = movers[f"{name}0"].copy(), movers[f"{name}1"].copy()
    movers[f"{name}0"], movers[f"{name}1"] = num - high, num - low
    agent = state["agent"]
    agent[axis] = length - agent[axis]
    for yaws in (agent["yaw"], state["bodies"]["yaw"]):
        yaws[...] = _wrapped(np.pi - yaws if axis == "x" else -yaws)
    marks[:, 0 if axis == "x" else 1] = length - marks[:, 0 if axis == "x" else 1]


def _swap(state: Any, marks: Array) -> None:
    for grid in ("heights", "tops", "sides"):
        state[grid] = state[grid].T.copy()
    state["columns"], state["rows"] = int(state["rows"]), int(state["columns"])
    for things in (state["bodies"], state["sensors"], state["apples"], state["agent"]):
        things["x"], things["y"] = things["y"].copy(), things["x"].copy()
    state["sensors"]["hx"], state["sensors"]["hy"] = (
        state["sensors"]["hy"].copy(),
        state["sensors"]["hx"].copy(),
    )
    pairs = [(state["strips"], "x0", "y0"), (state["strips"], "x1", "y1")]
    pairs += [(state["movers"], "column0", "row0"), (state["movers"], "column1", "row1")]
    for things, one, other in pairs:
        things[one], things[other] = things[other].copy(), things[one].copy()
    for yaws in (state["agent"]["yaw"], state["bodies"]["yaw"]):
        yaws[...] = _wrapped(0.5 * np.pi - yaws)
    marks[:] = marks[:, ::-1].copy()


def _wrapped(angle: Any) -> Any:
    return (angle + np.pi) % (2 * np.pi) - np.pi
