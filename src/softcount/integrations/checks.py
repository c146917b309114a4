"""What a user's loop hands over, checked and made plain.

Arrays of any library become NumPy arrays of the shapes that the spaces promise, and what they mean is
made plain (`envs.observations`). Everything that does not fit is refused here, with the value that was
wrong and what to pass instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.envs.observations import ObservationReader, to_numpy
from softcount.envs.spaces import to_action_spec
from softcount.types import Array, action_array


class Inputs:
    """Knows the spaces of one environment and how many copies there are."""

    def __init__(self, observation_space: Any, action_space: Any, num_envs: int) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise ValueError(f"num_envs is {num_envs!r}; expected a whole number of at least 1")
        self.num_envs = num_envs
        self._reader = ObservationReader(_check_space(observation_space, "observation_space"))
        self.observation_spec = self._reader.spec
        self.action_spec = to_action_spec(_check_space(action_space, "action_space"))
        self._action_start = getattr(action_space, "start", 0)
        self._action_shape = tuple(action_space.shape or ())

    def observation(self, value: Any, name: str, num: int | None = None) -> Any:
        """Returns observations `[B, ...]` as networks get them: see `envs.observations`."""
        return self._reader.read(value, name, num)

    def env_ids(self, value: Any) -> Array:
        """Returns the numbers of the environments that are meant; all of them where none are given."""
        if value is None:
            return np.arange(self.num_envs)
        ids = to_numpy(value)
        is_fine = ids.ndim == 1 and ids.dtype.kind in "iu" and len(np.unique(ids)) == len(ids) > 0
        if not is_fine or ids.min() < 0 or ids.max() >= self.num_envs:
            raise ValueError(
                f"env_ids are {value!r}; expected different whole numbers from 0 to {self.num_envs - 1}"
            )
        return ids

    def actions(self, value: Any, num: int | None = None) -> Array:
        """Returns actions `[N]` or `[N, n]`, choices counted from 0."""
        spec = action_array(self.action_spec)
        array = to_numpy(value)
        num = self.num_envs if num is None else num
        expected = (num, *self._action_shape)
        if array.shape == (*expected, 1) and spec.shape == ():
            array = array[..., 0]
        kinds = "iuf" if spec.dtype == "float32" else "iu"
        if array.shape != expected or array.dtype.kind not in kinds:
            raise ValueError(
                f"actions are {array.dtype} of shape {array.shape}; expected {spec.dtype} of shape {expected}"
            )
        if spec.dtype == "int64":
            array = array.astype(np.int64) - self._action_start
        return array.astype(spec.dtype).reshape(num, *spec.shape)

    def flags(self, value: Any, name: str, num: int | None = None) -> Array:
        """Returns one boolean per copy."""
        array = to_numpy(value)
        num = self.num_envs if num is None else num
        if array.shape == (num, 1):
            array = array[:, 0]
        is_truth = array.dtype == np.bool_ or bool(np.isin(array, (0, 1)).all())
        if array.shape != (num,) or not is_truth:
            raise ValueError(
                f"{name} is {array.dtype} of shape {array.shape}; expected {num} booleans, "
                "one per environment"
            )
        return array.astype(bool)


def _check_space(space: Any, name: str) -> Any:
    if not hasattr(space, "sample") or not hasattr(space, "contains"):
        raise TypeError(
            f"{name} is {space!r}; expected a Gymnasium space of ONE environment "
            f"(envs.single_{name} of a vector environment)"
        )
    return space
