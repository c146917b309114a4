"""What a representation is: it gives features of tensors.

Those with an embedding have `dim` and `embed`; those that normalise what they see have `needs_statistics`
and `learn_statistics`: before the first update they are shown all there is. Features without any value
mean that the representation cannot tell yet; nothing is paid for them and nothing remembered.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from softcount.types import Features, Sequence

Metrics: TypeAlias = dict[str, Tensor]


class Representation(nn.Module):
    """Turns observations into features, and learns to; every kind says what it does otherwise."""

    dim: int | None = None
    """Size of its embedding, None if it gives none."""

    def initial_state(self, batch: int) -> Any:
        """Recurrent state for acting, () if it has none."""
        return ()

    def represent(
        self,
        observation: Any,
        prev_action: Tensor | None = None,
        is_first: Tensor | None = None,
        state: Any = (),
    ) -> tuple[Features[Tensor], Any]:
        """Features of one observation per environment, `[B, ...]`, and the new state."""
        raise NotImplementedError(f"{type(self).__name__} does not say what it gives: represent is missing")

    def embed(self, observation: Any) -> Tensor:
        """Embeds `[T, B, ...]` as `[T, B, D]`."""
        raise NotImplementedError(f"{type(self).__name__} gives no embedding")

    def loss(self, sequence: Sequence[Tensor]) -> tuple[Tensor, Metrics]:
        """What learning makes small, over leaves `[T, B, ...]`, and numbers to report; 0 learns nothing."""
        return torch.zeros(()), {}

    def surprise(self, sequence: Sequence[Tensor]) -> Tensor:
        """Surprise of each row, `[T, B]`, where the reward needs a sequence (BYOL-Explore)."""
        raise NotImplementedError(f"{type(self).__name__} gives no surprise of a sequence")

    @property
    def needs_statistics(self) -> bool:
        """Whether `learn_statistics` should be shown all there is, before the first update."""
        return False

    def learn_statistics(self, observation: Any) -> None:
        """Takes observations `[N, ...]` into statistics; most have none."""

    def after_update(self) -> None:
        """Called by the trainer after each optimiser step."""


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


def masked_mean(values: Tensor, mask: Tensor) -> Tensor:
    """Mean over the True places; 0 where there are none."""
    weights = mask.to(values.dtype)
    return (values * weights).sum() / weights.sum().clamp_min(1.0)
