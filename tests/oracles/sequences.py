"""Small packed sequences of random content, with episode ends inside."""

from __future__ import annotations

import numpy as np
import torch

from softcount.types import ArraySpec, ContinuousActions, DiscreteActions, Sequence, Step


def sample_observation(spec, leading, rng):
    if isinstance(spec, dict):
        return {key: sample_observation(part, leading, rng) for key, part in spec.items()}
    if spec.dtype == "uint8":
        return torch.from_numpy(rng.integers(0, 6, (*leading, *spec.shape), dtype=np.uint8))
    return torch.from_numpy(rng.normal(size=(*leading, *spec.shape)).astype(np.float32))


def sample_action(spec, leading, rng):
    if isinstance(spec, ContinuousActions):
        values = rng.uniform(spec.low, spec.high, (*leading, len(spec.low)))
        return torch.from_numpy(values.astype(np.float32))
    if isinstance(spec, DiscreteActions):
        return torch.from_numpy(rng.integers(0, spec.num, leading))
    return torch.from_numpy(rng.integers(0, spec.nums, (*leading, len(spec.nums))))


def sample_sequence(
    observation_spec=ArraySpec((5,), "float32"),  # noqa: B008
    action_spec=DiscreteActions(4),  # noqa: B008
    time=7,
    batch=3,
    seed=0,
    ends=((2, 0), (4, 1), (5, 1)),
):
    """A packed batch; `ends` are the (t, b) at which an episode ends, the next row is a first one."""
    rng = np.random.default_rng(seed)
    is_last = torch.zeros(time, batch, dtype=torch.bool)
    is_first = torch.zeros(time, batch, dtype=torch.bool)
    for t, b in ends:
        is_last[t, b] = True
        if t + 1 < time:
            is_first[t + 1, b] = True
    action = sample_action(action_spec, (time, batch), rng)
    prev_action = torch.cat((sample_action(action_spec, (1, batch), rng), action[:-1]))
    prev_action[is_first] = 0
    nothing = torch.zeros(time, batch)
    observation = sample_observation(observation_spec, (time, batch), rng)
    step = Step(observation, prev_action, nothing, nothing, is_first, is_last, is_last, action, {})
    return Sequence(step, ())
