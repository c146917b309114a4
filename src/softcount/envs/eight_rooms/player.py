"""A scripted player: it knows the whole state, but acts through the nine actions at the agent's own rate.

Its moves are generators that yield one action vector per agent step and read the state that follows, so
that a script (`solvers.py`) reads as what a person would do: fetch this, bring it there, walk to the apple.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from softcount.envs.eight_rooms import core, paths
from softcount.types import Array

MOVE, STRAFE, LOOK, NOD, TURN, PUSH, GRIP = 0, 1, 2, 3, 6, 7, 8
EYE = 1.5
STRIDE, TURNED, NODDED = 0.4, np.pi * 4 / 30, np.pi / 2 * 4 / 30  # metres and radians of a full agent step
Moves = Iterator[Array]
Point = tuple[float, float]


class Player:
    """One agent in one world; `state` is its record, which changes with every step."""

    def __init__(self, state: Any, marks: Array) -> None:
        self.state, self.marks = state, marks

    # ---- what is where

    @property
    def held(self) -> int:
        """The body in the hand, or -1."""
        return int(self.state["agent"]["held"])

    def body(self, index: int) -> Any:
        """A body's record."""
        return self.state["bodies"][index]

    def at(self, thing: Any) -> Point:
        """Where on the map something is."""
        return float(thing["x"]), float(thing["y"])

    @property
    def place(self) -> Point:
        """Where the agent stands."""
        return self.at(self.state["agent"])

    def far(self, point: Point) -> float:
        """Metres from the agent."""
        x, y = self.place
        return float(np.hypot(point[0] - x, point[1] - y))

    def is_on(self, sensor: int) -> bool:
        """Whether a sensor is on."""
        return bool(self.state["sensors"][sensor]["is_on"])

    # ---- one action

    def act(
        self,
        *,
        to: Point | None = None,
        look: tuple[float, float, float] | None = None,
        pitch: float | None = None,
        push: float = 0.0,
        grip: bool | None = None,
        pace: float = 1.0,
    ) -> Array:
        """Makes one action: walk towards a point, look at one, push the hand; what is held stays held."""
        agent, action = self.state["agent"], np.zeros(9, np.float32)
        x, y = self.place
        yaw = float(agent["yaw"])
        if to is not None:
            dx, dy = to[0] - x, to[1] - y
            length = float(np.hypot(dx, dy))
            speed = pace * min(1.0, length / STRIDE) / max(length, 1e-6)
            action[MOVE] = (dx * np.cos(yaw) + dy * np.sin(yaw)) * speed
            action[STRAFE] = (dy * np.cos(yaw) - dx * np.sin(yaw)) * speed
        if look is not None:
            flat = max(float(np.hypot(look[0] - x, look[1] - y)), 1e-6)
            turn = (np.arctan2(look[1] - y, look[0] - x) - yaw + np.pi) % (2 * np.pi) - np.pi
            action[LOOK] = np.clip(turn / TURNED, -1, 1)
            if pitch is None:
                pitch = float(np.arctan2(look[2] - (agent["z"] + EYE), flat))
        if pitch is not None:
            action[NOD] = np.clip((np.clip(pitch, -1.2, 1.2) - agent["pitch"]) / NODDED, -1, 1)
        action[PUSH] = np.clip(push, -10, 10)
        action[GRIP] = float(self.held >= 0 if grip is None else grip)
        return action

    def is_facing(self, point: tuple[float, float, float], tolerance: float = 0.03) -> bool:
        """Whether the view axis passes near a point."""
        agent = self.state["agent"]
        x, y = self.place
        flat = float(np.hypot(point[0] - x, point[1] - y))
        turn = (np.arctan2(point[1] - y, point[0] - x) - agent["yaw"] + np.pi) % (2 * np.pi) - np.pi
        nod = np.arctan2(point[2] - (agent["z"] + EYE), flat) - agent["pitch"]
        return bool(abs(turn) < tolerance and abs(nod) < tolerance)

    # ---- moves

    def walk(
        self,
        goal: Point,
        near: float = 0.3,
        *,
        ignore: tuple[int, ...] = (),
        steps: int = 250,
        look: tuple[float, float, float] | None = None,
        hand: float = 0.85,
    ) -> Moves:
        """Walks to within `near` of a goal round everything else; gives up where there is no way."""
        far, age, last, stuck, lost = None, 0, self.place, 0, 0
        for _ in range(steps):
            if self.far(goal) <= near:
                return
            if far is None or age >= 12 or stuck >= 3:
                far, age = paths.distances(self.state, goal, max(near - 0.1, 0.18), ignore), 0
            point = paths.next_point(self.state, far)
            if point is None:
                if lost == 2:
                    return
                lost, far = lost + 1, None
                yield from self._wriggle()
                continue
            if self.far(goal) < near + 0.3 and far[paths.point_of(self.state)] == 0:
                point = goal
            stuck = stuck + 1 if np.hypot(last[0] - self.place[0], last[1] - self.place[1]) < 0.02 else 0
            last = self.place
            if stuck >= 6:
                stuck = 0
                yield from self._wriggle()
            if (
                self.held >= 0 and self.state["agent"]["lag"] > 0.3
            ):  # it caught on something: back a little, and turn to it
                body = self.body(self.held)
                x, y = self.place
                back = (2 * x - float(body["x"]), 2 * y - float(body["y"]))
                yield self.act(look=(*self.at(body), float(body["z"])), to=back, push=-2.0, pace=0.5)
                age = 12
                continue
            age += 1
            pull = 0.0 if self.held < 0 else (hand - float(self.state["agent"]["hand"])) * 7.0
            seen = look or (point[0], point[1], float(self.state["agent"]["z"]) + EYE)
            yield self.act(to=point, look=seen, push=pull)

    def _wriggle(self) -> Moves:
        """Goes a few steps anywhere, to get out of a corner."""
        x, y = self.place
        side = np.random.default_rng(int(self.state["tick"])).uniform(-1, 1, 2)
        for _ in range(3):
            yield self.act(to=(x + float(side[0]), y + float(side[1])))

    def drop(self, steps: int = 2) -> Moves:
        """Opens the hand."""
        for _ in range(steps):
            yield self.act(grip=False)

    def fetch(self, index: int, *, tries: int = 8, nears: tuple[float, ...] = (1.45, 1.2, 1.0, 1.6)) -> Moves:
        """Walks to a body and picks it up."""
        if self.held >= 0 and self.held != index:
            yield from self.drop()
        for attempt in range(tries):
            if self.held == index or not self.body(index)["flags"] & core.ALIVE:
                return
            near = nears[attempt % len(nears)]
            yield from self.walk(self.at(self.body(index)), near, ignore=(index,), steps=120)
            for _ in range(14):
                body = self.body(index)
                point = (*self.at(body), float(body["z"]))
                if self.is_facing(point):
                    yield self.act(look=point, grip=True)
                    if self.held == index:
                        return
                    yield self.act(look=point, grip=False)
                    break
                yield self.act(look=point, grip=False)
            if self.held >= 0:
                yield from self.drop()
            if self.held < 0:  # something is in between: look from elsewhere
                x, y = self.place
                angle = float(self.state["agent"]["yaw"]) + (1.9 if attempt % 2 else -1.9)
                for _ in range(3):
                    yield self.act(to=(x + float(np.cos(angle)), y + float(np.sin(angle))))

    def touch(self, index: int, *, tries: int = 4) -> Moves:
        """Brings what is held to a sensor, from the side where there is room."""
        sensor = self.state["sensors"][index]
        middle = (*self.at(sensor), float(sensor["z"]))
        for attempt in range(tries):
            if self.is_on(index) or self.held < 0:
                return
            stand = self._stand_before(sensor, 1.35 - 0.15 * (attempt % 3))
            yield from self.walk(stand, 0.15, steps=150)
            for _ in range(12):
                if self.is_facing(middle, 0.1):
                    break
                yield self.act(look=middle, to=stand)
            for _ in range(10):
                if self.is_on(index) or self.held < 0:
                    return
                yield self.act(look=middle, push=3.0)
            for _ in range(4):
                if self.is_on(index) or self.held < 0:
                    return
                yield self.act(look=middle, to=self.at(sensor), pace=0.4)

    def _stand_before(self, sensor: Any, far: float) -> Point:
        """A free point at a distance from a sensor, straight before a plate where possible."""
        free, ground = paths.free_points(self.state), paths.ground_of(self.state)
        x, y = self.at(sensor)
        floor = float(self.state["agent"]["z"])
        at = (np.arange(paths.NUM) + 0.5) * paths.LATTICE
        dx, dy = at - x, (at - y)[:, None]
        distance = np.hypot(dx, dy)
        cost = np.abs(distance - far) * 4
        if sensor["hx"] < 0.05:
            cost = cost + 1.0 * np.abs(dy)
        elif sensor["hy"] < 0.05:
            cost = cost + 1.0 * np.abs(dx)
        else:
            cost = cost + 0.05 * np.hypot(at - self.place[0], (at - self.place[1])[:, None])
        usable = free & (np.abs(ground - floor) < 0.3) & (distance < 2.2)
        row, column = np.unravel_index(np.where(usable, cost, np.inf).argmin(), cost.shape)
        return float(at[column]), float(at[row])
