"""A control of recurrent agents: the same agent, whose recurrent state is lost at every step."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


def forget(*networks: Any) -> None:
    """Makes networks start every step from the initial state; parameters and their names stay as they are."""
    for network in networks:
        network.core.register_forward_pre_hook(_as_first)


def _as_first(core: nn.Module, inputs: tuple[Tensor, Any, Tensor]) -> tuple[Tensor, Any, Tensor]:
    features, state, is_first = inputs
    return features, state, torch.ones_like(is_first)
