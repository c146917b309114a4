"""Between Gymnasium's spaces and the project's own specs, units, and the check of actions at the border."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.types import (
    ActionSpec,
    Array,
    ArraySpec,
    ContinuousActions,
    DiscreteActions,
    MultiDiscreteActions,
    ObservationSpec,
)

if TYPE_CHECKING:
    import gymnasium


def to_observation_spec(space: gymnasium.Space[Any]) -> ObservationSpec:
    """Describes a Gymnasium space of arrays, or a dict of such spaces."""
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        return {key: _to_array_spec(part) for key, part in space.spaces.items()}
    return _to_array_spec(space)


def to_action_spec(space: gymnasium.Space[Any]) -> ActionSpec:
    """Describes a Gymnasium action space: discrete from 0, several discrete, or a flat box."""
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete) and space.start == 0:
        return DiscreteActions(int(space.n))
    if isinstance(space, spaces.MultiDiscrete) and space.nvec.ndim == 1:
        return MultiDiscreteActions(tuple(space.nvec.tolist()))
    if isinstance(space, spaces.Box) and len(space.shape) == 1:
        return ContinuousActions(tuple(space.low.tolist()), tuple(space.high.tolist()))
    raise TypeError(
        f"cannot act in {space}; expected Discrete from 0, MultiDiscrete or a one-dimensional Box"
    )


def in_unit_range(env: gymnasium.Env[Any, Any]) -> gymnasium.Env[Any, Any]:
    """Scales vectors of floats with finite bounds to [−1, 1]; leaves every other environment as it is.

    A speed of at most 0.07 beside a position of 1 is else as good as invisible to a network. Decision 320.

    >>> import gymnasium
    >>> in_unit_range(gymnasium.make("MountainCarContinuous-v0")).observation_space
    Box(-1.0, 1.0, (2,), float32)
    """
    from gymnasium import spaces
    from gymnasium.wrappers import RescaleObservation

    space = env.observation_space
    if not isinstance(space, spaces.Box) or len(space.shape) != 1 or space.dtype.kind != "f":
        return env
    if not space.is_bounded() or (space.low == space.high).any():
        return env
    return RescaleObservation(env, space.dtype.type(-1), space.dtype.type(1))


def checked_actions(actions: Array, spec: ActionSpec, num_envs: int) -> Array:
    """Returns the actions as an array, or says which value is illegal and what was expected.

    >>> checked_actions([0, 7], DiscreteActions(4), 2)
    Traceback (most recent call last):
    ValueError: action 7 of copy 1 is illegal; expected integers from 0 to 3
    """
    actions = np.asarray(actions)
    is_continuous = isinstance(spec, ContinuousActions)
    if isinstance(spec, DiscreteActions):
        shape: tuple[int, ...] = (num_envs,)
        low, high = np.zeros((), np.int64), np.array(spec.num - 1)
    elif isinstance(spec, MultiDiscreteActions):
        shape = (num_envs, len(spec.nums))
        low, high = np.zeros((), np.int64), np.array(spec.nums) - 1
    else:
        shape = (num_envs, len(spec.low))
        low, high = np.array(spec.low), np.array(spec.high)
    has_kind = actions.dtype.kind in ("iufc" if is_continuous else "iu")
    kind = "numbers" if is_continuous else "integers"
    if actions.shape != shape or not has_kind:
        raise ValueError(
            f"actions are {actions.dtype} of shape {actions.shape}; expected {kind} of shape {shape}"
        )
    is_legal = (actions >= low) & (actions <= high)  # NaN is neither
    if not is_legal.all():
        copy = int(np.argwhere(~is_legal)[0][0])
        raise ValueError(
            f"action {actions[copy].tolist()} of copy {copy} is illegal; "
            f"expected {kind} from {low.astype(float if is_continuous else int).tolist()} to {high.tolist()}"
        )
    return actions


def _to_array_spec(space: gymnasium.Space[Any]) -> ArraySpec:
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return ArraySpec((), "int64")
    if isinstance(space, spaces.Box | spaces.MultiBinary | spaces.MultiDiscrete):
        return ArraySpec(tuple(space.shape), np.dtype(space.dtype or "float32").name)
    raise TypeError(f"cannot observe {space}; expected arrays, or a dict of arrays")
