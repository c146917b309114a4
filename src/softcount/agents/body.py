"""What all agents' networks have in common: a torso, what just happened, and a recurrent core or none.

    o_t → torso ─┐
    a_{t−1}, r^e_t, r^i_{t−1} ─┴→ LSTM → features of the heads

`is_first` resets the recurrent state and blanks the three inputs from the step before,
inside the unroll, so that traces may span episodes.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import torch
from torch import Tensor, nn

from softcount.agents.lstm import ResetLstm
from softcount.agents.protocols import Inputs
from softcount.agents.returns import rescale
from softcount.torsos import TorsoChoice, encode, make_torso
from softcount.torsos.actions import ActionCoding
from softcount.types import ActionSpec, ObservationSpec, Sequence

Core: TypeAlias = Literal["lstm", "none"]


class RecurrentBody(nn.Module):
    """Torso and core; `num_features` is what comes out of them.

    >>> from softcount.types import ArraySpec, DiscreteActions
    >>> body = RecurrentBody(ArraySpec((3,), "float32"), DiscreteActions(4), "mlp", "lstm", 8)
    >>> zeros = torch.zeros(5, 1)
    >>> inputs = Inputs(torch.zeros(5, 1, 3), zeros.long(), zeros, zeros, zeros.bool())
    >>> tuple(body.unroll(inputs, body.initial_state(1))[0].shape)
    (5, 1, 8)
    """

    def __init__(
        self,
        observation_spec: ObservationSpec,
        action_spec: ActionSpec,
        torso: TorsoChoice,
        core: Core,
        core_size: int,
    ) -> None:
        super().__init__()
        if core not in ("lstm", "none"):
            raise ValueError(f"core is {core!r}; expected 'lstm' or 'none'")
        self.coding = ActionCoding(action_spec)
        self.torso = make_torso(torso, observation_spec)
        self.num_features = self.torso.out_features
        self.core: ResetLstm | None = None
        if core == "lstm":
            self.core = ResetLstm(self.num_features + self.coding.num_inputs + 2, core_size)
            self.num_features = core_size

    def initial_state(self, batch: int) -> tuple[Tensor, ...]:
        """Returns the recurrent state at the start: (hidden, cell), each `[B, core_size]`, or `()`."""
        return () if self.core is None else self.core.initial_state(batch)

    def unroll(
        self, inputs: Inputs, state: tuple[Tensor, ...], generator: torch.Generator | None = None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Features `[T, B, num_features]`; `generator` draws a mask of stochastic depth for each trace."""
        features = encode(self.torso, inputs.observation, generator)
        if self.core is None:
            return features, state
        parts = (features, previous(inputs, self.coding))
        hidden, state = self.core(torch.cat(parts, -1), state, inputs.is_first)
        return hidden, state


def previous(inputs: Inputs, coding: ActionCoding) -> Tensor:
    """Returns a_{t−1} as a vector, r^e_t and r^i_{t−1}, all blank on FIRST rows, `[T, B, A + 2]`.

    Rewards pass through the squashing of `rescale`, so that scores of thousands fit a gate.
    """
    action = coding.vectors(inputs.prev_action)
    rewards = rescale(torch.stack((inputs.reward, inputs.prev_intrinsic), -1).to(torch.float32))
    return torch.cat((action, rewards), -1).masked_fill(inputs.is_first.unsqueeze(-1), 0.0)


def inputs_of(sequence: Sequence[Tensor], *extras: str) -> Inputs:
    """Picks what a network sees out of a batch of traces: always the stored rewards.

    Refuses traces that lack `extras`, further columns that the agent will read.
    """
    steps = sequence.steps
    needed = sorted(("prev_intrinsic", *extras))
    if not set(needed) <= set(steps.extras):
        expected = " and ".join(map(repr, needed))
        raise ValueError(f"steps carry the extras {sorted(steps.extras)}; expected {expected}")
    prev_intrinsic = steps.extras["prev_intrinsic"]
    return Inputs(steps.observation, steps.prev_action, steps.reward, prev_intrinsic, steps.is_first)
