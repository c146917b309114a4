"""Any Gymnasium vector environment with a bonus.

    envs = IntrinsicRewardWrapper(gymnasium.make_vec(...), "RECODE-AP", reward="mixed")

The wrapper reads the environment's autoreset mode and takes the true final observation
from where that mode puts it, so that a reset frame is never a transition. `info` always
has both rewards apart; which one `step` returns is up to the caller. Put
`RecordEpisodeStatistics` inside this wrapper to keep the game's own returns.
"""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from softcount.integrations.reward import IntrinsicReward
from softcount.types import Array, State, map_arrays

Returned = Literal["mixed", "extrinsic", "intrinsic"]


class IntrinsicRewardWrapper(VectorWrapper):  # type: ignore[type-arg]
    """Adds a bonus to a vector environment; `info["intrinsic_reward"]`, `info["extrinsic_reward"]`.

    >>> import gymnasium
    >>> envs = gymnasium.make_vec("CartPole-v1", num_envs=2)
    >>> envs = IntrinsicRewardWrapper(envs, "RND", reward="intrinsic")
    >>> _ = envs.reset(seed=0)
    >>> *_, info = envs.step(np.array([0, 1]))
    >>> info["extrinsic_reward"].tolist(), info["intrinsic_reward"].tolist()
    ([1.0, 1.0], [0.0, 0.0])
    """

    def __init__(
        self, env: VectorEnv[Any, Any, Any], name: str, *, reward: Returned = "mixed", **options: Any
    ):
        super().__init__(env)
        if reward not in ("mixed", "extrinsic", "intrinsic"):
            raise ValueError(f"reward is {reward!r}; expected 'mixed', 'extrinsic' or 'intrinsic'")
        self.returned = reward
        self.mode = _autoreset_mode(env)
        self.bonus = IntrinsicReward(
            name,
            env.single_observation_space,
            env.single_action_space,
            num_envs=env.num_envs,
            autoreset_mode="next_step" if self.mode == AutoresetMode.NEXT_STEP else "same_step",
            **options,
        )
        self._obs: Any = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Resets all environments, or those of `options["reset_mask"]`."""
        mask = None if options is None else options.get("reset_mask")
        mask = None if mask is None else np.array(mask)  # the environment removes it from the options
        obs, info = self.env.reset(seed=seed, options=options)
        self.bonus.reset(mask)
        self._obs = map_arrays(np.array, obs)
        return obs, info

    def step(self, actions: Any) -> tuple[Any, Array, Array, Array, dict[str, Any]]:
        """Steps the environments and pays for what they arrived at."""
        if self._obs is None:
            raise RuntimeError("step was called before reset")
        obs, extrinsic, terminated, truncated, info = self.env.step(actions)
        arrived = obs
        if self.mode == AutoresetMode.SAME_STEP:
            arrived = _with_final_observations(obs, info, terminated | truncated)
        self.bonus.see_rewards(extrinsic)
        intrinsic = self.bonus.step(self._obs, actions, arrived, terminated, truncated)
        self._obs = map_arrays(np.array, obs)
        everyone = np.ones(self.num_envs, bool)
        info = {
            **info,
            "extrinsic_reward": np.array(extrinsic),
            "_extrinsic_reward": everyone,
            "intrinsic_reward": intrinsic,
            "_intrinsic_reward": everyone.copy(),
        }
        return obs, self._mix(extrinsic, intrinsic), terminated, truncated, info

    def _mix(self, extrinsic: Array, intrinsic: Array) -> Array:
        if self.returned == "extrinsic":
            return extrinsic
        paid = intrinsic.astype(extrinsic.dtype)
        return paid if self.returned == "intrinsic" else extrinsic + paid

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the bonus's whole state; the environments are the caller's to save."""
        self.bonus.save(path)

    def load(self, path: str | os.PathLike[str]) -> None:
        """Continues with a saved bonus; environments that were reset since begin new episodes."""
        self.bonus.load(path)
        if self._obs is not None:
            self.bonus.resume(self._obs)

    def get_state(self) -> State:
        """The bonus's state and the observations it waits for an action on."""
        return {"bonus": self.bonus.state_dict(), "obs": map_arrays(np.array, self._obs)}

    def set_state(self, state: State) -> None:
        """Continues exactly, beside environments put back to where they were."""
        self.bonus.load_state_dict(state["bonus"])
        self._obs = map_arrays(np.array, state["obs"])


def _autoreset_mode(env: VectorEnv[Any, Any, Any]) -> AutoresetMode:
    mode = env.metadata.get("autoreset_mode")
    known = ", ".join(f"AutoresetMode.{mode.name}" for mode in AutoresetMode)
    if mode is None:
        raise ValueError(
            f"{env} does not say how it restarts; set env.metadata['autoreset_mode'] to one of {known}"
        )
    try:
        return AutoresetMode(mode)
    except ValueError as error:
        raise ValueError(f"autoreset_mode of {env} is {mode!r}; expected one of {known}") from error


def _with_final_observations(obs: Any, info: dict[str, Any], is_over: Array) -> Any:
    """The observations that steps led to: where an episode ended, its last one instead of the reset's."""
    if not is_over.any():
        return obs
    if "final_obs" not in info:
        raise ValueError(
            "an episode ended but info has no 'final_obs', which same-step environments must report; "
            "without it the end of the episode cannot be told from the next beginning"
        )
    return _replaced(obs, info["final_obs"], is_over)


def _replaced(obs: Any, final: Any, is_over: Array) -> Any:
    """Goes through dicts and tuples; final observations are of the same form, or one for each environment."""
    if isinstance(obs, dict | tuple):
        keys = list(obs) if isinstance(obs, dict) else range(len(obs))
        is_whole = type(final) is type(obs)
        parts = {
            key: _replaced(
                obs[key], final[key] if is_whole else [f if f is None else f[key] for f in final], is_over
            )
            for key in keys
        }
        return parts if isinstance(obs, dict) else tuple(parts.values())
    return _replace(obs, final, is_over)


def _replace(obs: Array, final: Any, is_over: Array) -> Array:
    arrived = np.array(obs)
    for row in np.flatnonzero(is_over):
        arrived[row] = final[row]
    return arrived
