"""The last rows of every environment's stream, for representations to learn from.

Each environment has a ring of its own, because streams advance at different speeds: an
episode's end and the next beginning may arrive in one call. Rows are packed, `is_first`
cuts; a row gets its action when the next row arrives.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from softcount.types import (
    ActionSpec,
    Array,
    ArraySpec,
    Observation,
    ObservationSpec,
    Sequence,
    State,
    Step,
    action_array,
    map_arrays,
    zeros,
)


class History:
    """Rings of `capacity` rows, one per environment.

    >>> from softcount.types import DiscreteActions
    >>> history = History(ArraySpec((1,), "float32"), DiscreteActions(4), num_envs=2, capacity=5)
    >>> ids, no = np.arange(2), np.zeros(2, bool)
    >>> for t in range(3):
    ...     history.append(ids, np.full((2, 1), t, np.float32), np.full(2, t), no, no, no)
    >>> steps = history.latest(ids, 2).steps
    >>> steps.observation[:, 0, 0].tolist(), steps.action[:, 0].tolist()
    ([1.0, 2.0], [2, 0])
    """

    def __init__(
        self, observation_spec: ObservationSpec, action_spec: ActionSpec, num_envs: int, capacity: int
    ) -> None:
        self.capacity = capacity
        self.num_rows = np.zeros(num_envs, np.int64)  # ever written, by environment
        self.observation = _zeros(observation_spec, num_envs, capacity)
        self.prev_action = zeros(action_array(action_spec), num_envs, capacity)
        self.action = np.zeros_like(self.prev_action)
        self.flags = np.zeros((num_envs, capacity, 3), bool)  # is_first, is_last, is_terminal

    def append(
        self,
        env_ids: Array,
        observation: Any,
        prev_action: Array,
        is_first: Array,
        is_last: Array,
        is_terminal: Array,
    ) -> None:
        """Adds one row to each of these environments."""
        at, before = self.num_rows[env_ids] % self.capacity, (self.num_rows[env_ids] - 1) % self.capacity
        follows = ~is_first & (self.num_rows[env_ids] > 0)
        self.action[env_ids[follows], before[follows]] = prev_action[follows]
        map_arrays(lambda ring, rows: ring.__setitem__((env_ids, at), rows), self.observation, observation)
        self.prev_action[env_ids, at] = prev_action
        self.action[env_ids, at] = 0
        self.flags[env_ids, at] = np.stack((is_first, is_last, is_terminal), axis=-1)
        self.num_rows[env_ids] += 1

    def newest(self, env_ids: Array) -> Any:
        """The newest observation of these environments; they must have one."""
        at = (self.num_rows[env_ids] - 1) % self.capacity
        return map_arrays(lambda ring: ring[env_ids, at], self.observation)

    def latest(self, env_ids: Array, length: int) -> Sequence:
        """The newest `length` rows of these environments, time-major; they must have as many."""
        return self._gather(env_ids, self.num_rows[env_ids] - length, length)

    def sample(self, rng: np.random.Generator, batch: int, length: int) -> Sequence | None:
        """Draws sequences uniformly, environment first; None while no stream is long enough."""
        ready = np.flatnonzero(self.num_rows >= length)
        if len(ready) == 0:
            return None
        env_ids = ready[rng.integers(0, len(ready), batch)]
        newest = self.num_rows[env_ids]
        oldest = np.maximum(newest - self.capacity, 0)
        return self._gather(env_ids, rng.integers(oldest, newest - length + 1), length)

    def observations(self) -> Iterator[Observation]:
        """Yields every observation that is kept, environment by environment, `[N, ...]`."""
        for env_id, num in enumerate(np.minimum(self.num_rows, self.capacity).tolist()):
            if num:
                yield map_arrays(lambda ring, i=env_id, n=num: ring[i, :n], self.observation)

    def _gather(self, env_ids: Array, starts: Array, length: int) -> Sequence:
        at = (starts + np.arange(length)[:, None]) % self.capacity  # [T, B]
        flags = self.flags[env_ids, at]
        nothing = np.zeros(at.shape, np.float32)
        step = Step(
            observation=map_arrays(lambda ring: ring[env_ids, at], self.observation),
            prev_action=self.prev_action[env_ids, at],
            reward=nothing,
            intrinsic=nothing,
            is_first=flags[..., 0],
            is_last=flags[..., 1],
            is_terminal=flags[..., 2],
            action=self.action[env_ids, at],
            extras={},
        )
        return Sequence(step, ())

    def state_dict(self) -> State:
        observation = self.observation
        return {
            "num_rows": self.num_rows.copy(),
            "observation": map_arrays(np.copy, observation),
            "prev_action": self.prev_action.copy(),
            "action": self.action.copy(),
            "flags": self.flags.copy(),
        }

    def load_state_dict(self, state: State) -> None:
        if state["flags"].shape != self.flags.shape:
            raise ValueError(f"the history has shape {state['flags'].shape}; expected {self.flags.shape}")
        map_arrays(lambda ring, saved: ring.__setitem__(..., saved), self.observation, state["observation"])
        for name in ("num_rows", "prev_action", "action", "flags"):
            getattr(self, name)[...] = state[name]


def _zeros(spec: ObservationSpec, *leading: int) -> Any:
    if isinstance(spec, ArraySpec):
        return zeros(spec, *leading)
    return {key: zeros(part, *leading) for key, part in spec.items()}
