"""A point in a walled square: continuous actions, and ground truth to measure by.

    ┌───────────┐      plan "s": from the bottom left to the goal at the top right,
    │          G│      around two walls. An action is a push in x and y; walls stop the
    │  ─────────│      part of a move that would cross them, and cost nothing.
    │           │
    │────────   │      Seen are the position and the free distance to the left, right, down
    │S          │      and up, all scaled to [−1, 1]: plans can be told apart by looking.
    └───────────┘

Reaching the goal pays and ends the episode. Places are the 10 × 10 cells of the square. NumPy only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from softcount.envs.spaces import checked_actions
from softcount.types import (
    ActionSpec,
    Array,
    ArraySpec,
    ContinuousActions,
    ObservationSpec,
    State,
    TimeStep,
    load_rng,
    rng_state,
)
from softcount.validation import at_least, between, check_fields

CELLS = 10
"""Cells per side."""
GAP = 0.001
"""How near to a wall a point comes."""

Plan: TypeAlias = Literal["s", "n", "hook", "open"]


class Wall(NamedTuple):
    """A thin wall at one coordinate of an axis (0 is x, 1 is y), over a stretch of the other."""

    axis: int
    at: float
    start: float
    end: float


PLANS: dict[str, tuple[Wall, ...]] = {
    "s": (Wall(1, 0.3, 0.0, 0.8), Wall(1, 0.7, 0.2, 1.0)),
    "n": (Wall(0, 0.3, 0.0, 0.8), Wall(0, 0.7, 0.2, 1.0)),
    "hook": (Wall(0, 0.5, 0.0, 0.8), Wall(1, 0.8, 0.5, 0.9)),
    "open": (),
}
BORDERS = tuple(Wall(axis, at, 0.0, 1.0) for axis in (0, 1) for at in (0.0, 1.0))


@dataclass(frozen=True, kw_only=True)
class PointMazeConfig:
    """Walls, pushes and pay."""

    plan: Plan = "s"
    """Where the walls are: `s`, `n`, `hook`, or `open` without any."""
    push: float = 0.1
    """How far the strongest push moves the point along each axis; the square's side is 1."""
    slip: float = 0.01
    """Standard deviation of what is added to every move."""
    goal_reward: float = 1.0
    """Paid on reaching the goal, which ends the episode."""
    max_steps: int = 100
    """Steps after which an episode is cut."""

    def __post_init__(self) -> None:
        check_fields(self, push=between(0, 1, "(]"), slip=at_least(0), max_steps=at_least(1))


