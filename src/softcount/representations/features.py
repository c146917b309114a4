"""What a representation gives and gets, as tensors.

A representation is a torch module with

    dim                      size of its embedding, None if it gives none
    initial_state(batch)     recurrent state for acting, () if it has none
    represent(observation, prev_action, is_first, state) -> (TensorFeatures, state)
    loss(sequence)           -> (scalar, metrics), `sequence` time-major, leaves [T, B, ...]
    surprise(sequence)       -> [T, B], only where the reward needs a sequence (BYOL-Explore)
    after_update()           called by the trainer after each optimiser step

Those with an embedding also have `embed(observation)`, `[T, B, ...]` to `[T, B, D]`. Those
that normalise what they see have `needs_statistics` and `learn_statistics(observation)`:
before the first update they are shown all there is. Features without any value mean that
the representation cannot tell yet; nothing is paid for them and nothing remembered.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, TypeAlias, cast, runtime_checkable

import torch
from torch import Tensor, nn

from softcount.tensors import to_tensors
from softcount.types import Sequence, Step

Metrics: TypeAlias = dict[str, Tensor]


class TensorFeatures(NamedTuple):
    """`softcount.types.Features` before they leave torch."""

    embedding: Tensor | None = None  # [B, D] float32
    surprise: Tensor | None = None  # [B] float32


@runtime_checkable
class Representation(Protocol):
    """The methods above; implementations are `nn.Module`s."""

    dim: int | None

    def initial_state(self, batch: int) -> Any: ...
    def represent(
        self, observation: Any, prev_action: Tensor | None, is_first: Tensor | None, state: Any
    ) -> tuple[TensorFeatures, Any]: ...
    def loss(self, sequence: Sequence) -> tuple[Tensor, Metrics]: ...
    def after_update(self) -> None: ...


class Draws(nn.Module):
    """Random draws whose whole state is two integers: a seed and how often it was asked.

    In training each call gives a new generator; in evaluation always the same one, so that
    a held-out loss is a function of data and parameters and does not disturb training.
    """

    counter: Tensor

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.register_buffer("counter", torch.tensor([seed, 0]))

    def generator(self) -> torch.Generator:
        """Returns a fresh generator on the CPU."""
        seed, num = (int(x) for x in self.counter)
        if self.training:
            self.counter[1] += 1
        else:
            num = 0
        return torch.Generator().manual_seed((seed * 0x9E3779B97F4A7C15 + num) % 2**63)


def is_transition(steps: Step) -> Tensor:
    """Which pairs of rows (t, t+1) are one step of one episode: `[T-1, B]` bool."""
    return ~cast(Tensor, steps.is_first)[1:] & ~cast(Tensor, steps.is_last)[:-1]


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the True places; 0 where there are none."""
    weights = mask.to(values.dtype)
    return (values * weights).sum() / weights.sum().clamp_min(1.0)


def as_tensors(tree: Any, device: torch.device | str = "cpu") -> Any:
    """A tree of arrays or tensors as tensors on a device."""
    return to_tensors(tree, device)
