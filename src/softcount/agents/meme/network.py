"""The network of MEME: one recurrent body, all mixtures' values and policies in one pass.

    o_t → torso ─┐
    a_{t−1} (one-hot), r^e_t, r^i_{t−1} ─┴→ LSTM → N × dueling Q^e, N × dueling Q^i, N × π

The mixture is not an input: N sets of heads answer for all of them at once [MEME].
`is_first` resets the recurrent state and blanks the three inputs from the step before,
inside the unroll, so that traces may span episodes. Values are in rescaled space.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softcount.agents.lstm import ResetLstm
from softcount.agents.protocols import Inputs
from softcount.agents.returns import rescale
from softcount.torsos import TorsoChoice, encode, make_torso
from softcount.types import ActionSpec, DiscreteActions, ObservationSpec
from softcount.validation import at_least, check_fields


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """Sizes of the network; the defaults are the paper's for Atari."""

    torso: TorsoChoice = "nfnet"
    """Encoder of observations: a name or a config of `softcount.torsos`."""
    core: Literal["lstm", "none"] = "lstm"
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


class MemeNetwork(nn.Module):
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
        super().__init__()
        self.config = config or NetworkConfig()
        if not isinstance(action_spec, DiscreteActions):
            raise ValueError(f"actions are {action_spec}; MEME needs DiscreteActions")
        self.num_actions = action_spec.num
        self.torso = make_torso(self.config.torso, observation_spec)
        features = self.torso.out_features
        self.core: ResetLstm | None = None
        if self.config.core == "lstm":
            self.core = ResetLstm(features + self.num_actions + 2, self.config.core_size)
            features = self.config.core_size
        size, num_mixtures = self.config.head_size, self.config.num_mixtures
        self.value_hidden = nn.Linear(features, 4 * size)
        self.value_out = nn.ModuleList(nn.Linear(size, num_mixtures) for _ in range(2))
        self.advantage_out = nn.ModuleList(nn.Linear(size, num_mixtures * self.num_actions) for _ in range(2))
        if self.config.value_unit == "running":
            self.register_buffer("value_unit", torch.ones(()))
        self.policy_hidden = nn.Linear(features, size)
        self.policy_out = nn.Linear(size, num_mixtures * self.num_actions)

    def initial_state(self, batch: int) -> tuple[Tensor, ...]:
        """Returns the recurrent state at the start: (hidden, cell), each `[B, core_size]`, or `()`."""
        return () if self.core is None else self.core.initial_state(batch)

    def forward(
        self, inputs: Inputs, state: tuple[Tensor, ...], generator: torch.Generator | None = None
    ) -> tuple[Outputs, tuple[Tensor, ...]]:
        """Unrolls over `[T, B]`; `generator` draws one stochastic-depth mask per trace in training."""
        features, state = self._body(inputs, state, generator)
        hidden = F.relu(self.value_hidden(features)).chunk(4, -1)
        q_extrinsic, q_intrinsic = (
            self._dueling(self.value_out[k](hidden[2 * k]), self.advantage_out[k](hidden[2 * k + 1]))
            for k in range(2)
        )
        return Outputs(q_extrinsic, q_intrinsic, self._logits(features)), state

    def policy(self, inputs: Inputs, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The same without the value heads, for acting: logits `[T, B, N, A]` and the new state."""
        features, state = self._body(inputs, state, None)
        return self._logits(features), state

    def _body(
        self, inputs: Inputs, state: tuple[Tensor, ...], generator: torch.Generator | None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        features = encode(self.torso, inputs.observation, generator)
        if self.core is None:
            return features, state
        parts = (features, previous(inputs, self.num_actions))
        hidden, state = self.core(torch.cat(parts, -1), state, inputs.is_first)
        return hidden, state

    def _logits(self, features: Tensor) -> Tensor:
        if not self.config.policy_grad_to_torso:
            features = features.detach()
        logits = self.policy_out(F.relu(self.policy_hidden(features)))
        return torch.unflatten(logits, -1, (self.config.num_mixtures, self.num_actions))

    def _dueling(self, value: Tensor, advantage: Tensor) -> Tensor:
        advantage = advantage.unflatten(-1, (self.config.num_mixtures, self.num_actions))
        q = value.unsqueeze(-1) + advantage - advantage.mean(-1, keepdim=True)
        return q if self.config.value_unit == "one" else q * self.value_unit


def previous(inputs: Inputs, num_actions: int) -> Tensor:
    """Returns a_{t−1} one-hot, r^e_t and r^i_{t−1}, all blank on FIRST rows, `[T, B, A + 2]`.

    Rewards pass through the squashing of `rescale`, so that scores of thousands fit a gate.
    """
    action = F.one_hot(inputs.prev_action.long(), num_actions).to(torch.float32)
    rewards = rescale(torch.stack((inputs.reward, inputs.prev_intrinsic), -1).to(torch.float32))
    return torch.cat((action, rewards), -1).masked_fill(inputs.is_first.unsqueeze(-1), 0.0)
