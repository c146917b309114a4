"""The panel of noise around a Gymnasium environment (see `noise`)."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from softcount.envs.noise import add_panel
from softcount.types import Array, State, load_rng, rng_state


class NoisePanel(gymnasium.Wrapper[Array, Any, Array, Any]):
    """A Gymnasium environment whose images carry a panel of noise.

    >>> from softcount.envs.disco_maze_gym import DiscoMazeConfig, DiscoMazeEnv
    >>> NoisePanel(DiscoMazeEnv(DiscoMazeConfig(size=7))).reset(seed=0)[0].shape
    (14, 7, 3)
    """

    def __init__(self, env: gymnasium.Env[Array, Any]) -> None:
        super().__init__(env)
        space = env.observation_space
        if not isinstance(space, gymnasium.spaces.Box) or space.dtype != np.uint8 or len(space.shape) != 3:
            raise ValueError(
                f"observations are {space}; noise needs one uint8 image of height, width, channels"
            )
        self.observation_space = gymnasium.spaces.Box(
            0, 255, (2 * space.shape[0], *space.shape[1:]), np.uint8
        )
        self.rng = np.random.default_rng()

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
        """Starts an episode; a seed starts the noise anew too, with a stream of its own."""
        if seed is not None:
            self.rng = np.random.default_rng([seed, 1])
        observation, info = self.env.reset(seed=seed, options=options)
        return add_panel(observation, self.rng, axis=0), info

    def step(self, action: Any) -> tuple[Array, Any, bool, bool, dict[str, Any]]:
        """Steps and draws fresh noise."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return add_panel(observation, self.rng, axis=0), reward, terminated, truncated, info

    def get_state(self) -> State:
        """Returns the environment's state and the noise generator's."""
        return {"env": self.env.get_state(), "rng": rng_state(self.rng)}  # type: ignore[attr-defined]

    def set_state(self, state: State) -> None:
        """Continues exactly where `get_state` was called."""
        self.env.set_state(state["env"])  # type: ignore[attr-defined]
        load_rng(self.rng, state["rng"])
