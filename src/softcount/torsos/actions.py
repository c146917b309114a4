"""How actions of each kind are predicted, and how they enter a network.

    space             predicted by                                     enters as
    discrete          one categorical                                  one-hot
    multi-discrete    one categorical per choice, losses added         one-hots side by side
    continuous        one categorical over equal bins per dimension,   the box scaled to [-1, 1]
                      losses added

Bins rather than a Gaussian for continuous actions: the likelihood is bounded, needs no
variance to be tuned, and can be as multi-modal as "left or right" is. Decision 43.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softcount.types import ActionSpec, ContinuousActions, DiscreteActions


class ActionCoding(nn.Module):
    """Actions as classes to predict and as vectors to read.

    >>> from softcount.types import MultiDiscreteActions
    >>> coding = ActionCoding(MultiDiscreteActions((3, 2)))
    >>> coding.num_logits, coding.vectors(torch.tensor([[2, 0]])).tolist()
    (5, [[0.0, 0.0, 1.0, 1.0, 0.0]])
    """

    low: Tensor
    high: Tensor

    def __init__(self, spec: ActionSpec, num_bins: int = 11) -> None:
        super().__init__()
        self.is_continuous = isinstance(spec, ContinuousActions)
        self.is_scalar = isinstance(spec, DiscreteActions)
        if isinstance(spec, ContinuousActions):
            if not all(math.isfinite(x) for x in (*spec.low, *spec.high)):
                raise ValueError(f"continuous actions need finite bounds to be predicted; got {spec}")
            if num_bins < 2:
                raise ValueError(f"num_bins is {num_bins}; expected at least 2")
            self.nums: tuple[int, ...] = (num_bins,) * len(spec.low)
            self.register_buffer("low", torch.tensor(spec.low), persistent=False)
            self.register_buffer("high", torch.tensor(spec.high), persistent=False)
            self.num_inputs = len(spec.low)
        else:
            self.nums = (spec.num,) if isinstance(spec, DiscreteActions) else tuple(spec.nums)
            self.num_inputs = sum(self.nums)
        self.num_logits = sum(self.nums)

    def classes(self, action: Tensor) -> Tensor:
        """Actions `[...]` or `[..., n]` as class indices `[..., n]`."""
        if not self.is_continuous:
            return action[..., None].long() if self.is_scalar else action.long()
        num = self.nums[0]
        return (self._unit(action) * num).long().clamp(0, num - 1)

    def vectors(self, action: Tensor) -> Tensor:
        """Actions as float vectors `[..., num_inputs]`."""
        if self.is_continuous:
            return self._unit(action) * 2 - 1
        classes = self.classes(action)
        parts = [F.one_hot(classes[..., i], num) for i, num in enumerate(self.nums)]
        return torch.cat(parts, -1).float()

    def cross_entropy(self, logits: Tensor, action: Tensor) -> Tensor:
        """−log p(action), in nats, added over the parts of an action: `[..., num_logits]` to `[...]`."""
        classes = self.classes(action)
        losses = [
            -part.log_softmax(-1).gather(-1, classes[..., i : i + 1]).squeeze(-1)
            for i, part in enumerate(logits.split(self.nums, -1))
        ]
        return torch.stack(losses).sum(0)

    def accuracy(self, logits: Tensor, action: Tensor) -> Tensor:
        """Which share of an action's parts has its most likely class right: `[...]`."""
        classes = self.classes(action)
        hits = [part.argmax(-1) == classes[..., i] for i, part in enumerate(logits.split(self.nums, -1))]
        return torch.stack(hits).float().mean(0)

    def _unit(self, action: Tensor) -> Tensor:
        return ((action - self.low) / (self.high - self.low)).clamp(0, 1)
