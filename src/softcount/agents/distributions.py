"""Policies over each kind of action: what describes them, how likely actions are, how far apart two are.

    space             a policy `[..., P]` is           distances, each with a multiplier of its own
    discrete          logits                           KL
    multi-discrete    logits, choice after choice      KL, added over choices
    continuous        mean and std, in units of        KL_mean = ½ Σ ((μ − μ_b) / σ_b)²
                      the box scaled to [−1, 1]        KL_cov  = ½ Σ ((σ_b / σ)² − 1 + 2 ln(σ / σ_b))

All are of the policy that acted (b) to the one that learns. The two of a Gaussian are decoupled
[V-MPO]: the first has the old σ, the second the old μ, and they do not add up to the whole KL. Learners
use tensors, actors arrays.

A Gaussian's sample u may lie outside of the box; what is sent is clip(u, −1, 1), scaled. Likelihoods are of
u: it is what the policy said.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from softcount.types import ActionSpec, Array, ContinuousActions, DiscreteActions


class Distribution(Protocol):
    """A family of policies over one action space."""

    num_parameters: int  # P
    num_distances: dict[str, int]  # by name: how many numbers each distance has

    def policy(self, outputs: Tensor) -> Tensor:
        """Turns what a linear layer says, `[..., P]`, into a policy `[..., P]`."""

    def log_prob(self, policy: Tensor, drawn: Tensor) -> Tensor: ...  # [...]
    def entropy(self, policy: Tensor) -> Tensor: ...  # [...]
    def distances(self, behaviour: Tensor, policy: Tensor) -> dict[str, Tensor]: ...  # each [..., K]
    def sample(self, policy: Array, rng: np.random.Generator) -> Array: ...
    def mode(self, policy: Array) -> Array: ...
    def to_env(self, drawn: Array) -> Array:
        """Returns the action that is sent for a sample."""


@dataclass(frozen=True, kw_only=True)
class GaussianConfig:
    """The shape of Gaussian policies; continuous actions only."""

    std_start: float = 0.5
    """Standard deviation before learning, in units where the box is [−1, 1]."""
    std_least: float = 0.01
    """It stays above this."""
    std_most: float = 1.0
    """It stays below this: wider samples are clipped to the same few actions."""
    per_dimension: bool = False
    """A trust region for each dimension of an action, in place of one for all together."""

    def __post_init__(self) -> None:
        if not 0 < self.std_least < self.std_start < self.std_most:
            raise ValueError(
                f"std_least, std_start, std_most are {self.std_least}, {self.std_start}, {self.std_most}; "
                "expected positive numbers in growing order"
            )


def make_distribution(spec: ActionSpec, gaussian: GaussianConfig | None = None) -> Distribution:
    """Returns the family of policies for an action space.

    >>> make_distribution(DiscreteActions(4)).num_parameters
    4
    >>> make_distribution(ContinuousActions((-1.0, 0.0), (1.0, 2.0))).num_distances
    {'mean': 1, 'cov': 1}
    """
    if isinstance(spec, ContinuousActions):
        return DiagonalGaussian(spec, gaussian or GaussianConfig())
    nums = (spec.num,) if isinstance(spec, DiscreteActions) else spec.nums
    return Categoricals(nums, is_scalar=isinstance(spec, DiscreteActions))


class Categoricals:
    """One choice, or several independent ones.

    >>> several = Categoricals((2, 3))
    >>> policy = np.array([[5.0, 0.0, 0.0, 0.0, 5.0]])
    >>> several.mode(policy).tolist()
    [[0, 2]]
    """

    def __init__(self, nums: tuple[int, ...], *, is_scalar: bool = False) -> None:
        self.nums, self.is_scalar = nums, is_scalar
        self.num_parameters = sum(nums)
        self.num_distances = {"kl": 1}
        self._borders = np.cumsum(nums)[:-1]

    def policy(self, outputs: Tensor) -> Tensor:
        return outputs

    def log_prob(self, policy: Tensor, drawn: Tensor) -> Tensor:
        choices = drawn.unsqueeze(-1) if self.is_scalar else drawn
        parts = [
            log_p.gather(-1, choices[..., i : i + 1]).squeeze(-1)
            for i, log_p in enumerate(self._log_probs(policy))
        ]
        return torch.stack(parts).sum(0)

    def entropy(self, policy: Tensor) -> Tensor:
        return torch.stack([-(p.exp() * p).sum(-1) for p in self._log_probs(policy)]).sum(0)

    def distances(self, behaviour: Tensor, policy: Tensor) -> dict[str, Tensor]:
        pairs = zip(self._log_probs(behaviour), self._log_probs(policy), strict=True)
        kl = torch.stack([(b.exp() * (b - p)).sum(-1) for b, p in pairs]).sum(0)
        return {"kl": kl.unsqueeze(-1)}

    def sample(self, policy: Array, rng: np.random.Generator) -> Array:
        return self.mode(policy + rng.gumbel(size=policy.shape))  # the largest is drawn like the softmax

    def mode(self, policy: Array) -> Array:
        choices = [part.argmax(-1) for part in np.split(policy, self._borders, axis=-1)]
        return choices[0] if self.is_scalar else np.stack(choices, axis=-1)

    def to_env(self, drawn: Array) -> Array:
        return drawn

    def _log_probs(self, policy: Tensor) -> list[Tensor]:
        return [part.log_softmax(-1) for part in policy.split(self.nums, -1)]


class DiagonalGaussian:
    """Independent Gaussians, one per dimension of a box.

    >>> gaussian = DiagonalGaussian(ContinuousActions((0.0,), (10.0,)), GaussianConfig())
    >>> gaussian.policy(torch.zeros(2)).tolist()
    [0.0, 0.5]
    >>> gaussian.to_env(np.array([[0.0], [3.0]])).tolist()
    [[5.0], [10.0]]
    """

    def __init__(self, spec: ContinuousActions, config: GaussianConfig) -> None:
        bounds = np.array((spec.low, spec.high))
        if not np.isfinite(bounds).all():
            raise ValueError(
                f"actions are {spec}; V-MPO's Gaussian needs finite bounds: wrap the environment so that "
                "its actions have some"
            )
        self.low, self.high = bounds
        self.config = config
        self.size = len(spec.low)
        self.num_parameters = 2 * self.size
        num = self.size if config.per_dimension else 1
        self.num_distances = {"mean": num, "cov": num}
        share = (config.std_start - config.std_least) / (config.std_most - config.std_least)
        self._shift = math.log(share / (1 - share))

    def policy(self, outputs: Tensor) -> Tensor:
        """The std is a sigmoid between its bounds: beyond a clip's there would be no gradient back."""
        mean, raw = outputs.chunk(2, -1)
        least, most = self.config.std_least, self.config.std_most
        return torch.cat((mean, least + (most - least) * torch.sigmoid(raw + self._shift)), -1)

    def log_prob(self, policy: Tensor, drawn: Tensor) -> Tensor:
        mean, std = policy.chunk(2, -1)
        scaled = (drawn - mean) / std
        return -(0.5 * scaled.square() + std.log() + 0.5 * math.log(2 * math.pi)).sum(-1)

    def entropy(self, policy: Tensor) -> Tensor:
        _, std = policy.chunk(2, -1)
        return (std.log() + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)

    def distances(self, behaviour: Tensor, policy: Tensor) -> dict[str, Tensor]:
        (mean_b, std_b), (mean, std) = behaviour.chunk(2, -1), policy.chunk(2, -1)
        ratio = std_b / std
        parts = {
            "mean": 0.5 * ((mean - mean_b) / std_b).square(),
            "cov": 0.5 * (ratio.square() - 1 - 2 * ratio.log()),
        }
        if self.config.per_dimension:
            return parts
        return {name: part.sum(-1, keepdim=True) for name, part in parts.items()}

    def sample(self, policy: Array, rng: np.random.Generator) -> Array:
        mean, std = np.split(policy, 2, axis=-1)
        return np.asarray(mean + std * rng.standard_normal(mean.shape), np.float32)

    def mode(self, policy: Array) -> Array:
        return np.asarray(policy[..., : self.size], np.float32)

    def to_env(self, drawn: Array) -> Array:
        inside = (np.clip(drawn, -1.0, 1.0) + 1) / 2
        sent = self.low + inside * (self.high - self.low)
        return np.asarray(np.clip(sent, self.low, self.high), np.float32)
