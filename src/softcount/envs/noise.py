"""Noise that nobody controls: a panel of random pixels below the image (paper §4, noisy Montezuma).

The observation grows to twice its height; the lower half is drawn uniformly from 0-255,
anew at every step: 210 × 160 × 1 becomes 420 × 160 × 1. Whoever takes prediction error
for novelty is drawn to it for ever; whoever represents what it controls is not.

`NoisyVector` works on any vector environment with image observations and needs NumPy
only; `noise_gym.NoisePanel` does the same to any Gymnasium environment.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.types import Array, ArraySpec, ObservationSpec, State, TimeStep, VectorEnv, load_rng, rng_state


def add_panel(image: Array, rng: np.random.Generator, axis: int) -> Array:
    """Appends uniform noise of the same shape along the height."""
    noise = rng.integers(0, 256, size=image.shape, dtype=np.uint8)
    return np.concatenate([image, noise], axis=axis)


class NoisyVector:
    """A vector environment whose images carry a panel of noise.

    >>> from softcount.envs.disco_maze import DiscoMaze, DiscoMazeConfig
    >>> env = NoisyVector(DiscoMaze(DiscoMazeConfig(size=7), num_envs=2), seed=0)
    >>> env.reset().observation.shape, env.observation_spec.shape
    ((2, 14, 7, 3), (14, 7, 3))
    """

    def __init__(self, env: VectorEnv, *, seed: int = 0) -> None:
        spec = env.observation_spec
        if not isinstance(spec, ArraySpec) or spec.dtype != "uint8" or len(spec.shape) != 3:
            raise ValueError(
                f"observations are {spec}; noise needs one uint8 image of height, width, channels"
            )
        self.env = env
        self.num_envs = env.num_envs
        self.observation_spec: ObservationSpec = ArraySpec((2 * spec.shape[0], *spec.shape[1:]), spec.dtype)
        self.action_spec = env.action_spec
        self.num_places = env.num_places
        self.task_ids = env.task_ids
        self.task_names = env.task_names
        self.rng = np.random.default_rng([seed, 1])

    def __getattr__(self, name: str) -> Any:
        """Passes ground truth such as `cell_of` and `map_shape` through."""
        if name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)

    def reset(self, seed: int | None = None) -> TimeStep:
        """Starts all copies; a seed starts the noise anew too, with a stream of its own."""
        if seed is not None:
            self.rng = np.random.default_rng([seed, 1])
        return self._with_noise(self.env.reset(seed))

    def step(self, actions: Array) -> TimeStep:
        """Steps all copies and draws fresh noise."""
        return self._with_noise(self.env.step(actions))

    def portray(self, places: Array, rng: np.random.Generator) -> Array:
        """Shows places as the environment does, each with a panel of its own."""
        inner: Any = self.env
        return add_panel(inner.portray(places, rng), rng, axis=1)

    def get_state(self) -> State:
        """Returns the environment's state and the noise generator's."""
        return {"env": self.env.get_state(), "rng": rng_state(self.rng)}

    def set_state(self, state: State) -> None:
        """Continues exactly where `get_state` was called."""
        self.env.set_state(state["env"])
        load_rng(self.rng, state["rng"])

    def close(self) -> None:
        """Closes the environment."""
        self.env.close()

    def _with_noise(self, step: TimeStep) -> TimeStep:
        return step._replace(observation=add_panel(step.observation, self.rng, axis=1))
