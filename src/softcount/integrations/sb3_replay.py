"""Replay buffers of Stable-Baselines3 whose rewards hold the bonus of today.

    DQN("MlpPolicy", env, replay_buffer_class=IntrinsicReplayBuffer,
        replay_buffer_kwargs={"bonus": "RECODE-AP"})

For DQN, SAC, TD3 and all that learn from a replay. Nothing is wrapped: what is added is what the bonus
remembers and learns from, and what is sampled is scored with today's memory (`relabel`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.hints import install

try:
    from gymnasium import spaces
    from stable_baselines3.common.buffers import DictReplayBuffer, ReplayBuffer
except ImportError as error:
    raise ImportError(f"this needs Stable-Baselines3: {install('sb3')}") from error

from softcount.integrations.relabel import Baseline, Relabel
from softcount.integrations.reward import IntrinsicReward
from softcount.types import Array


class _Relabelled:
    """What both buffers share; stands before SB3's class."""

    def __init__(
        self,
        buffer_size: int,
        observation_space: Any,
        action_space: Any,
        *args: Any,
        bonus: str,
        bonus_options: dict[str, Any] | None = None,
        baseline: Baseline = "mean",
        n_envs: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(buffer_size, observation_space, action_space, *args, n_envs=n_envs, **kwargs)  # type: ignore[call-arg]
        self.bonus = IntrinsicReward(
            bonus,
            observation_space,
            action_space,
            num_envs=n_envs,
            autoreset_mode="same_step",
            **(bonus_options or {}),
        )
        self.relabel = Relabel(self.bonus, baseline)
        self._own_actions = action_space

    def add(
        self, obs: Any, next_obs: Any, action: Array, reward: Array, done: Array, infos: list[dict[str, Any]]
    ) -> None:
        """Stores a step of all environments and shows it to the bonus."""
        super().add(obs, next_obs, action, reward, done, infos)  # type: ignore[misc]
        is_cut = np.array([info.get("TimeLimit.truncated", False) for info in infos], bool)
        done = np.asarray(done, bool)
        self.bonus.see_rewards(reward)
        self.bonus.resume(obs)  # SB3 may have reset its environments
        self.bonus.step(obs, self._unscaled(action), next_obs, done & ~is_cut, done & is_cut)

    def _get_samples(self, batch_inds: Array, env: Any = None) -> Any:
        """Adds what arriving at each next observation is worth now."""
        before = np.random.get_state()  # noqa: NPY002 - SB3 draws from it
        samples = super()._get_samples(batch_inds, env)  # type: ignore[misc]
        raw = samples.next_observations
        if env is not None:  # the same rows once more, as the environments gave them
            np.random.set_state(before)  # noqa: NPY002
            raw = super()._get_samples(batch_inds, None).next_observations  # type: ignore[misc]
        paid = self.relabel(raw)
        return samples._replace(rewards=samples.rewards + self.to_torch(paid[:, None]))  # type: ignore[attr-defined]

    def _unscaled(self, action: Array) -> Array:
        """SB3 keeps continuous actions between −1 and 1."""
        space = self._own_actions
        if not isinstance(space, spaces.Box):
            return action
        own: Array = space.low + 0.5 * (np.asarray(action) + 1.0) * (space.high - space.low)
        return own


class IntrinsicReplayBuffer(_Relabelled, ReplayBuffer):  # type: ignore[misc]
    """SB3's replay with today's bonus in the rewards of each batch.

    >>> from stable_baselines3 import DQN
    >>> kwargs = {"bonus": "RND", "bonus_options": {"weight": 0.1, "seed": 0}}
    >>> model = DQN("MlpPolicy", "CartPole-v1", replay_buffer_class=IntrinsicReplayBuffer,
    ...             replay_buffer_kwargs=kwargs)
    >>> model.learn(60).replay_buffer.bonus.num_steps
    60
    """


class IntrinsicDictReplayBuffer(_Relabelled, DictReplayBuffer):  # type: ignore[misc]
    """The same for observations that are dicts."""
