"""The Random Disco Maze as a Gymnasium environment: one copy of `disco_maze.DiscoMaze`."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from softcount.envs.disco_maze import ACTIONS, PALETTE, DiscoMaze, DiscoMazeConfig
from softcount.types import Array, State


class DiscoMazeEnv(gymnasium.Env[Array, Any]):
    """A maze whose walls change colour at every step; `info["place"]` is the free cell.

    >>> env = DiscoMazeEnv(DiscoMazeConfig(size=7))
    >>> observation, info = env.reset(seed=0)
    >>> observation.shape, env.cell_of(info["place"])
    ((7, 7, 3), (5, 1))
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(self, config: DiscoMazeConfig | None = None, render_mode: str | None = None) -> None:
        self.core = DiscoMaze(config)
        spec = self.core.config.observation_spec
        high = 255 if self.core.config.observation == "rgb" else len(PALETTE) - 1
        self.observation_space = gymnasium.spaces.Box(0, high, spec.shape, np.uint8)
        self.action_space = gymnasium.spaces.Discrete(len(ACTIONS))
        self.render_mode = render_mode
        self.num_places = self.core.num_places
        self.map_shape = self.core.map_shape
        self._last: Array | None = None

    def cell_of(self, place: int) -> tuple[int, int]:
        """Returns row and column of a place."""
        return self.core.cell_of(place)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
        """Starts an episode; a seed starts the generator anew."""
        super().reset(seed=seed)
        self.core.rng = self.np_random
        step = self.core.reset()
        self._last = step.observation[0]
        assert step.place is not None
        return step.observation[0], {"place": int(step.place[0])}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Moves the agent."""
        if self._last is None:
            raise RuntimeError("step was called before reset")
        if self.core.is_over[0]:
            raise RuntimeError("the episode is over; call reset before the next step")
        step = self.core.step(np.array([action]))
        self._last = step.observation[0]
        assert step.place is not None
        is_terminal = bool(step.is_terminal[0])
        is_cut = bool(step.is_last[0]) and not is_terminal
        return self._last, float(step.reward[0]), is_terminal, is_cut, {"place": int(step.place[0])}

    def render(self) -> Array | None:  # type: ignore[override]
        """Returns the last observation in colour."""
        if self.render_mode is None or self._last is None:
            return None
        return self._last if self._last.ndim == 3 else PALETTE.take(self._last, axis=0)

    def get_state(self) -> State:
        """Returns all that the future depends on."""
        return self.core.get_state()

    def set_state(self, state: State) -> None:
        """Continues exactly where `get_state` was called."""
        self.core.rng = self.np_random
        self.core.set_state(state)
        self._last = np.zeros(self.core.config.observation_spec.shape, np.uint8)
