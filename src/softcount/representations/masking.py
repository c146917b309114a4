"""Coupled action-state masking: which half of each token CASM hides (§3.2, Fig. "CASM").

Token t is the pair (a_{t−1}, o_t). Exactly one of the two is hidden, never both and never
none: with the rate (0.8) the state, otherwise the action. So a hidden action always has its
result in sight, and a hidden state has the action that led to it. The first token of an
episode, and of a trace, has no action: its state is always shown. Decision 46.
"""

from __future__ import annotations

import torch
from torch import Tensor


def draw_masks(is_first: Tensor, num_masks: int, rate: float, generator: torch.Generator) -> Tensor:
    """Draws which states are hidden, `[T, B]` starts to `[num_masks, T, B]` bool; where not, the action is.

    >>> is_first = torch.tensor([[True], [False], [False], [True]])
    >>> draw_masks(is_first, 1, 1.0, torch.Generator()).flatten().tolist()
    [False, True, True, False]
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"the mask rate is {rate}; expected a number in [0, 1]")
    draws = torch.rand((num_masks, *is_first.shape), generator=generator).to(is_first.device)
    return (draws < rate) & ~starts(is_first)


def starts(is_first: Tensor) -> Tensor:
    """Tokens without an incoming action: first of an episode, or of the trace."""
    result = is_first.clone()
    result[0] = True
    return result


def couple(
    embedding: Tensor,
    action: Tensor,
    hides_state: Tensor,
    is_start: Tensor,
    hidden: tuple[Tensor, Tensor, Tensor],
) -> Tensor:
    """Builds the pairs `[N, T, B, D + A]` from states `[T, B, D]` and incoming actions `[T, B, A]`.

    `hidden` are the vectors that stand for a hidden state, a hidden action, and no action yet.
    """
    no_state, no_action, no_action_yet = hidden
    hides = hides_state[..., None]
    states = torch.where(hides, no_state, embedding)
    actions = torch.where(hides, action, no_action)
    actions = torch.where(is_start[..., None], no_action_yet, actions)
    return torch.cat((states, actions), -1)
