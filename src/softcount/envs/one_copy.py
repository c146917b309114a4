"""One copy of a vector environment as Gymnasium knows environments."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from softcount.types import Array, ArraySpec, ContinuousActions, DiscreteActions, TimeStep, VectorEnv


class OneCopy(gymnasium.Env[Array, Any]):
    """Plays the only copy of a vector environment of arrays; `info["place"]` is there where it knows places.

    >>> from softcount.envs.point_maze import PointMaze
    >>> env = OneCopy(PointMaze())
    >>> env.reset(seed=0)[1], env.step(env.action_space.sample())[1:4]
    ({'place': 0}, (0.0, False, False))
    """

    def __init__(self, core: VectorEnv) -> None:
        spec, actions = core.observation_spec, core.action_spec
        if core.num_envs != 1 or not isinstance(spec, ArraySpec):
            raise ValueError(f"{core.num_envs} copies of {spec} were given; expected one, of a single array")
        self.core = core
        self.num_places = core.num_places
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, spec.shape, np.dtype(spec.dtype).type)
        if isinstance(actions, DiscreteActions):
            self.action_space: gymnasium.Space[Any] = gymnasium.spaces.Discrete(actions.num)
        elif isinstance(actions, ContinuousActions):
            low, high = np.array(actions.low, np.float32), np.array(actions.high, np.float32)
            self.action_space = gymnasium.spaces.Box(low, high)
        else:
            self.action_space = gymnasium.spaces.MultiDiscrete(list(actions.nums))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
        """Starts an episode; a seed starts the generator anew."""
        super().reset(seed=seed)
        step = self.core.reset(seed)
        return step.observation[0], _info(step)

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        step = self.core.step(np.asarray(action)[None])
        if step.is_first[0]:
            raise RuntimeError("the episode is over; call reset before the next step")
        is_terminal = bool(step.is_terminal[0])
        is_cut = bool(step.is_last[0]) and not is_terminal
        return step.observation[0], float(step.reward[0]), is_terminal, is_cut, _info(step)


def _info(step: TimeStep) -> dict[str, Any]:
    return {} if step.place is None else {"place": int(step.place[0])}
