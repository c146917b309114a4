"""Exact state for environments that are deterministic but cannot write themselves down.

The state of an episode is how it began (the seed, or the generator's state) and every
action since. Restoring replays them and checks that the last observation is the same to
the byte. It costs the steps of one episode, needs no pickle, and cannot forget a field.
"""

from __future__ import annotations

import hashlib
from typing import Any

import gymnasium
import numpy as np

from softcount.types import State, load_rng, rng_state


class Replayed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Adds `get_state` and `set_state` to a seeded environment with discrete actions.

    >>> env, other = (Replayed(gymnasium.make("FrozenLake-v1", is_slippery=True)) for _ in range(2))
    >>> _ = env.reset(seed=3), env.step(1), env.step(2)
    >>> other.set_state(env.get_state())
    >>> env.step(1)[0] == other.step(1)[0]
    True
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._seed: int | None = None
        self._rng: str | None = None  # the generator's state before the episode began
        self._actions: list[int] = []
        self._digest = ""

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Notes how the episode begins."""
        self._seed = seed
        self._rng = rng_state(self.unwrapped.np_random)
        self._actions = []
        observation, info = self.env.reset(seed=seed, options=options)
        self._digest = _digest(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Notes the action."""
        result = self.env.step(action)
        self._actions.append(int(action))
        self._digest = _digest(result[0])
        return result

    def get_state(self) -> State:
        """Returns the beginning of the episode and the actions since."""
        return {
            "seed": self._seed,
            "rng": self._rng,
            "actions": np.array(self._actions, np.int64),
            "digest": self._digest,
        }

    def set_state(self, state: State) -> None:
        """Plays the episode again up to where `get_state` was called."""
        if state["rng"] is None:
            return  # saved before the first reset: there is nothing to restore
        load_rng(self.unwrapped.np_random, state["rng"])
        self.reset(seed=state["seed"])
        for action in np.asarray(state["actions"]).tolist():
            self.step(action)
        if self._digest != state["digest"]:
            raise RuntimeError(
                f"{self.env} did not repeat its episode: another version or configuration wrote the state"
            )
        self._rng = state["rng"]


def _digest(observation: Any) -> str:
    digest = hashlib.sha256()
    parts = observation if isinstance(observation, dict) else {"": observation}
    for key in sorted(parts):
        digest.update(key.encode())
        digest.update(np.ascontiguousarray(parts[key]).tobytes())
    return digest.hexdigest()
