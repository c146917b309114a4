"""A representation on arrays, for whoever holds observations and no tensors: actors, reports, figures."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from softcount.representations.features import Representation
from softcount.tensors import to_arrays, to_tensors
from softcount.types import ActionSpec, Features, leaves_of, no_action


@torch.inference_mode()
def features_alone(
    representation: Representation, observation: Any, action_spec: ActionSpec, device: str = "cpu"
) -> Features:
    """Features of single observations `[N, ...]`, each as if an episode began with it.

    >>> from softcount.representations.compose import Function
    >>> from softcount.types import DiscreteActions
    >>> double = Function(lambda x: 2 * x, dim=1)
    >>> features_alone(double, np.float32([[1], [4]]), DiscreteActions(2)).embedding.tolist()
    [[2.0], [8.0]]
    """
    num = len(leaves_of(observation)[0])
    shown: Any = to_tensors((observation, no_action(action_spec, num), np.ones(num, bool)), device)
    state = to_tensors(to_arrays(representation.initial_state(num)), device)
    features, _ = representation.represent(shown[0], shown[1], shown[2], state)
    found: Features = to_arrays(features)
    return found
