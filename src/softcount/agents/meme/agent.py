"""The agent: online and target network, one optimiser, one update.

`update` is section 3 of [MEME] in order: unroll both networks over a batch of packed
traces, make targets and priorities from the online values, weigh the losses over
mixtures, take one AdamW step, and every `target_update_period` updates copy online to
target. What acts is the online network (`parameters()`), greedy on what
`preferences` returns.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from softcount.agents.body import inputs_of
from softcount.agents.meme.loss import (
    Batch,
    Ladders,
    LossConfig,
    RunningMoments,
    combine_values,
    meme_loss,
)
from softcount.agents.meme.network import MemeNetwork, NetworkConfig
from softcount.agents.meme.policies import beta_ladder, discount_ladder
from softcount.agents.protocols import Inputs
from softcount.optimiser import OptimiserConfig, clip_gradients, make_optimiser
from softcount.stats import MovingAverage
from softcount.tensors import (
    load_module,
    load_optimiser,
    module_state,
    optimiser_state,
    to_arrays,
    to_tensors,
)
from softcount.types import ActionSpec, Array, ObservationSpec, Sequence, State
from softcount.validation import at_least, check_fields

UNIT_OF_SIZE = 10.0
"""A running unit is so many times the root mean square of returns: where MEME's constants and step sizes
work with a unit of 1, in small mazes with rewards of about 1, values are about a tenth."""

SMALLEST_UNIT = 1e-12
"""Values are never measured in less; without any reward their size is 0."""


@dataclass(frozen=True, kw_only=True)
class MemeConfig:
    """The whole agent; the defaults are the paper's for Atari."""

    network: NetworkConfig = field(default_factory=NetworkConfig)
    """Sizes of the network and the number of mixtures."""
    loss: LossConfig = field(default_factory=LossConfig)
    """Returns, loss terms and their switches, the ladders β and γ."""
    optimiser: OptimiserConfig = field(default_factory=OptimiserConfig)
    """Step size, weight decay, largest gradient."""
    act_on: Literal["policy", "values", "split"] = "policy"
    """What acting is greedy on: the distilled policy [MEME], which is steady; Q itself, which follows news
    faster; or Q for exploring mixtures (β ≥ β_max / 2) and the policy for exploiting ones. Decision 143."""
    target_update_period: int = 1500
    """Copy the online to the target network every so many updates."""

    def __post_init__(self) -> None:
        check_fields(self, target_update_period=at_least(1))


def preferences(
    network: MemeNetwork, inputs: Inputs, state: Any, config: MemeConfig
) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
    """Returns what each mixture's acting is greedy on, `[T, B, N, A]`, and the new recurrent state."""
    if config.act_on == "policy":
        return network.policy(inputs, state)
    outputs, state = network(inputs, state)
    beta = torch.from_numpy(beta_ladder(config.network.num_mixtures, config.loss.beta_max)).to(outputs.logits)
    values = combine_values(outputs, beta, config.loss)
    if config.act_on == "split":
        is_exploring = beta.unsqueeze(-1) >= config.loss.beta_max / 2
        values = torch.where(is_exploring, values, outputs.logits)
    return values, state


