"""Returns of action-value learners, and the rescaled space their values live in.

Time-major; row t holds o_t, a_t and the rewards of ARRIVING at o_t  ([MEME] section 3):

    G_t = r_{t+1} + γ (1 − terminal_{t+1}) [ V_{t+1} + λ_{t+1} (G_{t+1} − B_{t+1}) ]

    soft     λ_t = λ E_{a∼π}[ 1{Q(x_t, a_t) ≥ Q(x_t, a) − κ |Q(x_t, a)|} ],  B = V    [MEME]
    watkins  λ_t = λ 1{a_t is greedy},                                       B = V
    peng     λ_t = λ,                                                        B = V
    retrace  λ_t = λ min(1, π(a_t) / μ(a_t)),                                B = Q(x_t, a_t)

with V = E_{a∼π} Q (watkins: max Q). The bracket is V_{t+1} alone where row t+1 ends an
episode or the trace: a time limit bootstraps from its own last observation. Networks
predict h(G), h(x) = sign(x)(√(|x|+1) − 1) + εx; the recursion runs on h⁻¹ of their outputs.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor

from softcount.types import is_transition

ReturnForm: TypeAlias = Literal["soft", "watkins", "peng", "retrace"]


def rescale(x: Tensor, epsilon: float = 1e-3) -> Tensor:
    """Squashes values: h(x) = sign(x)(√(|x|+1) − 1) + εx, written without cancellation near 0."""
    return x / (torch.sqrt(x.abs() + 1) + 1) + epsilon * x


def unrescale(x: Tensor, epsilon: float = 1e-3) -> Tensor:
    """Inverts `rescale` exactly.

    With u = √(|h⁻¹(x)|+1) − 1, |x| = εu² + (1+2ε)u; its root is taken in the form that adds.
    """
    b = 1 + 2 * epsilon
    u = 2 * x / (b + torch.sqrt(b * b + 4 * epsilon * x.abs()))
    return u * (u.abs() + 2)


def soft_watkins_trace(q: Tensor, q_taken: Tensor, policy: Tensor, tolerance: float) -> Tensor:
    """Returns the chance under `policy` that the taken action is as good, up to the tolerance.

    `q` and `policy` are `[..., A]`, `q_taken` `[...]`; tolerance 0 with a greedy policy is Watkins'.
    """
    is_as_good = q_taken.unsqueeze(-1) >= q - tolerance * q.abs()
    return (policy * is_as_good).sum(-1)


def lambda_returns(
    reward: Tensor, discount: Tensor, value: Tensor, trace: Tensor, baseline: Tensor | None = None
) -> Tensor:
    """Runs the recursion backwards; everything is `[T, B, N]` or broadcasts to it.

    `reward`, `discount` and `value` of index t belong to the ARRIVAL of transition t (row t+1),
    `discount` is γ or 0 after a terminal row. `trace` of index t is λ_{t+1}, 0 where row t+1
    ends an episode; the last one is never used. `baseline` is B at row t+1, V if not given.
    """
    target = reward + discount * value
    factor = (discount * trace).expand_as(target).unbind()
    correction = (value if baseline is None else baseline).expand_as(target).unbind()
    returns = list(target.unbind())
    for t in range(len(returns) - 2, -1, -1):
        returns[t] = torch.addcmul(returns[t], factor[t], returns[t + 1] - correction[t])
    return torch.stack(returns)


def soft_watkins_returns(
    *,
    q: Tensor,
    values: Tensor,
    action: Tensor,
    policy: Tensor,
    reward: Tensor,
    discount: Tensor,
    is_first: Tensor,
    is_last: Tensor,
    is_terminal: Tensor,
    form: ReturnForm = "soft",
    trace_discount: float = 0.95,
    tolerance: float = 0.01,
    behaviour_prob: Tensor | None = None,
) -> Tensor:
    """Returns G `[T, B, N]` of the T transitions between T+1 rows.

    q               `[T+1, B, N, A]` in the space where "as good" is judged (rescaled)
    values          `[T+1, B, N, A]` the same, unrescaled
    action          `[T+1, B]`; the last row's is not used, nor that of a row that ends an episode
    policy          `[T+1, B, N, A]` target policy
    reward          `[T+1, B, N]` of arriving at each row; the first row's is not used
    discount        `[N]`
    behaviour_prob  `[T+1, B]` μ(a_t), for "retrace" only
    """
    num_mixtures = q.shape[2]
    index = action[:, :, None, None].expand(-1, -1, num_mixtures, 1)
    if form == "watkins":
        policy = torch.nn.functional.one_hot(q.argmax(-1), q.shape[-1]).to(q.dtype)
    state_value = (policy * values).sum(-1)
    baseline = None
    if form == "peng":
        trace = torch.full_like(state_value, trace_discount)
    elif form == "retrace":
        if behaviour_prob is None:
            raise ValueError("the retrace form needs behaviour_prob, the probability of the actions taken")
        ratio = policy.gather(-1, index).squeeze(-1) / behaviour_prob[:, :, None]
        trace = trace_discount * ratio.clamp(max=1.0)
        baseline = values.gather(-1, index).squeeze(-1)[1:]
    elif form in ("soft", "watkins"):
        q_taken = q.gather(-1, index).squeeze(-1)
        trace = trace_discount * soft_watkins_trace(q, q_taken, policy, tolerance if form == "soft" else 0.0)
    else:
        raise ValueError(f"form is {form!r}; expected 'soft', 'watkins', 'peng' or 'retrace'")
    goes_on = torch.zeros_like(is_last[1:])
    goes_on[:-1] = is_transition(is_first, is_last)[1:]
    arrival_discount = discount * (~is_terminal[1:, :, None])
    trace = trace[1:] * goes_on[:, :, None]
    return lambda_returns(reward[1:], arrival_discount, state_value[1:], trace, baseline)
