"""Environments that do not all restart together.

With a time limit and a goal that is rarely reached, every episode lasts as long as every other. Then all
environments begin together, a rollout shows one part of the world, and what a policy knew of the other parts
is forgotten while it learns. One cut, in each environment at another time, ends that for good. Decision 541.
"""

from __future__ import annotations

from typing import Any

import gymnasium


class Staggered(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Cuts one episode: the one that runs when so many steps were made. 0 cuts none.

    >>> env = Staggered(gymnasium.make("MountainCar-v0"), 2)
    >>> _ = env.reset(seed=0)
    >>> [env.step(1)[3] for _ in range(3)]  # cut, and goes on if asked to
    [False, True, False]
    """

    def __init__(self, env: gymnasium.Env[Any, Any], steps: int) -> None:
        super().__init__(env)
        if steps < 0:
            raise ValueError(f"steps is {steps}; expected 0 or more")
        self._num_left = steps

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Steps, and says that the episode was cut if its time has come."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._num_left -= 1
        return observation, reward, terminated, truncated or self._num_left == 0, info
