"""Walks through the Disco Maze: recordings to learn representations from and to measure them on.

Walls only block here. The policy walks at random with some inertia: mostly among the open
moves, sometimes among all four. Recordings are palette indices; three ways to see them:

    whole      the maze from above, as in the paper: fully observed
    window     the square around the agent
    screens    the maze is cut into rooms; the agent sees only the one it is in, with static
               on the picture: the agent's pixel is always there, every other may be wrong

Actions are compass directions or, after `steer`, turns relative to the last one.

Some places can be hidden: their rows are cut out of every sequence, so that a
representation never learns from them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from softcount.envs.disco_maze import AGENT, MOVES, OUTSIDE, PALETTE, DiscoMaze
from softcount.types import Array, Sequence, Step


@dataclass(frozen=True)
class Walks:
    """A recording, all arrays time-major `[T, B, ...]`; observations are palette indices."""

    observation: Array
    action: Array
    is_first: Array
    is_last: Array
    place: Array

    def part(self, envs: slice) -> Walks:
        """Only some of the environments."""
        return Walks(*(getattr(self, name)[:, envs] for name in self.__dataclass_fields__))

    def rows(self, num: int, rng: np.random.Generator) -> tuple[Array, Array]:
        """A random sample of observations (palette) and their places."""
        t, b = rng.integers(len(self.place), size=num), rng.integers(self.place.shape[1], size=num)
        return self.observation[t, b], self.place[t, b]

    def sample(self, length: int, batch: int, rng: np.random.Generator, hidden: Array) -> Sequence:
        """Random traces in RGB; rows at hidden places become episodes of their own, without transition."""
        starts = rng.integers(len(self.place) - length + 1, size=batch)
        t, b = starts + np.arange(length)[:, None], rng.integers(self.place.shape[1], size=batch)
        is_first, is_last, action = self.is_first[t, b], self.is_last[t, b], self.action[t, b]
        prev_action = np.where(is_first | (t == 0), 0, self.action[np.maximum(t - 1, 0), b])
        is_hidden = np.isin(self.place[t, b], hidden)
        is_first, is_last = is_first | is_hidden, is_last | is_hidden
        is_first[1:] |= is_hidden[:-1]
        is_last[:-1] |= is_hidden[1:]
        nothing = np.zeros(action.shape, np.float32)
        image = PALETTE[self.observation[t, b]]
        return Sequence(
            Step(image, prev_action, nothing, nothing, is_first, is_last, is_last, action, {}), ()
        )


def walk(
    env: Any, steps: int, *, warmup: int, seed: int, blind: float, inertia: float, pushing: float
) -> Walks:
    """Records all copies of a maze, or of one inside a wrapper, after `warmup` steps.

    `blind` moves ignore walls, `inertia` repeats moves that are open, `pushing` repeats any move.
    """
    rng = np.random.default_rng(seed)
    is_open = _open_moves(env)
    rows: list[tuple[Array, ...]] = []
    step = env.reset(seed)
    num = env.num_envs
    action = rng.integers(4, size=num)
    for t in range(warmup + steps):
        row, column = env.positions.T
        open_now = is_open[row * env.config.size + column]
        chosen = (open_now.cumsum(1) / open_now.sum(1, keepdims=True) > rng.random((num, 1))).argmax(1)
        repeats = (rng.random(num) < inertia) & (open_now[np.arange(num), action] > 0)
        chosen = np.where(repeats, action, chosen)
        chosen = np.where(rng.random(num) < blind, rng.integers(4, size=num), chosen)
        action = np.where(rng.random(num) < pushing, action, chosen)
        if t >= warmup:
            assert step.place is not None
            rows.append((step.observation, action, step.is_first, step.is_last, step.place))
        step = env.step(action)
    return Walks(*(np.stack(column) for column in zip(*rows, strict=True)))


def screens(walks: Walks, env: DiscoMaze, side: int) -> Walks:
    """Shows only the room of side × side cells that the agent is in."""
    size = env.config.size
    row, column = np.divmod(env.maze.cells[walks.place], size)
    rooms = -(-size // side) * side - size
    image = np.pad(walks.observation, ((0, 0), (0, 0), (0, rooms), (0, rooms)), constant_values=OUTSIDE)
    rows = (row // side * side)[..., None, None] + np.arange(side)[:, None]
    columns = (column // side * side)[..., None, None] + np.arange(side)
    t, b = np.ogrid[: image.shape[0], : image.shape[1]]
    return replace(walks, observation=image[t[..., None, None], b[..., None, None], rows, columns])


def steer(walks: Walks) -> Walks:
    """The same walks driven like a car: 0 straight on, 1 right, 2 back, 3 left of the last direction tried.

    The first row, which has none, is left out. No picture shows the direction.
    """
    quarters = _QUARTERS[walks.action]
    turns = (quarters[1:] - quarters[:-1]) % 4
    return Walks(*((turns if n == "action" else getattr(walks, n)[1:]) for n in walks.__dataclass_fields__))


def static(walks: Walks, share: float, seed: int) -> Walks:
    """Replaces this share of the pixels, the agent's excepted, by floor or a wall colour at random."""
    rng = np.random.default_rng(seed)
    image = walks.observation.copy()
    is_wrong = (rng.random(image.shape) < share) & (image != AGENT)
    image[is_wrong] = rng.choice(np.array([0, 0, 0, 1, 2, 3, 4, 5], np.uint8), size=int(is_wrong.sum()))
    return replace(walks, observation=image)


def _open_moves(maze: DiscoMaze) -> Array:
    """Which of the four moves no wall blocks, `[size², 4]`."""
    size = maze.config.size
    is_free = np.pad(maze.maze.places.reshape(size, size) >= 0, 1)
    moves = [is_free[1 + down : 1 + down + size, 1 + right : 1 + right + size] for down, right in MOVES]
    return np.stack(moves, -1).reshape(size * size, 4).astype(float)


_QUARTERS = np.array(
    [[(-1, 0), (0, 1), (1, 0), (0, -1)].index((down, right)) for down, right in MOVES.tolist()]
)
"""Quarter turns clockwise from north, for each action of the maze."""
