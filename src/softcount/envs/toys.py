"""Four worlds that take seconds to learn and each need one part of the agent.

    CueMemory   recall a cue after a delay: needs the recurrent state
    Chain       little near, much far: needs a long discount
    TwoWorlds   the same chain, but half of the copies are cut before the far end, and none
                can see which it is: needs a bandit per environment
    Catch       a falling ball, dense enough for anybody: needs learning at all

A world is a few pure rules over integer states; `ToyVector` steps copies of it together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from softcount.types import (
    ActionSpec,
    Array,
    ArraySpec,
    DiscreteActions,
    ObservationSpec,
    State,
    TimeStep,
    load_rng,
    rng_state,
)


class Moved(NamedTuple):
    """Where a move led, for some copies."""

    state: Array  # [B, K] int64
    reward: Array  # [B]
    is_last: Array
    is_terminal: Array


class World(Protocol):
    """The rules of a toy."""

    @property
    def observation_shape(self) -> tuple[int, ...]: ...
    @property
    def num_actions(self) -> int: ...
    def start(self, env_ids: Array, rng: np.random.Generator) -> Array: ...  # states [B, K]
    def move(self, state: Array, action: Array) -> Moved: ...
    def observe(self, state: Array) -> Array: ...  # [B, *observation_shape] float32


@dataclass(frozen=True, kw_only=True)
class CueMemory:
    """A cue is shown once; after a delay the question: which was it?

    Waiting (the last action) is free, any other action before the question costs a little, so
    that the cue cannot be carried along in one's own actions. The right answer pays 1.
    Without memory 1 / `cues` is the best there is.
    """

    cues: int = 4
    """How many cues there are."""
    delay: int = 10
    """Steps between cue and question."""
    fidget_cost: float = 0.1
    """What an action other than waiting costs before the question."""

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.cues + 2,)

    @property
    def num_actions(self) -> int:
        return self.cues + 1

    def start(self, env_ids: Array, rng: np.random.Generator) -> Array:
        cue = rng.integers(self.cues, size=len(env_ids))
        return np.stack((cue, np.zeros_like(cue)), axis=1)  # cue, time

    def move(self, state: Array, action: Array) -> Moved:
        cue, time = state.T
        is_question = time == self.delay
        fidget = np.where(action == self.cues, 0.0, -self.fidget_cost)
        reward = np.where(is_question, action == cue, fidget)
        return Moved(np.stack((cue, time + 1), axis=1), reward, is_question, is_question)

    def observe(self, state: Array) -> Array:
        cue, time = state.T
        seen = np.zeros((len(state), self.cues + 2), np.float32)
        seen[np.arange(len(state)), cue] = time == 0
        seen[:, -2] = time == self.delay
        seen[:, -1] = time == 0
        return seen


@dataclass(frozen=True, kw_only=True)
class Chain:
    """Cells in a row: a small reward at the near end, a reward of 1 at the far end."""

    length: int = 12
    """Cell of the far end."""
    start_cell: int = 3
    """Where episodes begin; the near end is cell 0."""
    near_reward: float = 0.3
    """What the near end pays."""
    alternates: bool = True
    """Which action leads forward alternates from cell to cell: always doing the same leads nowhere."""
    max_steps: int = 60
    """Steps after which an episode is cut."""

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.length + 1,)

    @property
    def num_actions(self) -> int:
        return 2

    def start(self, env_ids: Array, rng: np.random.Generator) -> Array:
        limit = np.full(len(env_ids), self.max_steps)
        return np.stack((np.full_like(limit, self.start_cell), limit), axis=1)  # cell, steps left

    def move(self, state: Array, action: Array) -> Moved:
        cell, left = state.T
        forward = cell % 2 if self.alternates else 1
        cell, left = cell + np.where(action == forward, 1, -1), left - 1
        is_terminal = (cell == 0) | (cell == self.length)
        reward = np.where(cell == 0, self.near_reward, 1.0) * is_terminal
        return Moved(np.stack((cell, left), axis=1), reward, is_terminal | (left == 0), is_terminal)

    def observe(self, state: Array) -> Array:
        return np.eye(self.length + 1, dtype=np.float32)[state[:, 0]]


@dataclass(frozen=True, kw_only=True)
class TwoWorlds(Chain):
    """The chain, but copies with an odd number are cut before the far end can be reached.

    The cut is a time limit and cannot be seen: one far-sighted policy goes for the far end in all
    copies and gets nothing in half of them, one short-sighted policy gets the little in all.
    """

    alternates: bool = False
    """Exploring is made easy here: action 1 always leads forward."""
    short_limit: int = 8
    """Steps after which episodes of odd copies are cut."""

    def start(self, env_ids: Array, rng: np.random.Generator) -> Array:
        limit = np.where(env_ids % 2 == 1, self.short_limit, self.max_steps)
        return np.stack((np.full_like(limit, self.start_cell), limit), axis=1)


@dataclass(frozen=True, kw_only=True)
class Catch:
    """A ball falls from a random column; the paddle at the bottom has to be there. Pays 1 or −1."""

    rows: int = 10
    """Height of the board."""
    columns: int = 5
    """Width of the board."""

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return (self.rows, self.columns)

    @property
    def num_actions(self) -> int:
        return 3

    def start(self, env_ids: Array, rng: np.random.Generator) -> Array:
        column = rng.integers(self.columns, size=len(env_ids))
        return np.stack((np.zeros_like(column), column, np.full_like(column, self.columns // 2)), axis=1)

    def move(self, state: Array, action: Array) -> Moved:
        row, column, paddle = state.T
        row, paddle = row + 1, np.clip(paddle + action - 1, 0, self.columns - 1)
        is_last = row == self.rows - 1
        reward = np.where(paddle == column, 1.0, -1.0) * is_last
        return Moved(np.stack((row, column, paddle), axis=1), reward, is_last, is_last)

    def observe(self, state: Array) -> Array:
        board = np.zeros((len(state), self.rows, self.columns), np.float32)
        copies = np.arange(len(state))
        board[copies, state[:, 0], state[:, 1]] = 1.0
        board[copies, -1, state[:, 2]] = 1.0
        return board


TOYS: dict[str, type[Any]] = {
    "catch": Catch,
    "chain": Chain,
    "cue-memory": CueMemory,
    "two-worlds": TwoWorlds,
}
"""Worlds by the names that `make` knows them by."""


class ToyVector:
    """Copies of a world, stepped together (`types.VectorEnv`).

    >>> env = ToyVector(Chain(start_cell=1), num_envs=2)
    >>> env.reset().is_first.tolist()
    [True, True]
    >>> step = env.step(np.array([0, 1]))
    >>> step.is_last.tolist(), step.reward.round(1).tolist(), step.observation.argmax(1).tolist()
    ([True, False], [0.30000001192092896, 0.0], [0, 2])
    >>> env.step(np.array([1, 1])).is_first.tolist()
    [True, False]
    """

    def __init__(self, world: World, *, num_envs: int = 1, seed: int = 0) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs is {num_envs}; expected at least 1")
        self.world = world
        self.num_envs = num_envs
        self.num_places: int | None = None
        self.task_ids = np.zeros(num_envs, np.int64)
        self.task_names: tuple[str, ...] = (type(world).__name__,)
        self.observation_spec: ObservationSpec = ArraySpec(world.observation_shape, "float32")
        self.action_spec: ActionSpec = DiscreteActions(world.num_actions)
        self.rng = np.random.default_rng(seed)
        self._env_ids = np.arange(num_envs)
        self._state = world.start(self._env_ids, self.rng)
        self._is_over = np.ones(num_envs, bool)

    def reset(self, seed: int | None = None) -> TimeStep:
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self._is_over = np.ones(self.num_envs, bool)
        return self.step(np.zeros(self.num_envs, np.int64))

    def step(self, actions: Array) -> TimeStep:
        is_first = self._is_over
        moved = self.world.move(self._state, np.asarray(actions))
        self._state = moved.state.copy()
        self._state[is_first] = self.world.start(self._env_ids[is_first], self.rng)
        self._is_over = moved.is_last & ~is_first
        return TimeStep(
            observation=self.world.observe(self._state),
            reward=np.where(is_first, 0.0, moved.reward).astype(np.float32),
            is_first=is_first,
            is_last=self._is_over,
            is_terminal=moved.is_terminal & ~is_first,
        )

    def get_state(self) -> State:
        return {
            "state": self._state.copy(),
            "is_over": self._is_over.copy(),
            "rng": rng_state(self.rng),
        }

    def set_state(self, state: State) -> None:
        self._state = np.array(state["state"])
        self._is_over = np.array(state["is_over"])
        load_rng(self.rng, state["rng"])

    def close(self) -> None:
        """Holds nothing open."""
