"""The Random Disco Maze: a maze whose walls change colour at every step (paper §4.1).

A perfect maze of `size × size` cells, seen whole as one pixel per cell. The agent
starts every episode in the bottom-left corner; an episode ends on stepping into a
wall, at the goal (the only reward, 1), or after 500 steps. Each wall cell draws its
colour uniformly from five at EVERY step, so no two observations are ever equal and
whoever predicts pixels never stops being surprised; what the agent controls is one
white pixel. Layout, goal and reward are ours, the paper gives none (Decision 20).

All copies advance in one NumPy step and this file needs NumPy only. The Gymnasium
environment in `disco_maze_gym` is this one with a single copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from softcount.envs.spaces import checked_actions
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

FLOOR, AGENT, GOAL, OUTSIDE = 0, 6, 7, 8
NUM_WALL_COLOURS = 5
PALETTE = np.array(
    [
        [0, 0, 0],  # floor
        [228, 26, 28],  # walls 1-5
        [255, 127, 0],
        [255, 217, 47],
        [77, 175, 74],
        [166, 86, 200],
        [255, 255, 255],  # agent
        [30, 90, 255],  # goal
        [96, 96, 96],  # outside the maze, seen only through a window
    ],
    np.uint8,
)
ACTIONS = ("left", "right", "up", "down")
MOVES = np.array([[0, -1], [0, 1], [-1, 0], [1, 0]])


@dataclass(frozen=True, kw_only=True)
class DiscoMazeConfig:
    """How the maze is built, what ends an episode, and what is seen."""

    size: int = 21
    """Cells per side, walls included: odd, 7 to 41."""
    layout: int = 0
    """Seed of the maze; the same in every episode and every copy."""
    new_maze_each_episode: bool = False
    """NGU's variant: every episode draws its own layout and `layout` is not used."""
    lethal: bool = True
    """Stepping into a wall ends the episode; otherwise walls only block."""
    goal_reward: float = 1.0
    """Paid on reaching the goal, which ends the episode; 0 is NGU's maze without reward."""
    max_steps: int = 500
    """Steps after which an episode is cut."""
    limit_is_terminal: bool = False
    """Whether that cut counts as an end for good (no bootstrap) instead of a time limit."""
    window: int | None = None
    """Side (odd) of the square around the agent that is seen; None shows the whole maze."""
    upscale: int = 1
    """Pixels per cell and side."""
    observation: Literal["rgb", "palette"] = "rgb"
    """`rgb`: (H, W, 3). `palette`: (H, W) indices into `PALETTE`, a third of the bytes."""

    def __post_init__(self) -> None:
        if self.size % 2 == 0 or not 7 <= self.size <= 41:
            raise ValueError(f"size is {self.size}; expected an odd number from 7 to 41")
        if self.window is not None and (self.window % 2 == 0 or self.window < 1):
            raise ValueError(f"window is {self.window}; expected a positive odd number, or None")
        if self.layout < 0:
            raise ValueError(f"layout is {self.layout}; expected 0 or more")
        if self.max_steps < 1 or self.upscale < 1:
            raise ValueError(f"max_steps {self.max_steps} and upscale {self.upscale} must be at least 1")
        if self.observation not in ("rgb", "palette"):
            raise ValueError(f"observation is {self.observation!r}; expected 'rgb' or 'palette'")

    @property
    def observation_spec(self) -> ArraySpec:
        """Shape and dtype of what one copy sees."""
        side = (self.window or self.size) * self.upscale
        return ArraySpec((side, side, 3) if self.observation == "rgb" else (side, side), "uint8")


@dataclass(frozen=True, eq=False)
class Maze:
    """One layout. Cells are flat indices row · size + column; places number the free cells."""

    size: int
    distances: Array  # [size²] int64, shortest path from the start, -1 on walls
    start: int
    goal: int
    cells: Array  # [num_places] int64, flat index of each place
    places: Array  # [size²] int64, place of each cell, -1 on walls


