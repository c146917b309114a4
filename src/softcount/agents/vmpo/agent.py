"""The agent: one network that learns, the copy of it that acts, and the multipliers of its trust regions.

`update` is the paper in order: unroll the network over traces of the policy that acted, make returns and
advantages, give the better half its weights, take one Adam step on all losses, keep the multipliers
positive. Every `target_update_period` updates what was learned acts (`parameters()`); in between,
the policy is held near the one that does.

PopArt goes around the step: returns in the old units, then new statistics, losses in the new units, the
step, and at last the output layer is rescaled. Before, that would change what the gradient is taken of.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from softcount.agents.body import inputs_of
from softcount.agents.popart import PopArtConfig, Statistics, art, in_units, of_units
from softcount.agents.vmpo.loss import Episodes, LossConfig, Terms, returns_of, vmpo_loss
from softcount.agents.vmpo.network import NetworkConfig, Outputs, VmpoNetwork
from softcount.optimiser import OptimiserConfig, clip_gradients, make_optimiser
from softcount.stats import MovingAverage
from softcount.tensors import load_module, load_optimiser, module_state, optimiser_state, to_tensors
from softcount.types import ActionSpec, Array, ObservationSpec, Sequence, State, is_transition
from softcount.validation import above, at_least, check_fields

SMALLEST_MULTIPLIER = 1e-8
"""Temperature and multipliers are put back to this after a step that went below [V-MPO]."""


@dataclass(frozen=True, kw_only=True)
class VmpoConfig:
    """All that V-MPO reads; the defaults are the V-MPO paper's where it gives them."""

    network: NetworkConfig = field(default_factory=NetworkConfig)
    """Sizes of the network."""
    loss: LossConfig = field(default_factory=LossConfig)
    """Rewards, returns and trust regions."""
    popart: PopArtConfig = field(default_factory=PopArtConfig)
    """The units of values."""
    value_per_task: bool = True
    """A value output and units for each task; otherwise one for all."""
    optimiser: OptimiserConfig = field(
        default_factory=lambda: OptimiserConfig(learning_rate=1e-4, weight_decay=0.0, max_grad_norm=None)
    )
    """Adam's settings for the network."""
    dual_learning_rate: float = 1e-4
    """Adam's step size for temperature and multipliers. Decision 243."""
    target_update_period: int = 10
    """Let what was learned act every so many updates; at least 2, or there is nothing to stay near to."""
    unroll_length: int = 80
    """Transitions of a trace."""
    batch_size: int = 128
    """Traces in a batch; divides the number of environments."""
    strict: bool = False
    """Publish what the last batch of an unroll taught before the next unroll begins: data are then as fresh
    as can be, and acting waits for learning."""
    evaluation_greedy: bool = False
    """Evaluate with the most likely actions in place of drawn ones."""

    def __post_init__(self) -> None:
        if self.target_update_period < 2:
            raise ValueError(
                f"target_update_period is {self.target_update_period}; expected at least 2: with 1 the "
                "policy that acted is the one that learns, distances are 0 and the trust region does nothing"
            )
        check_fields(self, unroll_length=at_least(2), batch_size=at_least(1), dual_learning_rate=above(0))


class Duals(nn.Module):
    """The temperature η and a multiplier α for every number that a policy's distances have, float64.

    Where tasks have temperatures or trust regions of their own there are as many of each, task after task.
    """

    def __init__(self, num_distances: dict[str, int], config: LossConfig, num_tasks: int = 1) -> None:
        super().__init__()
        num_regions = num_tasks if config.trust_region == "task" else 1
        heats = (num_tasks,) if config.temperature == "task" and num_tasks > 1 else ()
        start = {"kl": config.kl_multiplier_start}
        self.temperature = nn.Parameter(torch.full(heats, config.temperature_start, dtype=torch.float64))
        self.multipliers = nn.ParameterDict(
            {
                name: torch.full(
                    (num_regions * num,),
                    start.get(name, config.gaussian_multiplier_start),
                    dtype=torch.float64,
                )
                for name, num in num_distances.items()
            }
        )

    @torch.no_grad()
    def project(self) -> None:
        """Puts back what a step pushed below its floor; there it still has a gradient, and can return."""
        for parameter in self.parameters():
            parameter.clamp_(min=SMALLEST_MULTIPLIER)


