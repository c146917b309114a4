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
from softcount.integrations.schedules import Fading
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


def counting_callback(options: dict[str, Any]) -> Any:
    """SB3's callback with true counts in place of the bonus, which stays unused; values are its own too."""
    from softcount.integrations.sb3 import IntrinsicRewardCallback

    class CountingCallback(IntrinsicRewardCallback):
        counts = PlaceCount()

        def _pay(self) -> Array:
            places = np.array([info["place"] for info in self.locals["infos"]])
            nothing = np.zeros(len(places), bool)
            paid = self.counts.observe(Features(place=places), np.arange(len(places)), nothing)
            return np.asarray(self.bonus.current_weight * paid, np.float32)

    chosen = {name: options[name] for name in ("seed", "critic", "weight")}
    return CountingCallback("RND", **chosen)


def counting_replay() -> Any:
    """SB3's replay with true counts in place of the bonus, asked for when a batch is drawn."""
    from stable_baselines3.common.buffers import ReplayBuffer

    class CountingReplay(ReplayBuffer):  # type: ignore[misc]
        def __init__(self, *args: Any, bonus: str, bonus_options: dict[str, Any], **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.weight: Fading = bonus_options["weight"]
            self.num_rewards = 0
            self.counts = PlaceCount()
            self.places = np.zeros((self.buffer_size, self.n_envs), np.int64)

        def add(self, *step: Any) -> None:
            places = np.array([info["place"] for info in step[-1]])
            self.places[self.pos] = places
            self.num_rewards += int(np.count_nonzero(step[3]))
            nothing = np.zeros(len(places), bool)
            self.counts.observe(Features(place=places), np.arange(len(places)), nothing)
            super().add(*step)

        def _get_samples(self, batch_inds: Array, env: Any = None) -> Any:
            before = np.random.get_state()  # noqa: NPY002 - SB3 draws from it
            samples = super()._get_samples(batch_inds, env)
            np.random.set_state(before)  # noqa: NPY002
            env_ids = np.random.randint(0, high=self.n_envs, size=len(batch_inds))  # noqa: NPY002
            paid = self.counts.score(Features(place=self.places[batch_inds, env_ids]))
            weight = self.weight.value * self.weight.share_after(self.num_rewards)
            paid = weight * (paid - paid.mean())
            return samples._replace(rewards=samples.rewards + self.to_torch(paid[:, None]))

    return CountingReplay
