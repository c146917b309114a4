"""Stable-Baselines3 with a bonus, in three ways.

    bonus = IntrinsicRewardCallback("RECODE-AP")                  on-policy: PPO, A2C
    PPO("MlpPolicy", env).learn(100_000, callback=bonus)

    DQN("MlpPolicy", env, replay_buffer_class=IntrinsicReplayBuffer,          off-policy: DQN, SAC, TD3
        replay_buffer_kwargs={"bonus": "RECODE-AP"})

    env = IntrinsicVecEnv(env, "RECODE-AP")                       any algorithm, the two rewards mixed

The callback leaves the environment alone, gives the policy a second value head for the bonus and adds its
advantages to those of the rollout. The replay scores what it samples with today's memory. The wrapper pays
the mixed reward as it happens and reports both parts in each `info`.
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

from softcount.integrations.critic import CriticConfig, IntrinsicCritic
from softcount.integrations.reward import IntrinsicReward
from softcount.integrations.sb3_features import PolicyFeatures
from softcount.integrations.sb3_replay import IntrinsicDictReplayBuffer, IntrinsicReplayBuffer
from softcount.types import Array, map_arrays

__all__ = [
    "IntrinsicDictReplayBuffer",
    "IntrinsicReplayBuffer",
    "IntrinsicRewardCallback",
    "IntrinsicVecEnv",
]

Returned = Literal["mixed", "extrinsic", "intrinsic"]
Values = Literal["head", "own", "shared"]


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
        self.bonus.see_rewards(extrinsic)
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
    """Adds the bonus's advantages to each rollout of an on-policy algorithm.

    With `values="head"` the bonus has a value head of its own on the policy's features
    (`IntrinsicCritic`) and the algorithm's values keep to the game's reward, so that a goal once found is
    kept. With "own" these values have a network of their own, and with "shared" the bonus is added to the
    rewards: one value function sees their sum.

    >>> from stable_baselines3 import PPO
    >>> callback = IntrinsicRewardCallback("RND", weight=0.1)
    >>> _ = PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=32).learn(64, callback=callback)
    >>> callback.bonus.num_steps
    64
    """

    def __init__(
        self,
        name: str,
        *,
        values: Values = "head",
        critic: CriticConfig | None = None,
        verbose: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(verbose)
        if values not in ("head", "own", "shared"):
            raise ValueError(f"values is {values!r}; expected 'head', 'own' or 'shared'")
        if critic is not None and values == "shared":
            raise ValueError("critic would do nothing: with values='shared' the bonus has none of its own")
        self.name = name
        self.options = options
        self.values = values
        self.critic_config = critic
        self._bonus: IntrinsicReward | None = None
        self._load_from: str | os.PathLike[str] | None = None
        self._paid: list[Array] = []
        self._seen: list[Any] = []

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
            if self.values != "shared":
                self._bonus.critic = IntrinsicCritic(
                    self._bonus.inputs.observation_spec,
                    self.critic_config,
                    body=PolicyFeatures(self.model.policy) if self.values == "head" else None,
                    seed=self.options.get("seed", 0),
                    device=str(self.model.device) if self.values == "head" else self._bonus.device,
                )
            if self._load_from is not None:
                self._bonus.load(self._load_from)
        self._bonus.resume(self.model._last_obs)  # SB3 may or may not have reset its environments

    def _on_rollout_start(self) -> None:
        self._learn()
        self._paid, self._seen = [], []

    def _on_training_end(self) -> None:
        self._learn()

    def _learn(self) -> None:
        """Lets the values learn from the last rollout, now that the policy has."""
        if self.bonus.critic is not None:
            self.bonus.critic.learn(self.bonus.share_left)

    def _on_step(self) -> bool:
        self._seen.append(self._as_read(self.model._last_obs, "obs"))
        self.bonus.see_rewards(self.locals["rewards"])
        self._paid.append(self._pay())
        return True

    def _as_read(self, observation: Any, name: str) -> Any:
        """Observations as the bonus's values read them: the policy's features want them as SB3 has them."""
        if self.values == "head":
            return map_arrays(np.array, observation)
        return self.bonus.inputs.observation(observation, name)

    def _pay(self) -> Array:
        """What the last step of all environments is paid."""
        obs, new = self.model._last_obs, self.locals
        return _pay(self.bonus, obs, new["clipped_actions"], new["new_obs"], new["dones"], new["infos"])

    def _on_rollout_end(self) -> None:
        buffer = self.locals["rollout_buffer"]
        paid = np.stack(self._paid)  # [T, N]
        if self.values != "shared":
            buffer.advantages += self._own_advantages(paid)
        else:
            buffer.rewards += paid
            buffer.compute_returns_and_advantage(
                last_values=self.locals["values"], dones=self.locals["dones"]
            )
        self.logger.record("intrinsic/reward", float(paid.mean()))
        for key, value in self.bonus.metrics().items():
            self.logger.record(f"intrinsic/{key}", value)

    def _own_advantages(self, paid: Array) -> Array:
        """Advantages of the bonus by its own values."""
        critic = self.bonus.critic
        assert critic is not None
        last = self._as_read(self.locals["new_obs"], "new_obs")
        observations = map_arrays(lambda *rows: np.stack(rows), *self._seen, last)
        return critic.advantages(observations, paid)


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
