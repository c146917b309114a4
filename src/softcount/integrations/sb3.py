"""Stable-Baselines3 with a bonus, in two ways.

    env = IntrinsicVecEnv(env, "RECODE-AP")                       any algorithm: PPO, DQN, SAC, …
    PPO("MlpPolicy", env).learn(100_000)

    bonus = IntrinsicRewardCallback("RECODE-AP")                  on-policy algorithms
    PPO("MlpPolicy", env).learn(100_000, callback=bonus)

The environment wrapper pays the mixed reward as it happens and reports both parts in each
`info`. The callback leaves the environment alone and adds the bonus to the rollout buffer;
SB3 has computed returns and advantages by then, so it computes them again, or the loss
would never see the bonus.
"""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np

from softcount.hints import install

try:
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper
except ImportError as error:
    raise ImportError(f"this needs Stable-Baselines3: {install('sb3')}") from error

from softcount.integrations.reward import IntrinsicReward
from softcount.types import Array, map_arrays

Returned = Literal["mixed", "extrinsic", "intrinsic"]


class IntrinsicVecEnv(VecEnvWrapper):  # type: ignore[misc]
    """A `VecEnv` that pays a bonus; `info["intrinsic_reward"]` and `info["extrinsic_reward"]` are apart.

    Put `Monitor` or `VecMonitor` inside, so that episode returns are the game's own.

    >>> from stable_baselines3.common.env_util import make_vec_env
    >>> env = IntrinsicVecEnv(make_vec_env("CartPole-v1", n_envs=2), "RECODE-AP", reward="intrinsic")
    >>> _ = env.reset()
    >>> _, rewards, _, infos = env.step(np.array([0, 1]))
    >>> rewards.tolist(), infos[0]["extrinsic_reward"]
    ([0.0, 0.0], 1.0)
    """

    def __init__(self, venv: VecEnv, name: str, *, reward: Returned = "mixed", **options: Any) -> None:
        super().__init__(venv)
        if reward not in ("mixed", "extrinsic", "intrinsic"):
            raise ValueError(f"reward is {reward!r}; expected 'mixed', 'extrinsic' or 'intrinsic'")
        self.returned = reward
        self.bonus = _make_bonus(name, venv, options)
        self._obs: Any = None
        self._actions: Any = None

    def reset(self) -> Any:
        """Resets all environments."""
        obs = self.venv.reset()
        self.bonus.reset()
        self._obs = map_arrays(np.array, obs)
        return obs

    def step_async(self, actions: Array) -> None:
        """Keeps the actions and passes them on."""
        self._actions = np.array(actions)
        self.venv.step_async(actions)

    def step_wait(self) -> tuple[Any, Array, Array, list[dict[str, Any]]]:
        """Pays for what the environments arrived at."""
        obs, extrinsic, dones, infos = self.venv.step_wait()
        intrinsic = _pay(self.bonus, self._obs, self._actions, obs, dones, infos)
        self._obs = map_arrays(np.array, obs)
        for info, own, paid in zip(infos, extrinsic, intrinsic, strict=True):
            info["extrinsic_reward"], info["intrinsic_reward"] = float(own), float(paid)
        if self.returned == "extrinsic":
            return obs, extrinsic, dones, infos
        paid = intrinsic.astype(extrinsic.dtype)
        return obs, (paid if self.returned == "intrinsic" else extrinsic + paid), dones, infos

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the bonus's whole state, beside `model.save`."""
        self.bonus.save(path)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        venv: VecEnv,
        name: str,
        *,
        reward: Returned = "mixed",
        **options: Any,
    ) -> IntrinsicVecEnv:
        """Wraps an environment with a saved bonus; its first `reset` begins new episodes."""
        wrapped = cls(venv, name, reward=reward, **options)
        wrapped.bonus.load(path)
        return wrapped

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("an IntrinsicVecEnv is not pickled; use save and load")


class IntrinsicRewardCallback(BaseCallback):  # type: ignore[misc]
    """Adds a bonus to each rollout of an on-policy algorithm and computes its advantages anew.

    >>> from stable_baselines3 import PPO
    >>> callback = IntrinsicRewardCallback("RND", weight=0.1)
    >>> _ = PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=32).learn(64, callback=callback)
    >>> callback.bonus.num_steps
    64
    """

    def __init__(self, name: str, *, verbose: int = 0, **options: Any) -> None:
        super().__init__(verbose)
        self.name = name
        self.options = options
        self._bonus: IntrinsicReward | None = None
        self._load_from: str | os.PathLike[str] | None = None
        self._paid: list[Array] = []

    @property
    def bonus(self) -> IntrinsicReward:
        """The bonus, once training has begun."""
        if self._bonus is None:
            raise RuntimeError("the bonus is built when learning starts; pass this callback to learn() first")
        return self._bonus

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the bonus's whole state, beside `model.save`."""
        self.bonus.save(path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Continues a saved bonus, now or when learning starts."""
        self._load_from = path
        if self._bonus is not None:
            self._bonus.load(path)

    def _on_training_start(self) -> None:
        if not hasattr(self.model, "rollout_buffer"):
            kind = type(self.model).__name__
            raise TypeError(f"{kind} keeps no rollouts; wrap its environment in IntrinsicVecEnv instead")
        if self._bonus is None:
            env = self.model.get_env()
            assert env is not None
            self._bonus = _make_bonus(self.name, env, self.options)
            if self._load_from is not None:
                self._bonus.load(self._load_from)
        self._bonus.resume(self.model._last_obs)  # SB3 may or may not have reset its environments

    def _on_rollout_start(self) -> None:
        self._paid = []

    def _on_step(self) -> bool:
        obs, new = self.model._last_obs, self.locals
        self._paid.append(
            _pay(self.bonus, obs, new["clipped_actions"], new["new_obs"], new["dones"], new["infos"])
        )
        return True

    def _on_rollout_end(self) -> None:
        buffer = self.locals["rollout_buffer"]
        paid = np.stack(self._paid)  # [T, N]
        buffer.rewards += paid
        buffer.compute_returns_and_advantage(last_values=self.locals["values"], dones=self.locals["dones"])
        self.logger.record("intrinsic/reward", float(paid.mean()))
        for key, value in self.bonus.metrics().items():
            self.logger.record(f"intrinsic/{key}", value)


def _make_bonus(name: str, venv: VecEnv, options: dict[str, Any]) -> IntrinsicReward:
    return IntrinsicReward(
        name,
        venv.observation_space,
        venv.action_space,
        num_envs=venv.num_envs,
        autoreset_mode="same_step",
        **options,
    )


def _pay(
    bonus: IntrinsicReward, obs: Any, actions: Array, new_obs: Any, dones: Array, infos: list[dict[str, Any]]
) -> Array:
    """One step of the bonus in SB3's terms: a done environment has already restarted."""
    arrived = map_arrays(np.array, new_obs)
    truncated = np.zeros(len(dones), bool)
    for row in np.flatnonzero(dones):
        if "terminal_observation" not in infos[row]:
            raise ValueError(f"environment {row} ended without infos[{row}]['terminal_observation']")
        final = infos[row]["terminal_observation"]
        map_arrays(lambda batch, one, row=row: batch.__setitem__(row, one), arrived, final)
        truncated[row] = infos[row].get("TimeLimit.truncated", False)
    return bonus.step(obs, actions, arrived, terminated=dones & ~truncated, truncated=truncated)
