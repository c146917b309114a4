"""Noise that nobody controls: a panel of random pixels below the image (paper §4, noisy Montezuma).

The observation grows to twice its height; the lower half is drawn uniformly from 0-255,
anew at every step: 210 × 160 × 1 becomes 420 × 160 × 1. Whoever takes prediction error
for novelty is drawn to it for ever; whoever represents what it controls is not.

    fresh      drawn anew at every step: the paper's
    drift      every pixel takes a small random step, as clouds and waves do
    channel    drawn anew whenever the first action is taken, and still otherwise: a remote control
    still      drawn once and never changed: nothing to be distracted by, for comparison

`NoisyVector` works on any vector environment with image observations and needs NumPy
only; `noise_gym.NoisePanel` does the same to any Gymnasium environment.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from softcount.types import Array, ArraySpec, ObservationSpec, State, TimeStep, VectorEnv, load_rng, rng_state

Noise: TypeAlias = Literal["fresh", "drift", "channel", "still"]
DRIFT = 8
"""The largest step that a drifting pixel takes; its values go from 0 to 255."""


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

    def __init__(self, env: VectorEnv, *, seed: int = 0, noise: Noise = "fresh") -> None:
        if noise not in get_args(Noise):
            raise ValueError(f"noise is {noise!r}; expected one of {', '.join(get_args(Noise))}")
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
        self.noise = noise
        self._panel: Array | None = None  # what is shown now, of kinds that remember it

    def __getattr__(self, name: str) -> Any:
        """Passes ground truth such as `cell_of` and `map_shape` through."""
        if name == "env":
            raise AttributeError(name)
        return getattr(self.env, name)

    def reset(self, seed: int | None = None) -> TimeStep:
        """Starts all copies; a seed starts the noise anew too, with a stream of its own."""
        if seed is not None:
            self.rng = np.random.default_rng([seed, 1])
            self._panel = None
        return self._with_noise(self.env.reset(seed), np.zeros(self.num_envs, bool))

    def step(self, actions: Array) -> TimeStep:
        """Steps all copies, and their noise."""
        step = self.env.step(actions)
        return self._with_noise(step, np.asarray(actions).reshape(self.num_envs, -1)[:, 0] == 0)

    def portray(self, places: Array, rng: np.random.Generator) -> Array:
        """Shows places as the environment does, each with a panel of its own."""
        inner: Any = self.env
        return add_panel(inner.portray(places, rng), rng, axis=1)

    def get_state(self) -> State:
        """Returns the environment's state and the noise generator's."""
        panel = {} if self._panel is None else {"panel": self._panel.copy()}
        return {"env": self.env.get_state(), "rng": rng_state(self.rng), **panel}

    def set_state(self, state: State) -> None:
        """Continues exactly where `get_state` was called."""
        self.env.set_state(state["env"])
        load_rng(self.rng, state["rng"])
        self._panel = np.array(state["panel"]) if "panel" in state else None

    def close(self) -> None:
        """Closes the environment."""
        self.env.close()

    def _with_noise(self, step: TimeStep, is_switched: Array) -> TimeStep:
        if self.noise == "fresh":
            return step._replace(observation=add_panel(step.observation, self.rng, axis=1))
        self._panel = self._next_panel(step.observation, is_switched)
        return step._replace(observation=np.concatenate([step.observation, self._panel], axis=1))

    def _next_panel(self, image: Array, is_switched: Array) -> Array:
        """Returns what follows the panel that is shown; the first is drawn."""
        if self._panel is None:
            return self.rng.integers(0, 256, size=image.shape, dtype=np.uint8)
        if self.noise == "drift":
            moved = self._panel + self.rng.integers(-DRIFT, DRIFT + 1, size=image.shape)
            return np.clip(moved, 0, 255).astype(np.uint8)
        if self.noise == "channel" and is_switched.any():
            drawn = self.rng.integers(0, 256, size=image.shape, dtype=np.uint8)
            return np.where(is_switched[:, None, None, None], drawn, self._panel)
        return self._panel
