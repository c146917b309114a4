"""The network of V-MPO: one body, a policy, and one value per task.

    body (torso, what just happened, LSTM or none) → policy MLP → parameters of π
                                                   → value MLP  → one output per task, in PopArt's units

Policy and value train the body together. The policy starts nearly uniform, or with mean 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softcount.agents.body import Core, RecurrentBody
from softcount.agents.distributions import GaussianConfig, make_distribution
from softcount.agents.popart import PopArtHead
from softcount.agents.protocols import Inputs
from softcount.torsos import TorsoChoice
from softcount.types import ActionSpec, ObservationSpec
from softcount.validation import at_least, check_fields

POLICY_START = 0.01
"""What the last layer of the policy is multiplied with before learning."""


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """Sizes of the network."""

    torso: TorsoChoice = "nfnet-dm-hard-8"
    """Encoder of observations: a name or a config of `softcount.torsos`."""
    core: Core = "lstm"
    """Recurrent core, or none: then only the observation counts, for worlds that show their whole state."""
    core_size: int = 512
    """Units of the LSTM."""
    head_size: int = 512
    """Hidden units before the policy, and before the values."""
    gaussian: GaussianConfig = field(default_factory=GaussianConfig)
    """The policy of continuous actions."""

    def __post_init__(self) -> None:
        check_fields(self, core_size=at_least(1), head_size=at_least(1))


class Outputs(NamedTuple):
    """What the network says at each step."""

    policy: Tensor  # [T, B, P]
    value: Tensor  # [T, B, K], in the units of each task


class VmpoNetwork(RecurrentBody):
    """Body and heads.

    >>> from softcount.types import ArraySpec, DiscreteActions
    >>> config = NetworkConfig(torso="mlp", core_size=8, head_size=8)
    >>> network = VmpoNetwork(ArraySpec((3,), "float32"), DiscreteActions(4), config, num_tasks=2)
    >>> zeros = torch.zeros(5, 1)
    >>> inputs = Inputs(torch.zeros(5, 1, 3), zeros.long(), zeros, zeros, zeros.bool())
    >>> outputs, state = network(inputs, network.initial_state(1))
    >>> tuple(outputs.policy.shape), tuple(outputs.value.shape)
    ((5, 1, 4), (5, 1, 2))
    """

    def __init__(
        self,
        observation_spec: ObservationSpec,
        action_spec: ActionSpec,
        config: NetworkConfig | None = None,
        *,
        num_tasks: int = 1,
    ) -> None:
        config = config or NetworkConfig()
        distribution = make_distribution(action_spec, config.gaussian)
        super().__init__(observation_spec, action_spec, config.torso, config.core, config.core_size)
        self.distribution = distribution
        self.policy_hidden = nn.Linear(self.num_features, config.head_size)
        self.policy_out = nn.Linear(config.head_size, self.distribution.num_parameters)
        self.value_hidden = nn.Linear(self.num_features, config.head_size)
        self.value_out = PopArtHead(config.head_size, num_tasks)
        with torch.no_grad():
            for parameter in self.policy_out.parameters():
                parameter.mul_(POLICY_START)

    def forward(self, inputs: Inputs, state: tuple[Tensor, ...]) -> tuple[Outputs, tuple[Tensor, ...]]:
        """Unrolls over `[T, B]`."""
        features, state = self.unroll(inputs, state)
        value = self.value_out(F.relu(self.value_hidden(features)))
        return Outputs(self._policy(features), value), state

    def policy(self, inputs: Inputs, state: tuple[Tensor, ...]) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The same without values, for acting: `[T, B, P]` and the new state."""
        features, state = self.unroll(inputs, state)
        return self._policy(features), state

    def _policy(self, features: Tensor) -> Tensor:
        return self.distribution.policy(self.policy_out(F.relu(self.policy_hidden(features))))