class Vmpo:
    """The learner's half of V-MPO.

    >>> from softcount.types import ArraySpec, DiscreteActions
    >>> config = VmpoConfig(network=NetworkConfig(torso="mlp", core_size=8, head_size=8))
    >>> agent = Vmpo(ArraySpec((3,), "float32"), DiscreteActions(4), config, seed=1)
    >>> agent.parameters()["policy_out.weight"].shape, agent.num_updates
    ((4, 8), 0)
    """

    def __init__(
        self,
        observation_spec: ObservationSpec,
        action_spec: ActionSpec,
        config: VmpoConfig | None = None,
        *,
        num_tasks: int = 1,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.config = config or VmpoConfig()
        self.device = device
        num_values = num_tasks if self.config.value_per_task else 1
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.online = VmpoNetwork(
                observation_spec, action_spec, self.config.network, num_tasks=num_values
            ).to(device)
        self.distribution = self.online.distribution
        self.num_tasks = num_tasks
        self.duals = Duals(self.distribution.num_distances, self.config.loss, num_tasks).to(device)
        settings = self.config.optimiser
        self.optimiser = make_optimiser(self.online, settings)
        self.dual_optimiser = make_optimiser(
            self.duals,
            OptimiserConfig(
                learning_rate=self.config.dual_learning_rate,
                weight_decay=0.0,
                betas=settings.betas,
                epsilon=settings.epsilon,
            ),
        )
        self.published = module_state(self.online, copy=True)
        self.mean_intrinsic = MovingAverage(0.01)
        self.num_updates = 0

    def parameters(self) -> State:
        """Returns what acts: the network as it was at the last multiple of the target period."""
        return self.published

    def update(
        self, sequence: Sequence[Tensor], weights: Array | None = None, intrinsic_targets: Array | None = None
    ) -> tuple[None, dict[str, float]]:
        """Learns from `[T+1, B]` rows (T transitions), once; there is no order, hence no priorities.

        Rows carry the extras `policy` and `raw_action` (who acted, what was drawn), `prev_intrinsic`, `task`.
        `intrinsic_targets` `[T+1, B]` take the place of the stored intrinsic rewards in the returns.
        """
        if weights is not None:
            raise ValueError(
                "importance weights were given; expected none: V-MPO learns from each trace once"
            )
        sequence = to_tensors(sequence, self.device)
        outputs, _ = self.online(inputs_of(sequence), sequence.state)
        reward = self._reward(sequence, intrinsic_targets)
        terms, statistics = self._terms(sequence, outputs, reward)
        losses, psi = vmpo_loss(terms, self.duals.temperature, dict(self.duals.multipliers), self.config.loss)
        grad_norm = self._step(torch.stack([loss.double() for loss in losses.values()]).sum())
        self.online.value_out.rescale(statistics)
        self.num_updates += 1
        if self.num_updates % self.config.target_update_period == 0:
            self.published = module_state(self.online, copy=True)
        metrics = {name: loss.detach() for name, loss in losses.items()}
        metrics |= self._describe(outputs, terms, psi) | {"grad_norm": grad_norm}
        return None, {name: float(x) for name, x in metrics.items()}

    def _reward(self, sequence: Sequence[Tensor], intrinsic_targets: Array | None) -> Tensor:
        """Returns r = r^e + β r^i of arriving at each row, or with r^i above its mean."""
        steps = sequence.steps
        intrinsic = (
            steps.intrinsic if intrinsic_targets is None else to_tensors(intrinsic_targets, self.device)
        )
        intrinsic = intrinsic.double()
        if self.config.loss.intrinsic_baseline == "mean":
            is_arrival = is_transition(steps.is_first, steps.is_last)
            self.mean_intrinsic.add(float(intrinsic[1:][is_arrival].mean()))
            intrinsic = intrinsic - self.mean_intrinsic.value
        reward: Tensor = steps.reward.double() + self.config.loss.intrinsic_weight * intrinsic
        return reward

    def _terms(
        self, sequence: Sequence[Tensor], outputs: Outputs, reward: Tensor
    ) -> tuple[Terms, Statistics]:
        """Returns what the losses need, and the statistics that PopArt takes on after the step."""
        steps = sequence.steps
        config = self.config.loss
        is_valid = is_transition(steps.is_first, steps.is_last)
        task = steps.extras["task"]
        head = task if self.config.value_per_task else torch.zeros_like(task)
        old = self.online.value_out.statistics
        output = outputs.value.gather(-1, head.unsqueeze(-1)).squeeze(-1).double()
        value = of_units(output, old, head)
        episodes = Episodes(steps.is_first, steps.is_last, steps.is_terminal)
        returns = returns_of(reward, value.detach(), episodes, config)
        head, task, value, policy = head[:-1], task[:-1], value[:-1], outputs.policy[:-1]
        new = art(old, returns, head, is_valid, self.config.popart)
        unit = new.scale[head] if config.normalise_advantages else 1.0
        terms = Terms(
            output=in_units(value, new, head),
            target=in_units(returns, new, head),
            advantage=(returns - value.detach()) / unit,
            log_prob=self.distribution.log_prob(policy, steps.extras["raw_action"][:-1]),
            distances=self.distribution.distances(steps.extras["policy"][:-1], policy),
            is_valid=is_valid,
            task=task,
        )
        return terms, new

    def _step(self, loss: Tensor) -> Tensor:
        """One step of network and multipliers; returns the gradient's norm before clipping."""
        self.optimiser.zero_grad()
        self.dual_optimiser.zero_grad()
        loss.backward()
        norm = clip_gradients(self.online.parameters(), self.config.optimiser)
        self.optimiser.step()
        self.dual_optimiser.step()
        self.duals.project()
        return norm

    @torch.no_grad()
    def _describe(self, outputs: Outputs, terms: Terms, psi: Tensor) -> dict[str, Tensor]:
        """Returns what to watch; `effective_samples` is 1 where all chosen transitions weigh the same."""
        is_valid = terms.is_valid
        num_chosen = (psi > 0).sum()
        metrics = {
            "eta": self.duals.temperature.detach().mean(),
            "effective_samples": 1 / psi.square().sum() / num_chosen,
            "chosen": num_chosen / is_valid.sum(),
            "entropy": self.distribution.entropy(outputs.policy[:-1])[is_valid].mean(),
            "value_scale": self.online.value_out.scale.mean(),
            "advantage_size": terms.advantage[is_valid].abs().mean(),
        }
        for name, distance in terms.distances.items():
            metrics[f"{name}_distance"] = distance[is_valid].mean(0).sum()
            if self.num_tasks > 1:
                of_task = [distance[is_valid & (terms.task == task)] for task in range(self.num_tasks)]
                metrics[f"{name}_distance_most"] = torch.stack(
                    [own.mean(0).sum() for own in of_task if len(own)]
                ).amax()
            metrics[f"{name}_multiplier"] = self.duals.multipliers[name].detach().mean()
        return metrics

    def state_dict(self) -> State:
        return {
            "online": module_state(self.online, copy=True),
            "published": dict(self.published),
            "duals": module_state(self.duals, copy=True),
            "optimiser": optimiser_state(self.optimiser),
            "dual_optimiser": optimiser_state(self.dual_optimiser),
            "mean_intrinsic": self.mean_intrinsic.state_dict(),
            "num_updates": self.num_updates,
        }

    def load_state_dict(self, state: State) -> None:
        load_module(self.online, state["published"])  # fails here if it does not fit
        self.published = module_state(self.online, copy=True)
        load_module(self.online, state["online"])
        load_module(self.duals, state["duals"])
        load_optimiser(self.optimiser, state["optimiser"])
        load_optimiser(self.dual_optimiser, state["dual_optimiser"])
        self.mean_intrinsic.load_state_dict(state["mean_intrinsic"])
        self.num_updates = int(state["num_updates"])
