"""The losses of V-MPO, in the order of the paper.

    G_t  = r_{t+1} + γ (1 − terminal_{t+1}) [ V_{t+1} + λ (G_{t+1} − V_{t+1}) ]     λ = 1: to the unroll's end
    A_t  = G_t − V_t,  in units of its task's returns
    D~   = the half of all transitions D with the largest A
    ψ    = exp(A/η) / Σ_{D~} exp(A/η)                          constant for the gradient
    L_π  = − Σ_{D~} ψ log π(a|s)                               a sum, since ψ sums to 1
    L_η  = η ε_η + η log( 1/|D~| Σ_{D~} exp(A/η) )
    L_α  = mean_D [ α (ε_α − sg KL) + sg(α) KL ],              KL = KL(π_behaviour ‖ π), over all of D;
                                                               one α, or one for each task
    L_V  = ½ mean_D (V − G)²,                                  in PopArt's units

A transition exists where two rows belong to one episode; nothing else is averaged, added up or ranked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from softcount.agents.returns import lambda_returns
from softcount.types import is_transition
from softcount.validation import above, at_least, between, check_fields


@dataclass(frozen=True, kw_only=True)
class LossConfig:
    """Rewards, returns and the two trust regions; the defaults are the paper's where it gives them."""

    discount: float = 0.99
    """γ."""
    trace_discount: float = 1.0
    """λ; 1 is the n-step return to the end of the unroll, as in the paper."""
    intrinsic_weight: float = 0.1
    """β in r = r^e + β r^i: one value for the sum."""
    intrinsic_baseline: Literal["zero", "mean"] = "zero"
    """What of r^i counts: all of it, or how much it is above its running mean. With the mean, ending an
    episode gives up no bonus, and a goal that ends it need not outweigh a long stroll. Decision 244."""
    top_fraction: float = 0.5
    """Which part of the transitions the policy learns from, those with the largest advantages."""
    top_half: Literal["batch", "task"] = "batch"
    """Whether this part is taken of the whole batch, or of each task apart."""
    temperature: Literal["batch", "task"] = "batch"
    """Whether one η weighs the whole batch, or one for each task only its own transitions. Decision 500."""
    trust_region: Literal["batch", "task"] = "batch"
    """Whether distances are held on average over the whole batch, or over each task apart. Decision 500."""
    normalise_advantages: bool = True
    """Measure advantages in units of their task's returns; raw ones favour the task that pays most."""
    temperature_limit: float = 0.1
    """ε_η: how far ψ may be from uniform over the better half."""
    kl_limit: float = 0.002
    """ε_α: how far the policy may move from the one that acted; discrete actions."""
    mean_limit: float = 0.0075
    """The same for the mean of a Gaussian."""
    cov_limit: float = 1e-5
    """The same for its covariance."""
    temperature_start: float = 1.0
    """η before learning."""
    kl_multiplier_start: float = 5.0
    """α before learning; discrete actions."""
    gaussian_multiplier_start: float = 1.0
    """Both α of a Gaussian before learning."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            discount=between(0, 1),
            trace_discount=between(0, 1),
            intrinsic_weight=at_least(0),
            top_fraction=between(0, 1, "(]"),
            temperature_limit=above(0),
            kl_limit=above(0),
            mean_limit=above(0),
            cov_limit=above(0),
            temperature_start=above(0),
            kl_multiplier_start=above(0),
            gaussian_multiplier_start=above(0),
        )

    def limits(self) -> dict[str, float]:
        """Bounds of all distances, by name."""
        return {"kl": self.kl_limit, "mean": self.mean_limit, "cov": self.cov_limit}


class Episodes(NamedTuple):
    """Where episodes begin and end in a batch, rows `[T+1, B]`."""

    is_first: Tensor
    is_last: Tensor
    is_terminal: Tensor


def returns_of(reward: Tensor, value: Tensor, episodes: Episodes, config: LossConfig) -> Tensor:
    """Returns G `[T, B]` of the transitions between rows; rewards belong to the row that is arrived at."""
    goes_on = torch.zeros_like(episodes.is_last[1:])
    goes_on[:-1] = is_transition(episodes.is_first, episodes.is_last)[1:]
    discount = config.discount * (~episodes.is_terminal[1:]).to(value.dtype)
    trace = config.trace_discount * goes_on.to(value.dtype)
    return lambda_returns(reward[1:], discount, value[1:], trace)


def top_half(
    advantage: Tensor, is_valid: Tensor, fraction: float = 0.5, group: Tensor | None = None
) -> Tensor:
    """Says which transitions are among the best: all that reach the threshold, so that order decides nothing.

    With `group`, the best of each group.

    >>> is_valid = torch.tensor([True, True, True, True, False])
    >>> top_half(torch.tensor([3.0, 1.0, 2.0, 2.0, 9.0]), is_valid).tolist()
    [True, False, True, True, False]
    """
    if group is not None:
        parts = [top_half(advantage, is_valid & (group == g), fraction) for g in group[is_valid].unique()]
        return torch.stack(parts).any(0)
    ranked = advantage[is_valid].sort(descending=True).values
    num = max(1, int(fraction * len(ranked)))
    return is_valid & (advantage >= ranked[num - 1])


def temperature_loss(
    advantage: Tensor, is_chosen: Tensor, temperature: Tensor, limit: float, group: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Returns L_η and ψ (0 where not chosen).

    The largest advantage is taken out first: a small η would else cancel all digits of the gradient.
    With `group`, temperatures are `[G]`, and a group weighs as much as it has chosen transitions.
    """
    if group is not None:
        loss, weights = advantage.new_zeros(()), torch.zeros_like(advantage)
        for g, own in enumerate(temperature.view(-1)):
            rows = is_chosen & (group == g)
            if rows.any():
                share = rows[is_chosen].to(advantage.dtype).mean()
                part, psi = temperature_loss(advantage, rows, own, limit)
                loss, weights = loss + share * part, weights + share * psi
        return loss, weights
    largest = advantage[is_chosen].max()
    scaled = ((advantage - largest) / temperature).masked_fill(~is_chosen, -torch.inf)
    log_mean = scaled[is_chosen].logsumexp(0) - is_chosen.sum().to(scaled.dtype).log()
    weights = scaled.detach().flatten().softmax(0).view_as(advantage)
    return temperature * (limit + log_mean) + largest, weights