class PointMaze:
    """Copies of the square, stepped together (`types.VectorEnv`).

    >>> env = PointMaze(PointMazeConfig(slip=0.0), num_envs=1)
    >>> env.reset(seed=0).place.tolist()
    [0]
    >>> for _ in range(9):
    ...     step = env.step(np.array([[0.0, 1.0]], np.float32))
    >>> step.place.tolist(), env.at.round(3).tolist()  # three cells up is the wall
    ([20], [[0.05, 0.299]])
    """

    def __init__(self, config: PointMazeConfig | None = None, *, num_envs: int = 1, seed: int = 0) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs is {num_envs}; expected at least 1")
        self.config = config or PointMazeConfig()
        self.num_envs = num_envs
        self.walls = (*BORDERS, *PLANS[self.config.plan])
        self.observation_spec: ObservationSpec = ArraySpec((6,), "float32")
        self.action_spec: ActionSpec = ContinuousActions((-1.0, -1.0), (1.0, 1.0))
        self.num_places: int | None = CELLS**2
        self.task_ids = np.zeros(num_envs, np.int64)
        self.task_names: tuple[str, ...] = ("point-maze",)
        self.map_shape = (CELLS, CELLS)
        self.terminal_places = np.array([CELLS**2 - 1])
        self.rng = np.random.default_rng(seed)
        self.at = np.full((num_envs, 2), 0.05)
        self._elapsed = np.zeros(num_envs, np.int64)
        self._is_over = np.ones(num_envs, bool)

    def cell_of(self, place: int) -> tuple[int, int]:
        """Returns row and column of a place on the map; the bottom row is the last."""
        row, column = divmod(int(place), CELLS)
        return CELLS - 1 - row, column

    def reset(self, seed: int | None = None) -> TimeStep:
        """Starts a new episode in every copy; a seed starts the generator anew."""
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self._is_over[:] = True
        return self.step(np.zeros((self.num_envs, 2), np.float32))

    def step(self, actions: Array) -> TimeStep:
        """Pushes every copy; copies whose episode was over start a new one instead."""
        actions = checked_actions(actions, self.action_spec, self.num_envs)
        is_first = self._is_over
        slip = self.config.slip * self.rng.standard_normal(self.at.shape)
        moved = self._move(self.at, self.config.push * actions + slip)
        self.at = np.where(is_first[:, None], 0.05, moved)
        self._elapsed = np.where(is_first, 0, self._elapsed + 1)
        place = self._places(self.at)
        is_terminal = place == self.terminal_places[0]
        self._is_over = is_terminal | (self._elapsed >= self.config.max_steps)
        reward = np.where(is_terminal, self.config.goal_reward, 0.0).astype(np.float32)
        return TimeStep(self._look(self.at), reward, is_first, self._is_over.copy(), is_terminal, place)

    def portray(self, places: Array, rng: np.random.Generator) -> Array:
        """Returns an observation from somewhere in each place `[N, 6]`; changes nothing."""
        places = np.asarray(places)
        corner = np.stack((places % CELLS, places // CELLS), axis=1)
        return self._look((corner + rng.uniform(0.05, 0.95, size=corner.shape)) / CELLS)

    def get_state(self) -> State:
        return {
            "at": self.at.copy(),
            "elapsed": self._elapsed.copy(),
            "is_over": self._is_over.copy(),
            "rng": rng_state(self.rng),
        }

    def set_state(self, state: State) -> None:
        """Continues exactly where `get_state` was called."""
        if len(state["at"]) != self.num_envs:
            raise ValueError(f"the state is of {len(state['at'])} copies; expected {self.num_envs}")
        self.at, self._elapsed = np.array(state["at"]), np.array(state["elapsed"])
        self._is_over = np.array(state["is_over"])
        load_rng(self.rng, state["rng"])

    def close(self) -> None:
        """Nothing to release."""

    def _move(self, at: Array, by: Array) -> Array:
        """Moves along x, then along y, each up to the first wall."""
        at = at.copy()
        for axis in (0, 1):
            below, above = self._free(at, axis)
            at[:, axis] += np.clip(by[:, axis], -np.maximum(below - GAP, 0), np.maximum(above - GAP, 0))
        return at

    def _free(self, at: Array, axis: int) -> tuple[Array, Array]:
        """Returns how far it is to the nearest wall below and above along an axis, each `[N]`."""
        along, across = at[:, axis], at[:, 1 - axis]
        below, above = np.full(len(at), np.inf), np.full(len(at), np.inf)
        for wall in self.walls:
            if wall.axis != axis:
                continue
            is_there = (across >= wall.start) & (across <= wall.end)
            below = np.where(is_there & (along >= wall.at), np.minimum(below, along - wall.at), below)
            above = np.where(is_there & (along < wall.at), np.minimum(above, wall.at - along), above)
        return below, above

    def _look(self, at: Array) -> Array:
        ranges = np.stack((*self._free(at, 0), *self._free(at, 1)), axis=1)
        return (2 * np.concatenate((at, ranges), axis=1) - 1).astype(np.float32)

    @staticmethod
    def _places(at: Array) -> Array:
        column, row = (np.clip((at * CELLS).astype(np.int64), 0, CELLS - 1)).T
        return np.asarray(row * CELLS + column)
