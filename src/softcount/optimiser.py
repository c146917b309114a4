"""The one optimiser of agents and representations: AdamW, one rule for what decays, one way to clip."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from softcount.validation import above, at_least, between, check_fields, each


@dataclass(frozen=True, kw_only=True)
class OptimiserConfig:
    """AdamW with a limit on the gradient's norm."""

    learning_rate: float = 3e-4
    """Step size."""
    weight_decay: float = 0.05
    """Decoupled weight decay, on matrices and filters only, not on biases and gains."""
    betas: tuple[float, float] = (0.9, 0.999)
    """Averaging of gradients and of their squares."""
    epsilon: float = 1e-8
    """Adam's ε."""
    max_grad_norm: float | None = 40.0
    """Largest norm of the whole gradient; None does not clip."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            learning_rate=at_least(0),
            weight_decay=at_least(0),
            betas=each(between(0, 1, "[)")),
            epsilon=above(0),
            max_grad_norm=above(0),
        )


def make_optimiser(module: nn.Module, config: OptimiserConfig) -> torch.optim.AdamW:
    """AdamW over what learns in a module."""
    groups = parameter_groups(module, config.weight_decay)
    return torch.optim.AdamW(
        groups, lr=config.learning_rate, betas=config.betas, eps=config.epsilon, fused=True
    )


def parameter_groups(module: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Splits what learns into what decays (matrices, kernels) and what does not (biases, gains, vectors).

    A module's `never_decayed` names children of which nothing decays.
    """
    children = [
        getattr(part, name) for part in module.modules() for name in getattr(part, "never_decayed", ())
    ]
    never = {id(parameter) for child in children for parameter in child.parameters()}
    decayed: list[nn.Parameter] = []
    kept: list[nn.Parameter] = []
    for name, parameter in module.named_parameters():
        if parameter.requires_grad:
            is_matrix = parameter.ndim >= 2 and not name.endswith(("gain", "bias"))
            (decayed if is_matrix and id(parameter) not in never else kept).append(parameter)
    if weight_decay == 0:  # one group: each costs a call per step
        return [{"params": decayed + kept, "weight_decay": 0.0}]
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": kept, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def clip_gradients(parameters: Iterable[nn.Parameter], config: OptimiserConfig) -> Tensor:
    """Shortens the whole gradient to the largest norm; returns the norm it had."""
    if config.max_grad_norm is None:
        return nn.utils.get_total_norm(p.grad for p in parameters if p.grad is not None)
    return nn.utils.clip_grad_norm_(parameters, config.max_grad_norm)
