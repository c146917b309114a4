"""The network of MEME: one recurrent body, all mixtures' values and policies in one pass.

    o_t → torso ─┐
    a_{t−1} (one-hot), r^e_t, r^i_{t−1} ─┴→ LSTM → N × dueling Q^e, N × dueling Q^i, N × π

The mixture is not an input: N sets of heads answer for all of them at once [MEME].
`is_first` resets the recurrent state and blanks the three inputs from the step before,
inside the unroll, so that traces may span episodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from softcount.torsos import TorsoChoice
from softcount.types import ActionSpec, ObservationSpec


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """Sizes of the network; the defaults are the paper's for Atari."""

    torso: TorsoChoice = "nfnet"
    """Encoder of observations: a name or a config of `softcount.torsos`."""
    core: Literal["lstm", "none"] = "lstm"
    """Recurrent core, or none for worlds that show their whole state."""
    core_size: int = 512
    """Units of the core (with `none`: nothing)."""
    head_size: int = 512
    """Hidden units of each stream (value, advantage, policy) before its N outputs."""
    num_mixtures: int = 16
    """N: number of policies in the family."""
    policy_grad_to_torso: bool = False
    """Let the distillation loss train torso and core too."""


class Inputs(NamedTuple):
    """What the network sees at each step, leaves `[T, B, ...]`."""

    observation: Any
    prev_action: Tensor  # a_{t-1}, int64
    reward: Tensor  # r^e_t
    prev_intrinsic: Tensor  # r^i_{t-1}, one step late
    is_first: Tensor  # bool


class Outputs(NamedTuple):
    """Values (in rescaled space) and policies of all mixtures, `[T, B, N, A]`."""

    q_extrinsic: Tensor
    q_intrinsic: Tensor
    logits: Tensor


class MemeNetwork(nn.Module):
    """Torso, core and heads."""

    def __init__(
        self, observation_spec: ObservationSpec, action_spec: ActionSpec, config: NetworkConfig | None = None
    ) -> None:
        super().__init__()
        raise NotImplementedError

    def initial_state(self, batch: int) -> tuple[Tensor, ...]:
        """Returns the recurrent state at the start: (hidden, cell), each `[B, core_size]`, or `()`."""
        raise NotImplementedError

    def forward(
        self, inputs: Inputs, state: tuple[Tensor, ...], generator: torch.Generator | None = None
    ) -> tuple[Outputs, tuple[Tensor, ...]]:
        """Unrolls over `[T, B]`; `generator` draws one stochastic-depth mask per trace in training."""
        raise NotImplementedError

    def policy(self, inputs: Inputs, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The same without the value heads, for acting: logits `[T, B, N, A]` and the new state."""
        raise NotImplementedError
