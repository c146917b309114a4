"""The losses of MEME as pure functions of what two networks say about a batch of traces.

For mixture j, Q = Q^e + β_j Q^i in rescaled space, online network θ, target network θ_T:

    targets         y = h(G), G the soft Watkins return of h⁻¹(Q), r = r^e + β_j r^i, γ_j; all online
    trust region    no TD loss where |Q − Q_T| > α σ_j and sign(Q − Q_T) ≠ sign(Q − y)
    normalisation   δ = (Q − y) / σ_j,  σ_j = max(running, batch, floor · unit) of the std of Q − y
    distillation    −Σ_a G_ε(Q)(a) log π(a), none where KL(π_T ‖ π) > C
    mixtures        η L_{behaviour} + (1 − η) mean_j L_j
    priority        p max_t |δ_t| + (1 − p) mean_t |δ_t| of the behaviour mixture, or of all as weighted above

Sums run over real transitions only: pairs of rows that an episode end separates count nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from softcount.agents.meme.network import Outputs
from softcount.agents.returns import ReturnForm, rescale, soft_watkins_returns, unrescale
from softcount.types import is_transition
from softcount.validation import above, at_least, between, check_fields


@dataclass(frozen=True, kw_only=True)
class LossConfig:
    """Returns and losses; every mechanism can be switched off."""

    beta_max: float = 1.0
    """β_IM: weight of the intrinsic reward in the most exploring mixture."""
    discount_max: float = 0.9997
    """γ of the most exploiting mixture."""
    discount_min: float = 0.97
    """γ of the most exploring mixture; short ones (0.8) suit small mazes."""
    return_form: ReturnForm = "soft"
    """Which λ-return: see `agents.returns`."""
    trace_discount: float = 0.95
    """λ: how far returns reach beyond one step; 0 gives one-step targets."""
    soft_tolerance: float = 0.01
    """κ: how much worse than another action the taken one may be without cutting the trace."""
    policy_temperature: float = 0.25
    """Sharpens the distilled policy inside the returns."""
    rescale_epsilon: float | None = 1e-3
    """ε of the value rescaling h; None switches it off."""
    combine: Literal["rescaled", "raw"] = "rescaled"
    """Add Q^e + β Q^i as the network gives them, or between h⁻¹ and h."""
    trust_region: float | None = 2.0
    """α: mask TD errors that push further than α σ away from the target network; None: never."""
    normalise: bool = True
    """Divide TD errors by σ per mixture."""
    sigma_step: float = 0.01
    """Weight of a new batch in the running σ."""
    sigma_floor: float = 0.01
    """σ is never smaller, in units of the network's values (`NetworkConfig.value_unit`)."""
    cross_mixture: bool = True
    """Train all mixtures on every trace; off: only the one that acted."""
    behaviour_weight: float = 0.5
    """η: share of the acting mixture's loss, the rest is the mean over all mixtures."""
    distillation_weight: float = 1.0
    """Weight of the policy distillation; 0 switches it off."""
    distillation_epsilon: float = 1e-4
    """ε of the ε-greedy policy that is distilled."""
    kl_limit: float | None = 0.5
    """C: do not distil where the policy is further than this from the target network's; None: always."""
    priority_of: Literal["behaviour", "all"] = "behaviour"
    """Whose |δ| make a priority: the acting mixture's [MEME], or all mixtures', weighted as in the loss."""
    priority_max_weight: float = 0.9
    """p: share of the largest |δ| in a trace's priority, the rest is the mean."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            beta_max=at_least(0),
            discount_max=between(0, 1, "[)"),
            discount_min=between(0, 1, "[)"),
            trace_discount=between(0, 1),
            policy_temperature=above(0),
            rescale_epsilon=above(0),
            trust_region=above(0),
            sigma_step=between(0, 1, "(]"),
            sigma_floor=above(0),
            behaviour_weight=between(0, 1),
            distillation_weight=at_least(0),
            distillation_epsilon=between(0, 1),
            kl_limit=above(0),
            priority_max_weight=between(0, 1),
        )
        if self.discount_min > self.discount_max:
            raise ValueError(
                f"LossConfig.discount_min is {self.discount_min!r}; "
                f"expected at most discount_max ({self.discount_max!r})"
            )


class Batch(NamedTuple):
    """What the losses need of the traces: rows `[T+1, B]`, the last row only bootstraps."""

    action: Tensor
    mixture: Tensor  # which mixture acted
    reward: Tensor  # r^e of arriving at the row
    intrinsic: Tensor  # r^i of arriving at the row
    is_first: Tensor
    is_last: Tensor
    is_terminal: Tensor
    weights: Tensor  # [B] importance weights
    behaviour_prob: Tensor | None = None  # μ(a_t), for the retrace form only


class Ladders(NamedTuple):
    """What tells the mixtures apart."""

    beta: Tensor  # [N]
    discount: Tensor  # [N]


class RunningMoments(NamedTuple):
    """Moving averages of TD errors and their squares per mixture, with the weight gathered so far."""

    mean: Tensor  # [N]
    square: Tensor  # [N]
    weight: Tensor  # []


class Loss(NamedTuple):
    """What `meme_loss` returns."""

    loss: Tensor
    priorities: Tensor  # [B]
    moments: RunningMoments
    metrics: dict[str, Tensor]


def meme_loss(
    online: Outputs,
    target: Outputs,
    batch: Batch,
    ladders: Ladders,
    moments: RunningMoments,
    config: LossConfig,
    value_unit: float = 1.0,
) -> Loss:
    """Returns the loss of a batch, its priorities, and the moments that go into the next."""
    valid = is_transition(batch.is_first, batch.is_last)
    q = combine_values(online, ladders.beta, config)
    returns = td_targets(q.detach(), online.logits.detach(), batch, ladders, config)
    q_taken = _taken(q[:-1], batch.action[:-1])
    with torch.no_grad():
        q_taken_target = _taken(combine_values(target, ladders.beta, config)[:-1], batch.action[:-1])
        error = q_taken - returns
        batch_moments = td_moments(error, valid)
        sigma = td_scale(moments, batch_moments, config.sigma_floor * value_unit)
        divisor = sigma if config.normalise else torch.ones_like(sigma)
        keep = valid.unsqueeze(-1).to(error.dtype)
        if config.trust_region is not None:
            keep = keep * ~leaves_trust_region(q_taken, q_taken_target, returns, config.trust_region * sigma)
        share = mixture_weights(batch.mixture[:-1], q.shape[2], config).to(q.dtype)
        scale = share * batch.weights[:, None] / valid.sum().clamp(min=1)
    td_loss = 0.5 * ((q_taken - returns) / divisor) ** 2
    loss = value_loss = (scale * keep * td_loss).sum()
    metrics = {}
    if config.distillation_weight > 0:
        cross_entropy, is_near, kl = distillation(
            online.logits[:-1], q[:-1].detach(), target.logits[:-1], config
        )
        policy_loss = (scale * valid.unsqueeze(-1) * is_near * cross_entropy).sum()
        loss = loss + config.distillation_weight * policy_loss
        metrics = {
            "policy_loss": policy_loss,
            "policy_kl": _mean(kl, valid),
            "policy_gain": policy_gain(online.logits[:-1].detach(), q[:-1].detach(), valid, config),
            "distilled": _mean(is_near, valid),
        }
    with torch.no_grad():
        normalised = (error / divisor).abs()
        if config.priority_of == "all":
            normalised = (share * normalised).sum(-1)
        else:
            normalised = normalised.gather(-1, batch.mixture[:-1, :, None]).squeeze(-1)
        priorities = trace_priorities(normalised, valid, config.priority_max_weight)
    metrics |= {
        "loss": loss,
        "value_loss": value_loss,
        "td_error": _mean(error.abs(), valid),
        "return_size": _mean(returns.square(), valid).sqrt(),
        "sigma": sigma.mean(),
        "trusted": _mean(keep, valid),
        "q_exploit": _mean(q[:-1, :, :1].amax(-1), valid),
        "q_explore": _mean(q[:-1, :, -1:].amax(-1), valid),
        "priority": priorities.mean(),
    }
    return Loss(loss, priorities, update_moments(moments, batch_moments, config.sigma_step), metrics)


def combine_values(outputs: Outputs, beta: Tensor, config: LossConfig) -> Tensor:
    """Returns Q = Q^e + β_j Q^i `[T, B, N, A]`, by default added in rescaled space."""
    weight = beta.unsqueeze(-1)
    if config.combine == "rescaled":
        return outputs.q_extrinsic + weight * outputs.q_intrinsic
    return _squash(
        _unsquash(outputs.q_extrinsic, config) + weight * _unsquash(outputs.q_intrinsic, config), config
    )


@torch.no_grad()
def td_targets(q: Tensor, logits: Tensor, batch: Batch, ladders: Ladders, config: LossConfig) -> Tensor:
    """Returns the targets y = h(G) of the T transitions, `[T, B, N]`."""
    policy = sharpened(logits, config)
    returns = soft_watkins_returns(
        q=q,
        values=_unsquash(q, config),
        action=batch.action,
        policy=policy,
        reward=batch.reward.unsqueeze(-1) + ladders.beta * batch.intrinsic.unsqueeze(-1),
        discount=ladders.discount,
        is_first=batch.is_first,
        is_last=batch.is_last,
        is_terminal=batch.is_terminal,
        form=config.return_form,
        trace_discount=config.trace_discount,
        tolerance=config.soft_tolerance,
        behaviour_prob=batch.behaviour_prob,
    )
    return _squash(returns, config)


def sharpened(logits: Tensor, config: LossConfig) -> Tensor:
    """Returns the policy inside the returns."""
    return torch.softmax(logits / config.policy_temperature, -1)


def leaves_trust_region(q: Tensor, q_target: Tensor, returns: Tensor, radius: Tensor) -> Tensor:
    """Says where q is outside the region around q_target AND its update would push it further out."""
    offset = q - q_target
    return (offset.abs() > radius) & (offset.sign() != (q - returns).sign())


def td_moments(error: Tensor, valid: Tensor) -> tuple[Tensor, Tensor]:
    """Returns mean and mean square per mixture of TD errors `[T, B, N]` over real transitions."""
    mask = valid.unsqueeze(-1)
    num = valid.sum().clamp(min=1)
    error = error * mask
    return error.sum((0, 1)) / num, (error * error).sum((0, 1)) / num


def td_scale(moments: RunningMoments, batch: tuple[Tensor, Tensor], floor: float) -> Tensor:
    """Returns σ = max(running, batch, floor) `[N]`; running is that of earlier batches, unbiased."""
    weight = moments.weight.clamp(min=torch.finfo(moments.weight.dtype).tiny)
    running = _std(moments.mean / weight, moments.square / weight)
    return torch.maximum(running, _std(*batch)).clamp(min=floor)


def update_moments(moments: RunningMoments, batch: tuple[Tensor, Tensor], step: float) -> RunningMoments:
    """Moves the averages towards a batch; started at zero, `weight` is what they lack of one."""
    return RunningMoments(
        moments.mean + step * (batch[0] - moments.mean),
        moments.square + step * (batch[1] - moments.square),
        moments.weight + step * (1 - moments.weight),
    )


def mixture_weights(mixture: Tensor, num_mixtures: int, config: LossConfig) -> Tensor:
    """Returns the weight of each mixture's loss, η 1{j acted} + (1 − η)/N, `[T, B, N]`."""
    acted = F.one_hot(mixture.long(), num_mixtures).to(torch.float64)
    if not config.cross_mixture:
        return acted
    eta = config.behaviour_weight
    return eta * acted + (1 - eta) / num_mixtures


