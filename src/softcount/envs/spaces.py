"""Between Gymnasium's spaces and the project's own specs, units, and the check of actions at the border."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.envs.observations import ObservationReader
from softcount.types import (
    ActionSpec,
    Array,
    ContinuousActions,
    DiscreteActions,
    MultiDiscreteActions,
    ObservationSpec,
)

if TYPE_CHECKING:
    import gymnasium


def to_observation_spec(space: gymnasium.Space[Any]) -> ObservationSpec:
    """Describes what `ObservationReader` makes of a Gymnasium space."""
    return ObservationReader(space).spec


def to_action_spec(space: gymnasium.Space[Any]) -> ActionSpec:
    """Describes a Gymnasium action space: one choice, several, or numbers between bounds.

    Choices are counted from 0, and arrays of them are flat; `to_own_action` turns them into the space's own.
    """
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return DiscreteActions(int(space.n))
    if isinstance(space, spaces.MultiDiscrete):
        return MultiDiscreteActions(tuple(space.nvec.ravel().tolist()))
    if isinstance(space, spaces.MultiBinary):
        return MultiDiscreteActions((2,) * math.prod(space.shape))
    if isinstance(space, spaces.Box) and np.dtype(space.dtype).kind == "f":
        return ContinuousActions(tuple(space.low.ravel().tolist()), tuple(space.high.ravel().tolist()))
    raise TypeError(
        f"cannot act in {space}; expected Discrete, MultiDiscrete, MultiBinary or a Box of floats: "
        "an action wrapper can turn it into one"
    )


def to_own_action(action: Array, space: gymnasium.Space[Any]) -> Any:
    """Turns one action of `to_action_spec` into the space's own: its start, shape and type.

    >>> from gymnasium.spaces import Discrete
    >>> to_own_action(np.array(1), Discrete(3, start=-1))
    0
    """
    from gymnasium import spaces

    if isinstance(space, spaces.Discrete):
        return int(action) + int(space.start)
    own = np.asarray(action).reshape(space.shape or ()).astype(space.dtype)
    return own + space.start if isinstance(space, spaces.MultiDiscrete) else own


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
