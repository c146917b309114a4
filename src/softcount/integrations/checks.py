"""What a user's loop hands over, checked and made plain.

Arrays of any library become NumPy arrays of the shapes that the spaces promise; images
with channels first (`(4, 84, 84)`) are turned to channels last. Everything that does not
fit is refused here, with the value that was wrong and what to pass instead.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.envs.spaces import to_action_spec, to_observation_spec
from softcount.types import Array, ArraySpec, ObservationSpec, action_array


class Inputs:
    """Knows the spaces of one environment and how many copies there are."""

    def __init__(self, observation_space: Any, action_space: Any, num_envs: int) -> None:
        if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
            raise ValueError(f"num_envs is {num_envs!r}; expected a whole number of at least 1")
        self.num_envs = num_envs
        self.raw_spec = to_observation_spec(_check_space(observation_space, "observation_space"))
        self.action_spec = to_action_spec(_check_space(action_space, "action_space"))
        self.observation_spec: ObservationSpec = (
            _as_given_to_networks(self.raw_spec)
            if isinstance(self.raw_spec, ArraySpec)
            else {key: _as_given_to_networks(part) for key, part in self.raw_spec.items()}
        )

    def observation(self, value: Any, name: str, num: int | None = None) -> Any:
        """Returns observations `[B, ...]`, channels last, in the dtype of the space."""
        if isinstance(self.raw_spec, ArraySpec):
            return _observation(value, self.raw_spec, name, num)
        if not hasattr(value, "keys") or set(value.keys()) != set(self.raw_spec):
            keys = ", ".join(sorted(self.raw_spec))
            raise ValueError(f"{name} is {type(value).__name__}; expected a dict with the keys {keys}")
        return {
            key: _observation(value[key], part, f"{name}[{key!r}]", num)
            for key, part in self.raw_spec.items()
        }

    def actions(self, value: Any) -> Array:
        """Returns actions `[N]` or `[N, n]`."""
        spec = action_array(self.action_spec)
        array = to_numpy(value)
        expected = (self.num_envs, *spec.shape)
        if array.shape == (*expected, 1) and spec.shape == ():
            array = array[..., 0]
        kinds = "iuf" if spec.dtype == "float32" else "iu"
        if array.shape != expected or array.dtype.kind not in kinds:
            raise ValueError(
                f"actions are {array.dtype} of shape {array.shape}; expected {spec.dtype} of shape {expected}"
            )
        return array.astype(spec.dtype)

    def flags(self, value: Any, name: str) -> Array:
        """Returns one boolean per copy."""
        array = to_numpy(value)
        if array.shape == (self.num_envs, 1):
            array = array[:, 0]
        is_truth = array.dtype == np.bool_ or bool(np.isin(array, (0, 1)).all())
        if array.shape != (self.num_envs,) or not is_truth:
            raise ValueError(
                f"{name} is {array.dtype} of shape {array.shape}; expected {self.num_envs} booleans, "
                "one per environment"
            )
        return array.astype(bool)


def to_numpy(value: Any) -> Array:
    """Takes arrays of any library; torch tensors from any device, without their graph."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def is_channels_first(shape: tuple[int, ...]) -> bool:
    """Whether a shape is an image with its channels in front: first axis the smallest of three."""
    return len(shape) == 3 and shape[0] < min(shape[1:])


def _as_given_to_networks(spec: ArraySpec) -> ArraySpec:
    """Channels last, and single precision for every kind of float."""
    shape = (*spec.shape[1:], spec.shape[0]) if is_channels_first(spec.shape) else spec.shape
    return ArraySpec(shape, "float32" if np.dtype(spec.dtype).kind == "f" else spec.dtype)


def _observation(value: Any, spec: ArraySpec, name: str, num: int | None) -> Array:
    array = to_numpy(value)
    batch = num if num is not None else (array.shape[0] if array.ndim else 0)
    if array.shape != (batch, *spec.shape):
        wanted = f"({num if num is not None else 'B'}, {', '.join(map(str, spec.shape))})"
        raise ValueError(f"{name} has shape {array.shape}; expected {wanted}, as num_envs and the space say")
    if array.dtype.kind not in "iufb":
        raise ValueError(f"{name} has dtype {array.dtype}; expected numbers")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity")
    array = array.astype(_as_given_to_networks(spec).dtype, copy=False)
    return np.moveaxis(array, 1, -1) if is_channels_first(spec.shape) else array


def _check_space(space: Any, name: str) -> Any:
    if not hasattr(space, "sample") or not hasattr(space, "contains"):
        raise TypeError(
            f"{name} is {space!r}; expected a Gymnasium space of ONE environment "
            f"(envs.single_{name} of a vector environment)"
        )
    return space