@lru_cache(maxsize=4096)
def carve(size: int, layout: int) -> Maze:
    """Builds a perfect maze by randomised depth-first search on the odd lattice.

    The search starts at the start cell, so its depth is the distance: in a perfect
    maze there is one path. The goal is the free cell farthest from the start.
    """
    side = size // 2
    order = np.random.default_rng(layout).permuted(np.tile(np.arange(4), (side * side, 1)), axis=1).tolist()
    moves = MOVES.tolist()
    start = (size - 2) * size + 1
    depth = [-1] * (size * size)
    depth[start] = 0
    stack = [(side - 1, 0)]
    while stack:
        row, column = stack[-1]
        untried = order[row * side + column]
        if not untried:
            stack.pop()
            continue
        down, right = moves[untried.pop()]
        new_row, new_column = row + down, column + right
        cell = (2 * row + 1) * size + 2 * column + 1
        passage = cell + down * size + right
        beyond = passage + down * size + right
        if 0 <= new_row < side and 0 <= new_column < side and depth[beyond] < 0:
            depth[passage] = depth[cell] + 1
            depth[beyond] = depth[cell] + 2
            stack.append((new_row, new_column))
    distances = np.array(depth)
    cells = np.flatnonzero(distances >= 0)
    places = np.full(size * size, -1)
    places[cells] = np.arange(len(cells))
    for array in (distances, cells, places):
        array.flags.writeable = False
    return Maze(size, distances, start, int(distances.argmax()), cells, places)