class Meme:
    """The learner's half of MEME: networks, optimiser, running statistics.

    >>> from softcount.types import ArraySpec, DiscreteActions
    >>> config = MemeConfig(network=NetworkConfig(torso="mlp", core_size=8, head_size=8, num_mixtures=2))
    >>> agent = Meme(ArraySpec((3,), "float32"), DiscreteActions(4), config, seed=1)
    >>> agent.parameters()["policy_out.weight"].shape, agent.num_updates
    ((8, 8), 0)
    """

    def __init__(
        self,
        observation_spec: ObservationSpec,
        action_spec: ActionSpec,
        config: MemeConfig | None = None,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.config = config or MemeConfig()
        self.device = device
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.online = MemeNetwork(observation_spec, action_spec, self.config.network).to(device)
            self.target = MemeNetwork(observation_spec, action_spec, self.config.network).to(device)
        self.target.load_state_dict(self.online.state_dict())
        self.target.eval().requires_grad_(False)
        self.optimiser = make_optimiser(self.online, self.config.optimiser)
        self.generator = torch.Generator().manual_seed(seed)
        num, loss = self.config.network.num_mixtures, self.config.loss
        ladders = beta_ladder(num, loss.beta_max), discount_ladder(num, loss.discount_max, loss.discount_min)
        self.ladders = Ladders(*(torch.tensor(x, dtype=torch.float32, device=device) for x in ladders))
        zeros = torch.zeros(num, device=device)
        self.moments = RunningMoments(zeros, zeros, torch.zeros((), device=device))
        self.return_size = MovingAverage(0.05)
        self.num_updates = 0

    def initial_state(self, batch: int) -> Any:
        """Returns the recurrent state of `batch` environments as arrays: (hidden, cell), or `()`."""
        return to_arrays(self.online.initial_state(batch))

    def parameters(self) -> State:
        """Returns what acts, the online network, as arrays that share its memory."""
        return module_state(self.online)

    def update(
        self, sequence: Sequence[Tensor], weights: Array | None = None, intrinsic_targets: Array | None = None
    ) -> tuple[Array, dict[str, float]]:
        """Learns from `[T+1, B]` rows (T transitions); returns priorities `[B]` and metrics.

        Rows carry `extras["mixture"]` (who acted) and `extras["prev_intrinsic"]` (r^i_{t−1} as the
        actor saw it). `weights` `[B]` are importance weights. `intrinsic_targets` `[T+1, B]` take the
        place of the stored intrinsic rewards in the targets only, dated by arrival like them.
        """
        sequence = to_tensors(sequence, self.device)
        inputs = inputs_of(sequence, "mixture")
        batch = self._batch(sequence, weights, intrinsic_targets)
        if self.num_updates == 0 and self.config.network.value_unit == "running":
            self._start_at_the_size_of(batch)
        with torch.no_grad():
            target, _ = self.target(inputs, sequence.state)
        online, _ = self.online(inputs, sequence.state, self.generator)
        loss, priorities, moments, metrics = meme_loss(
            online, target, batch, self.ladders, self.moments, self.config.loss, self.unit
        )
        self.optimiser.zero_grad()
        loss.backward()
        metrics["grad_norm"] = clip_gradients(self.online.parameters(), self.config.optimiser)
        self.optimiser.step()
        self.moments = moments
        self.num_updates += 1
        self.return_size.add(float(metrics["return_size"]))
        if self.num_updates % self.config.target_update_period == 0:
            if self.config.network.value_unit == "running":
                change_unit(self.online, self.optimiser, UNIT_OF_SIZE * self.return_size.value)
            self.target.load_state_dict(self.online.state_dict())
        return to_arrays(priorities), {name: float(x.detach()) for name, x in metrics.items()}

    def _start_at_the_size_of(self, batch: Batch) -> None:
        """Lets the first values be as large as the rewards; larger ones would take long to fade."""
        reward = batch.reward.abs() + self.config.loss.beta_max * batch.intrinsic.abs()
        size = max(UNIT_OF_SIZE * float(reward.square().mean().sqrt()), SMALLEST_UNIT)
        for network in (self.online, self.target):
            network.value_unit.fill_(size)

    @property
    def unit(self) -> float:
        """What the network's values are measured in."""
        return float(self.online.value_unit) if self.config.network.value_unit == "running" else 1.0

    def _batch(
        self, sequence: Sequence[Tensor], weights: Array | None, intrinsic_targets: Array | None
    ) -> Batch:
        steps = sequence.steps
        behaviour_prob = None
        if self.config.loss.return_form == "retrace":
            if "log_prob" not in steps.extras:
                raise ValueError("the retrace form needs extras['log_prob'] of every step")
            behaviour_prob = steps.extras["log_prob"].exp()
        if weights is None:
            weights = np.ones(steps.reward.shape[1], np.float32)
        intrinsic = (
            steps.intrinsic if intrinsic_targets is None else to_tensors(intrinsic_targets, self.device)
        )
        return Batch(
            action=steps.action,
            mixture=steps.extras["mixture"],
            reward=steps.reward,
            intrinsic=intrinsic,
            is_first=steps.is_first,
            is_last=steps.is_last,
            is_terminal=steps.is_terminal,
            weights=to_tensors(weights, self.device).to(torch.float32),
            behaviour_prob=behaviour_prob,
        )

    def state_dict(self) -> State:
        return {
            "online": module_state(self.online, copy=True),
            "target": module_state(self.target, copy=True),
            "optimiser": optimiser_state(self.optimiser),
            "moments": to_arrays(self.moments, copy=True)._asdict(),
            "generator": to_arrays(self.generator.get_state(), copy=True),
            "return_size": self.return_size.state_dict(),
            "num_updates": self.num_updates,
        }

    def load_state_dict(self, state: State) -> None:
        load_module(self.online, state["online"])
        load_module(self.target, state["target"])
        load_optimiser(self.optimiser, state["optimiser"])
        self.moments = RunningMoments(**to_tensors(state["moments"], self.device))
        self.generator.set_state(torch.from_numpy(np.array(state["generator"], np.uint8)))
        if "return_size" in state:  # not in checkpoints of older versions, which do not use it
            self.return_size.load_state_dict(state["return_size"])
        self.num_updates = int(state["num_updates"])


@torch.no_grad()
def change_unit(network: MemeNetwork, optimiser: torch.optim.Optimizer, unit: float) -> None:
    """Lets the value heads answer in another unit; what they say stays the same.

    Weights and biases of the last layers are divided by what the unit is multiplied with; Adam's moments
    of them follow, because their gradients grow by it.
    """
    factor = max(unit, SMALLEST_UNIT) / float(network.value_unit)
    network.value_unit *= factor
    for layer in (*network.value_out, *network.advantage_out):
        for parameter in layer.parameters():
            parameter /= factor
            moments = optimiser.state[parameter]
            moments["exp_avg"] *= factor
            moments["exp_avg_sq"] *= factor**2