def distillation(
    logits: Tensor, q: Tensor, target_logits: Tensor, config: LossConfig
) -> tuple[Tensor, Tensor, Tensor]:
    """Returns cross-entropy to the ε-greedy policy of Q, where it may train, KL(π_T ‖ π); all `[T, B, N]`."""
    log_policy = F.log_softmax(logits, -1)
    epsilon, num_actions = config.distillation_epsilon, q.shape[-1]
    greedy = log_policy.gather(-1, q.argmax(-1, keepdim=True)).squeeze(-1)
    cross_entropy = -(1 - epsilon) * greedy - epsilon / num_actions * log_policy.sum(-1)
    with torch.no_grad():
        log_target = F.log_softmax(target_logits, -1)
        kl = (log_target.exp() * (log_target - log_policy)).sum(-1)
        is_near = torch.ones_like(kl) if config.kl_limit is None else (kl <= config.kl_limit).to(kl.dtype)
    return cross_entropy, is_near, kl


def policy_gain(logits: Tensor, q: Tensor, valid: Tensor, config: LossConfig) -> Tensor:
    """How much better than chance the policy inside the returns is, by Q: 0 as chance, 1 as greedy acting.

    Near 0, targets are values of wandering about, whatever acting is greedy on: nothing far away is seen.
    """
    policy, by_chance = sharpened(logits, config), q.mean(-1)
    greedy_gain = _mean(q.amax(-1) - by_chance, valid)
    gain = _mean((policy * q).sum(-1) - by_chance, valid)
    return gain / greedy_gain.clamp(min=torch.finfo(q.dtype).tiny)


