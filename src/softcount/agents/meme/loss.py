"""The losses of MEME as pure functions of what two networks say about a batch of traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class LossConfig:
    """Returns and losses; every mechanism can be switched off."""

    beta_max: float = 1.0
    """β_IM: weight of the intrinsic reward in the most exploring mixture."""
    discount_max: float = 0.9997
    """γ of the most exploiting mixture."""
    discount_min: float = 0.97
    """γ of the most exploring mixture; short ones (0.8) suit small mazes."""
    return_form: Literal["soft", "watkins", "peng", "retrace"] = "soft"
    """Which λ-return; see `agents.returns`."""
    trace_discount: float = 0.95
    """λ: how far returns reach beyond one step."""
    soft_tolerance: float = 0.01
    """κ: how much worse than another action the taken one may be without cutting the trace."""
    policy_temperature: float = 0.25
    """Sharpens the distilled policy inside the returns."""
    rescale_epsilon: float | None = 1e-3
    """ε of the value rescaling h; None switches it off."""
    combine: Literal["rescaled", "raw"] = "rescaled"
    """Form Q^e + β Q^i on the network's outputs, or between h^-1 and h."""
    trust_region: float | None = 2.0
    """α: mask TD errors that push further than α σ away from the target network; None: never."""
    normalise: bool = True
    """Divide TD errors by σ per mixture."""
    sigma_step: float = 0.01
    """Weight of a new batch in the running σ."""
    sigma_floor: float = 0.01
    """σ is never smaller."""
    cross_mixture: bool = True
    """Train all mixtures on every trace; off: only the one that acted."""
    behaviour_weight: float = 0.5
    """η: share of the acting mixture's loss, the rest is the mean over all mixtures."""
    distillation_weight: float = 1.0
    """Weight of the policy distillation; 0 switches it off."""
    distillation_epsilon: float = 1e-4
    """ε of the ε-greedy policy that is distilled."""
    kl_limit: float | None = 0.5
    """Do not distil where the policy is further than this from the target network's; None: always."""
    priority_max_weight: float = 0.9
    """Share of the largest |TD| in a trace's priority, the rest is the mean."""