def policy_loss(log_prob: Tensor, weights: Tensor) -> Tensor:
    """Returns L_π; rows without weight count nothing, whatever their likelihood."""
    return -torch.where(weights > 0, weights * log_prob, 0.0).sum()


def kl_penalty(
    distance: Tensor, is_valid: Tensor, multiplier: Tensor, limit: float, group: Tensor | None = None
) -> Tensor:
    """Returns L_α of distances `[..., K]` with multipliers `[K]`, added over K.

    With `group`, multipliers are `[G · K]`, those of the first group first; each holds its own group.
    """
    if group is not None:
        own = multiplier.view(-1, distance.shape[-1])
        is_own = [is_valid & (group == g) for g in range(len(own))]
        parts = [
            rows[is_valid].double().mean() * kl_penalty(distance, rows, own[g], limit)
            for g, rows in enumerate(is_own)
            if rows.any()
        ]
        return torch.stack(parts).sum()
    mean = distance[is_valid].mean(0)
    return (multiplier * (limit - mean.detach()) + multiplier.detach() * mean).sum()


def value_loss(output: Tensor, target: Tensor, is_valid: Tensor) -> Tensor:
    """Returns L_V; both are in PopArt's units."""
    return 0.5 * (output - target)[is_valid].square().mean()


class Terms(NamedTuple):
    """What the losses are made of, one entry per transition `[T, B]`."""

    output: Tensor  # the value, in the task's new units
    target: Tensor  # the return, in the same
    advantage: Tensor
    log_prob: Tensor
    distances: Mapping[str, Tensor]  # each [T, B, K]
    is_valid: Tensor
    task: Tensor


def vmpo_loss(
    terms: Terms, temperature: Tensor, multipliers: Mapping[str, Tensor], config: LossConfig
) -> tuple[dict[str, Tensor], Tensor]:
    """Returns all losses by name, to be added up, and ψ."""
    group = terms.task if config.top_half == "task" else None
    heat = terms.task if config.temperature == "task" else None
    region = terms.task if config.trust_region == "task" else None
    advantage = terms.advantage.detach().double()
    is_chosen = top_half(advantage, terms.is_valid, config.top_fraction, group)
    e_step, weights = temperature_loss(advantage, is_chosen, temperature, config.temperature_limit, heat)
    losses = {
        "value": value_loss(terms.output, terms.target, terms.is_valid),
        "policy": policy_loss(terms.log_prob, weights),
        "temperature": e_step,
    }
    limits = config.limits()
    for name, distance in terms.distances.items():
        losses[f"{name}_penalty"] = kl_penalty(
            distance, terms.is_valid, multipliers[name], limits[name], region
        )
    return losses, weights
