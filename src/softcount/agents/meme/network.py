"""The network of MEME: one recurrent body, all mixtures' values and policies in one pass.

    o_t → torso ─┐
    a_{t−1} (one-hot), r^e_t, r^i_{t−1} ─┴→ LSTM → N × dueling Q^e, N × dueling Q^i, N × π

The mixture is not an input: N sets of heads answer for all of them at once [MEME].
Torso and core are those of every agent (`agents/body.py`). Values are in rescaled space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softcount.agents.body import Core, RecurrentBody
from softcount.agents.protocols import Inputs
from softcount.torsos import TorsoChoice
from softcount.types import ActionSpec, DiscreteActions, ObservationSpec
from softcount.validation import at_least, check_fields


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """Sizes of the network; the defaults are the paper's for Atari."""

    torso: TorsoChoice = "nfnet"
    """Encoder of observations: a name or a config of `softcount.torsos`."""
    core: Core = "lstm"
    """Recurrent core, or none: then only the observation counts, for worlds that show their whole state."""
    core_size: int = 512
    """Units of the LSTM."""
    head_size: int = 512
    """Hidden units of each stream (value, advantage, policy) before its N outputs."""
    num_mixtures: int = 16
    """N: number of policies in the family."""
    policy_grad_to_torso: bool = False
    """Let the distillation loss train torso and core too."""
    value_unit: Literal["one", "running"] = "one"
    """What the value heads' outputs are multiplied by: 1 [MEME], or the running size of the targets, so that
    rewards may be of any size. Decision 152."""

    def __post_init__(self) -> None:
        check_fields(self, core_size=at_least(1), head_size=at_least(1), num_mixtures=at_least(1))


class Outputs(NamedTuple):
    """Values (in rescaled space) and policies of all mixtures, `[T, B, N, A]`."""

    q_extrinsic: Tensor
    q_intrinsic: Tensor
    logits: Tensor


class MemeNetwork(RecurrentBody):
    """Torso, core and heads.

    >>> from softcount.types import ArraySpec
    >>> config = NetworkConfig(torso="mlp", core_size=8, head_size=8, num_mixtures=2)
    >>> network = MemeNetwork(ArraySpec((3,), "float32"), DiscreteActions(4), config)
    >>> zeros = torch.zeros(5, 1)
    >>> inputs = Inputs(torch.zeros(5, 1, 3), zeros.long(), zeros, zeros, zeros.bool())
    >>> outputs, state = network(inputs, network.initial_state(1))
    >>> tuple(outputs.logits.shape)
    (5, 1, 2, 4)
    """

    value_unit: Tensor

    def __init__(
        self, observation_spec: ObservationSpec, action_spec: ActionSpec, config: NetworkConfig | None = None
    ) -> None:
        config = config or NetworkConfig()
        if not isinstance(action_spec, DiscreteActions):
            raise ValueError(f"actions are {action_spec}; MEME needs DiscreteActions")
        super().__init__(observation_spec, action_spec, config.torso, config.core, config.core_size)
        self.config = config
        self.num_actions = action_spec.num
        features = self.num_features
        size, num_mixtures = self.config.head_size, self.config.num_mixtures
        self.value_hidden = nn.Linear(features, 4 * size)
        self.value_out = nn.ModuleList(nn.Linear(size, num_mixtures) for _ in range(2))
        self.advantage_out = nn.ModuleList(nn.Linear(size, num_mixtures * self.num_actions) for _ in range(2))
        if self.config.value_unit == "running":
            self.register_buffer("value_unit", torch.ones(()))
        self.policy_hidden = nn.Linear(features, size)
        self.policy_out = nn.Linear(size, num_mixtures * self.num_actions)

    def forward(
        self, inputs: Inputs, state: tuple[Tensor, ...], generator: torch.Generator | None = None
    ) -> tuple[Outputs, tuple[Tensor, ...]]:
        """Unrolls over `[T, B]`; `generator` draws one stochastic-depth mask per trace in training."""
        features, state = self.unroll(inputs, state, generator)
        hidden = F.relu(self.value_hidden(features)).chunk(4, -1)
        q_extrinsic, q_intrinsic = (
            self._dueling(self.value_out[k](hidden[2 * k]), self.advantage_out[k](hidden[2 * k + 1]))
            for k in range(2)
        )
        return Outputs(q_extrinsic, q_intrinsic, self._logits(features)), state

    def policy(self, inputs: Inputs, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The same without the value heads, for acting: logits `[T, B, N, A]` and the new state."""
        features, state = self.unroll(inputs, state)
        return self._logits(features), state

    def _logits(self, features: Tensor) -> Tensor:
        if not self.config.policy_grad_to_torso:
            features = features.detach()
        logits = self.policy_out(F.relu(self.policy_hidden(features)))
        return torch.unflatten(logits, -1, (self.config.num_mixtures, self.num_actions))

    def _dueling(self, value: Tensor, advantage: Tensor) -> Tensor:
        advantage = advantage.unflatten(-1, (self.config.num_mixtures, self.num_actions))
        q = value.unsqueeze(-1) + advantage - advantage.mean(-1, keepdim=True)
        return q if self.config.value_unit == "one" else q * self.value_unit