class DiscoMaze:
    """Copies of the maze, stepped together (`types.VectorEnv`).

    >>> env = DiscoMaze(DiscoMazeConfig(size=7), num_envs=2, seed=0)
    >>> step = env.reset()
    >>> step.observation.shape, step.is_first.tolist(), env.num_places
    ((2, 7, 7, 3), [True, True], 17)
    >>> step = env.step(np.array([0, 3]))  # left and down of the start are walls
    >>> step.is_last.tolist(), step.is_terminal.tolist(), step.place.tolist()
    ([True, True], [True, True], [-1, -1])
    >>> env.step(np.array([0, 0])).is_first.tolist()
    [True, True]
    """

    def __init__(self, config: DiscoMazeConfig | None = None, *, num_envs: int = 1, seed: int = 0) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs is {num_envs}; expected at least 1")
        self.config = config or DiscoMazeConfig()
        self.num_envs = num_envs
        self.observation_spec: ObservationSpec = self.config.observation_spec
        self.action_spec: ActionSpec = DiscreteActions(len(ACTIONS))
        self.rng = np.random.default_rng(seed)
        self._deltas = MOVES @ np.array([self.config.size, 1])
        self._rows = np.arange(num_envs)
        self._layouts = np.full(num_envs, self.config.layout)
        self._gather_mazes()
        self.num_places = None if self.config.new_maze_each_episode else len(self.maze.cells)
        self.task_ids = np.zeros(num_envs, np.int64)
        self.task_names: tuple[str, ...] = ("disco-maze",)
        self._cell = np.full(num_envs, self._start)
        self._elapsed = np.zeros(num_envs, np.int64)
        self.is_over = np.ones(num_envs, bool)

    @property
    def maze(self) -> Maze:
        """The layout of the first copy (of all, unless every episode draws its own)."""
        return carve(self.config.size, int(self._layouts[0]))

    @property
    def distances(self) -> Array:
        """Shortest path from the start per cell `[size, size]`, -1 on walls."""
        return self.maze.distances.reshape(self.config.size, self.config.size)

    @property
    def goal(self) -> tuple[int, int]:
        """Row and column of the goal."""
        return divmod(self.maze.goal, self.config.size)

    @property
    def terminal_places(self) -> Array:
        """Places at which an episode ends for good: the goal."""
        return np.flatnonzero(self.maze.cells == self.maze.goal)

    @property
    def positions(self) -> Array:
        """Row and column of every copy's agent `[B, 2]`, also where it stands on a wall."""
        return np.stack(np.divmod(self._cell, self.config.size), axis=1)

    @property
    def map_shape(self) -> tuple[int, int]:
        """Rows and columns of the map that `cell_of` points into."""
        return self.config.size, self.config.size

    def cell_of(self, place: int) -> tuple[int, int]:
        """Returns row and column of a place."""
        if self.config.new_maze_each_episode:
            return divmod(int(place), self.config.size)
        return divmod(int(self.maze.cells[place]), self.config.size)

    def reset(self, seed: int | None = None) -> TimeStep:
        """Starts a new episode in every copy; a seed starts the generator anew."""
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.is_over[:] = True
        return self.step(np.zeros(self.num_envs, np.int64))

    def step(self, actions: Array) -> TimeStep:
        """Moves every copy; copies whose episode was over start a new one instead."""
        actions = checked_actions(actions, self.action_spec, self.num_envs)
        cfg, is_first = self.config, self.is_over
        if is_first.any() and cfg.new_maze_each_episode:
            self._layouts[is_first] = self.rng.integers(2**31, size=int(is_first.sum()))
            self._gather_mazes()

        target = np.where(is_first, self._start, self._cell + self._deltas[actions])
        hits_wall = self._is_wall[self._rows, target]
        self._cell = target if cfg.lethal else np.where(hits_wall, self._cell, target)
        self._elapsed = np.where(is_first, 0, self._elapsed + 1)

        at_goal = self._cell == self._goal
        is_terminal = at_goal | hits_wall if cfg.lethal else at_goal
        is_cut = self._elapsed >= cfg.max_steps
        if cfg.limit_is_terminal:
            is_terminal = is_terminal | is_cut
        self.is_over = is_terminal | is_cut
        return TimeStep(
            observation=self._draw(),
            reward=np.where(at_goal, np.float32(cfg.goal_reward), np.float32(0)),
            is_first=is_first,
            is_last=self.is_over.copy(),
            is_terminal=is_terminal,
            place=self._places(),
        )

    def portray(self, places: Array, rng: np.random.Generator) -> Array:
        """Returns an observation of each place `[N, ...]`, walls coloured by `rng`; changes nothing."""
        places = np.asarray(places)
        maze = self.maze
        if self.config.new_maze_each_episode:
            raise ValueError("places cannot be portrayed where every episode draws its own maze")
        if places.ndim != 1 or not ((places >= 0) & (places < len(maze.cells))).all():
            raise ValueError(f"places are {places}; expected numbers from 0 to {len(maze.cells) - 1}")
        walls = np.broadcast_to(maze.places < 0, (len(places), self.config.size**2))
        return self._paint(walls, maze.cells[places], np.full(len(places), maze.goal), rng)

    def get_state(self) -> State:
        """Returns all that the future depends on; mazes are a function of their layout number."""
        return {
            "size": self.config.size,
            "layouts": self._layouts.copy(),
            "cell": self._cell.copy(),
            "elapsed": self._elapsed.copy(),
            "is_over": self.is_over.copy(),
            "rng": rng_state(self.rng),
        }

    def set_state(self, state: State) -> None:
        """Continues exactly where `get_state` was called."""
        found, expected = (state["size"], len(state["cell"])), (self.config.size, self.num_envs)
        if found != expected:
            raise ValueError(f"the state's size and number of copies are {found}; expected {expected}")
        self._layouts = np.array(state["layouts"])
        self._cell = np.array(state["cell"])
        self._elapsed = np.array(state["elapsed"])
        self.is_over = np.array(state["is_over"])
        load_rng(self.rng, state["rng"])
        self._gather_mazes()

    def close(self) -> None:
        """Nothing to release."""

    def _gather_mazes(self) -> None:
        mazes = [carve(self.config.size, layout) for layout in self._layouts.tolist()]
        self._start = mazes[0].start
        self._goal = np.array([maze.goal for maze in mazes])
        self._is_wall = np.stack([maze.places < 0 for maze in mazes])  # [B, size²]

    def _places(self) -> Array:
        if self.config.new_maze_each_episode:
            return np.where(self._is_wall[self._rows, self._cell], -1, self._cell)
        return np.asarray(self.maze.places[self._cell])

    def _draw(self) -> Array:
        return self._paint(self._is_wall, self._cell, self._goal, self.rng)

    def _paint(self, is_wall: Array, cell: Array, goal: Array, rng: np.random.Generator) -> Array:
        """Paints mazes: fresh wall colours, the goal, the agent on top."""
        cfg, rows = self.config, np.arange(len(cell))
        image = rng.integers(1, 1 + NUM_WALL_COLOURS, size=is_wall.shape, dtype=np.uint8)
        image *= is_wall
        image[rows, goal] = GOAL
        image[rows, cell] = AGENT
        image = image.reshape(-1, cfg.size, cfg.size)
        if cfg.window is not None:
            image = _look_through_window(image, cell, cfg.window)
        if cfg.upscale > 1:
            image = image.repeat(cfg.upscale, axis=1).repeat(cfg.upscale, axis=2)
        return PALETTE.take(image, axis=0) if cfg.observation == "rgb" else image


def _look_through_window(image: Array, cell: Array, window: int) -> Array:
    half, size = window // 2, image.shape[1]
    padded = np.pad(image, ((0, 0), (half, half), (half, half)), constant_values=OUTSIDE)
    row, column = np.divmod(cell, size)
    offsets = np.arange(window)
    rows = (row[:, None] + offsets)[:, :, None]
    columns = (column[:, None] + offsets)[:, None, :]
    return np.asarray(padded[np.arange(len(cell))[:, None, None], rows, columns])
