"""True visit counts in other people's loops: the limit that a drop-in bonus is compared with.

    r = 1 / √N(place)

Both wrappers read `info["place"]`, which only worlds made for experiments have, and report
the bonus as the adapters of `softcount.integrations` do. If an agent does not explore with
these, no bonus will make it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper

from softcount.bonuses import PlaceCount
from softcount.types import Array, Features


class CountingVectorEnv(VectorWrapper):  # type: ignore[type-arg]
    """A Gymnasium vector environment (restarting in the next step) with `info["intrinsic_reward"]`."""

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        self.bonus = PlaceCount()
        self._is_over = np.zeros(env.num_envs, bool)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets all environments."""
        self._is_over[:] = False
        return self.env.reset(seed=seed, options=options)

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Counts the places that were reached; the step that only restarts is counted and paid 0."""
        obs, reward, terminated, truncated, info = self.env.step(actions)
        paid = self.bonus.observe(Features(place=info["place"]), np.arange(self.num_envs), self._is_over)
        self._is_over = terminated | truncated
        return obs, reward, terminated, truncated, {**info, "intrinsic_reward": paid}


def counting_vec_env(env: Any, weight: float) -> Any:
    """Wraps a Stable-Baselines3 `VecEnv`: the mixed reward is paid, both parts are in `info`."""
    from stable_baselines3.common.vec_env import VecEnvWrapper

    class CountingVecEnv(VecEnvWrapper):  # type: ignore[misc]
        bonus = PlaceCount()

        def reset(self) -> Any:
            return self.venv.reset()

        def step_wait(self) -> tuple[Any, Array, Array, list[dict[str, Any]]]:
            obs, reward, dones, infos = self.venv.step_wait()
            places = np.array([info["place"] for info in infos])
            everyone = np.arange(self.num_envs)
            paid = weight * self.bonus.observe(
                Features(place=places), everyone, np.zeros(self.num_envs, bool)
            )
            for info, own, extra in zip(infos, reward, paid, strict=True):
                info["extrinsic_reward"], info["intrinsic_reward"] = float(own), float(extra)
            return obs, reward + paid.astype(reward.dtype), dones, infos

    return CountingVecEnv(env)
