"""PopArt: values in units of their own, one output per task, whose meaning survives a change of units.

    Art   μ ← μ + w (mean of targets − μ),   ν ← ν + w (mean of squares − ν),   w = 1 − (1 − step)ⁿ
          σ = √(ν − μ²), kept between two bounds
    Pop   weights and bias of the output change so that σ · output + μ stays what it was

n is how many targets a task has in a batch: n steps of size `step` one after the other, whatever the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from softcount.validation import between, check_fields


@dataclass(frozen=True, kw_only=True)
class PopArtConfig:
    """How the units of values follow the returns."""

    step: float = 1e-4
    """Weight of one return in the running mean and mean square."""
    scale_least: float = 1e-2
    """Values are never measured in less."""
    scale_most: float = 1e6
    """Values are never measured in more."""

    def __post_init__(self) -> None:
        check_fields(self, step=between(0, 1, "()"))
        if not 0 < self.scale_least < self.scale_most:
            raise ValueError(
                f"PopArt's scale is kept between {self.scale_least} and {self.scale_most}; "
                "expected positive numbers in growing order"
            )


class Statistics(NamedTuple):
    """What is known of the returns of each task, float64 `[K]`."""

    mean: Tensor
    second: Tensor  # mean square
    scale: Tensor  # σ


def art(
    statistics: Statistics, targets: Tensor, task: Tensor, is_valid: Tensor, config: PopArtConfig
) -> Statistics:
    """Takes returns into the statistics; `targets`, `task` and `is_valid` have one shape.

    Statistics of tasks without returns stay as they are.
    """
    targets, task = targets[is_valid].double(), task[is_valid]
    zeros = torch.zeros_like(statistics.mean)
    num = zeros.index_add(0, task, torch.ones_like(targets))
    weight = 1 - (1 - config.step) ** num
    divisor = num.clamp(min=1)
    mean = zeros.index_add(0, task, targets) / divisor
    second = zeros.index_add(0, task, targets.square()) / divisor
    new_mean = statistics.mean + weight * (mean - statistics.mean)
    new_second = statistics.second + weight * (second - statistics.second)
    variance = (new_second - new_mean.square()).clamp(config.scale_least**2, config.scale_most**2)
    return Statistics(new_mean, new_second, variance.sqrt())


def pop(weight: Tensor, bias: Tensor, old: Statistics, new: Statistics) -> tuple[Tensor, Tensor]:
    """Returns the output layer `[K, F]` and `[K]` that says in new units what it said in the old."""
    ratio = old.scale / new.scale
    moved = (old.scale * bias + old.mean - new.mean) / new.scale
    return weight * ratio.unsqueeze(-1), moved


def in_units(value: Tensor, statistics: Statistics, task: Tensor) -> Tensor:
    """Values in the units of their tasks; `value` and `task` have one shape."""
    return (value - statistics.mean[task]) / statistics.scale[task]


def of_units(output: Tensor, statistics: Statistics, task: Tensor) -> Tensor:
    """Inverts `in_units`."""
    return statistics.scale[task] * output + statistics.mean[task]


class PopArtHead(nn.Module):
    """One linear output per task, in units of the task's returns, and what these units are.

    >>> head = PopArtHead(8, 3)
    >>> tuple(head(torch.zeros(5, 2, 8)).shape), head.statistics.scale.tolist()
    ((5, 2, 3), [1.0, 1.0, 1.0])
    """

    mean: Tensor
    second: Tensor
    scale: Tensor

    def __init__(self, inputs: int, num_tasks: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, num_tasks)
        self.register_buffer("mean", torch.zeros(num_tasks, dtype=torch.float64))
        self.register_buffer("second", torch.ones(num_tasks, dtype=torch.float64))
        self.register_buffer("scale", torch.ones(num_tasks, dtype=torch.float64))

    def forward(self, features: Tensor) -> Tensor:
        """Returns outputs `[..., K]`, each in its task's units."""
        outputs: Tensor = self.linear(features)
        return outputs

    @property
    def statistics(self) -> Statistics:
        return Statistics(self.mean.clone(), self.second.clone(), self.scale.clone())

    @torch.no_grad()
    def rescale(self, new: Statistics) -> None:
        """Takes on new units; what the outputs mean stays the same."""
        weight, bias = pop(self.linear.weight.double(), self.linear.bias.double(), self.statistics, new)
        self.linear.weight.copy_(weight)
        self.linear.bias.copy_(bias)
        for name, values in new._asdict().items():
            getattr(self, name).copy_(values)