def trace_priorities(error: Tensor, valid: Tensor, max_weight: float) -> Tensor:
    """Returns p max |δ| + (1 − p) mean |δ| over the real transitions of each trace, `[B]`."""
    error = error * valid
    mean = error.sum(0) / valid.sum(0).clamp(min=1)
    return max_weight * error.amax(0) + (1 - max_weight) * mean


def _taken(q: Tensor, action: Tensor) -> Tensor:
    """Picks the values of the actions taken: `[T, B, N, A]` to `[T, B, N]`."""
    index = action.long()[:, :, None, None].expand(-1, -1, q.shape[2], 1)
    return q.gather(-1, index).squeeze(-1)


def _std(mean: Tensor, square: Tensor) -> Tensor:
    return (square - mean * mean).clamp(min=0).sqrt()


def _squash(x: Tensor, config: LossConfig) -> Tensor:
    return x if config.rescale_epsilon is None else rescale(x, config.rescale_epsilon)


def _unsquash(x: Tensor, config: LossConfig) -> Tensor:
    return x if config.rescale_epsilon is None else unrescale(x, config.rescale_epsilon)


def _mean(x: Tensor, valid: Tensor) -> Tensor:
    """Averages over real transitions and mixtures."""
    mask = valid.unsqueeze(-1)
    return (x * mask).sum() / (mask.sum() * x.shape[-1]).clamp(min=1)
