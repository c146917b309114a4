"""Owns everything about learning a representation: optimiser, schedule, acting copy.

    θ ← AdamW(θ, clip(∇ loss(sequence)))          weight decay is decoupled, not on biases and gains
    acting copy: θ itself, or a slow one, θ̄ ← θ̄ + s (θ − θ̄)

Embeddings that drift make old atoms of the memory meaningless: known places are paid as
new. Remedies beside a small learning rate are the slow copy and two schedules. "saturating"
learns at full speed until action prediction is good and then in proportion to the error
that is left. Where actions are aliased no accuracy tells when it is good: there "harmonic"
lets the rate fall as 1/n.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from softcount.optimiser import OptimiserConfig, clip_gradients, make_optimiser
from softcount.representations.features import Representation
from softcount.stats import MovingAverage
from softcount.tensors import (
    load_module,
    load_optimiser,
    module_state,
    optimiser_state,
    to_arrays,
    to_tensors,
)
from softcount.types import Array, Sequence, State
from softcount.validation import at_least, between, check_fields


@dataclass(frozen=True, kw_only=True)
class TrainerConfig:
    """How a representation learns; defaults are the paper's Atari table."""

    optimiser: OptimiserConfig = OptimiserConfig(learning_rate=6e-4)
    """Step size and weight decay ("Embedding Adam Learning Rate", "Embedding Weight Decay")."""
    update_every: int = 1
    """Learn from every n-th sequence that `update` is given."""
    schedule: Literal["constant", "linear", "saturating", "harmonic"] = "constant"
    """Learning rate: as it is, falling to 0 over `total_updates`, slowed by accuracy, or falling as 1/n."""
    total_updates: int = 100_000
    """When the linear schedule reaches 0."""
    saturation: float = 0.9
    """Accuracy from which "saturating" slows down: rate × (1 − accuracy) / (1 − this)."""
    full_updates: int = 1000
    """Updates at the full rate under "harmonic"; then the n-th update has the share this / n of it."""
    rate_floor: float = 0.05
    """Smallest share of the learning rate under "saturating" and "harmonic"."""
    acting: Literal["latest", "slow"] = "latest"
    """Which parameters embed for the memory. Decision 45."""
    slow_step: float = 0.005
    """s, the share by which the slow copy follows each update."""
    slow_power: float = 1.0
    """p: until its share has fallen to s it is p / (n + p), a mean in which update i weighs about i^(p−1)."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            update_every=at_least(1),
            total_updates=at_least(1),
            saturation=between(0, 1, "[)"),
            full_updates=at_least(1),
            rate_floor=between(0, 1),
            slow_step=between(0, 1, "(]"),
            slow_power=at_least(1),
        )


class RepresentationTrainer:
    """Learns from sequences and says what the acting side should embed with.

    >>> from softcount.representations.compose import Function
    >>> trainer = RepresentationTrainer(Function(lambda x: x, dim=2))
    >>> trainer.num_updates, trainer.acting_state()
    (0, {})
    """

    def __init__(self, representation: Representation, config: TrainerConfig | None = None) -> None:
        if not isinstance(representation, Representation):
            raise TypeError(f"{type(representation).__name__} is no Representation; derive it from that")
        self.representation = representation
        self.config = config or TrainerConfig()
        self.num_calls = 0
        self.num_updates = 0
        self.accuracy = MovingAverage(0.01)
        self._learned = [(name, p) for name, p in representation.named_parameters() if p.requires_grad]
        self.optimiser = make_optimiser(self.representation, self.config.optimiser) if self._learned else None
        self.slow = (
            {name: p.detach().clone() for name, p in self._learned} if self.config.acting == "slow" else {}
        )

    def update(self, sequence: Sequence[Any]) -> dict[str, float]:
        """Takes one optimiser step on a sequence `[T, B, ...]` of arrays or tensors; returns its metrics.

        Returns an empty dict for sequences skipped by `update_every`, or if nothing learns.
        """
        self.num_calls += 1
        if self.optimiser is None or self.num_calls % self.config.update_every:
            return {}
        parameters = [p for _, p in self._learned]
        self.representation.train()
        loss, metrics = self.representation.loss(to_tensors(sequence, parameters[0].device))
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = clip_gradients(parameters, self.config.optimiser)
        rate = self.config.optimiser.learning_rate * self.rate_factor()
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        self.num_updates += 1
        self.representation.after_update()
        self._follow()
        self.representation.eval()
        numbers = {name: float(value) for name, value in metrics.items()}
        accuracy = next((x for name, x in numbers.items() if name.endswith("accuracy")), None)
        if accuracy is not None:
            self.accuracy.add(accuracy)
        return {**numbers, "gradient_norm": float(norm), "learning_rate": rate}

    @property
    def needs_statistics(self) -> bool:
        """Whether `learn_statistics` should be shown everything that was seen before the first update."""
        return self.representation.needs_statistics

    def learn_statistics(self, observation: Any) -> None:
        """Lets the representation take observations `[N, ...]` into its statistics."""
        device = self._learned[0][1].device
        self.representation.learn_statistics(to_tensors(observation, device))

    def surprise(self, sequence: Sequence[Any]) -> Array:
        """How surprised the representation is by a sequence, as it is now and as it acts, `[T, B]`."""
        self.representation.eval()
        surprise = self.representation.surprise(to_tensors(sequence, self._learned[0][1].device))
        return surprise.cpu().numpy()

    def rate_factor(self) -> float:
        """The share of the learning rate that the schedule allows now."""
        cfg = self.config
        if cfg.schedule == "linear":
            return max(0.0, 1.0 - self.num_updates / cfg.total_updates)
        if cfg.schedule == "saturating" and self.accuracy.weight > 0:
            return min(1.0, max(cfg.rate_floor, (1.0 - self.accuracy.value) / (1.0 - cfg.saturation)))
        if cfg.schedule == "harmonic":
            return min(1.0, max(cfg.rate_floor, cfg.full_updates / (self.num_updates + 1)))
        return 1.0

    def acting_copy(self) -> Representation:
        """What embeds: the representation in training itself, or a copy that follows it slowly."""
        if self.config.acting == "latest":
            return self.representation.eval()
        acting = copy.deepcopy(self.representation).eval()
        acting.load_state_dict(self.acting_state())
        return acting

    def acting_state(self) -> dict[str, Tensor]:
        """A copy of what the acting side loads: buffers as they are, parameters latest or slow."""
        state = self.representation.state_dict()
        return {name: self.slow.get(name, value).detach().clone() for name, value in state.items()}

    def state_dict(self) -> State:
        """Everything needed to continue identically, as plain arrays."""
        return {
            "module": module_state(self.representation, copy=True),
            "optimiser": None if self.optimiser is None else optimiser_state(self.optimiser),
            "slow": to_arrays(self.slow, copy=True),
            "accuracy": self.accuracy.state_dict(),
            "num_calls": self.num_calls,
            "num_updates": self.num_updates,
        }

    def load_state_dict(self, state: State) -> None:
        """Takes a state back, from `state_dict` or from a file of `softcount.store`."""
        load_module(self.representation, state["module"])
        if self.optimiser is not None:
            load_optimiser(self.optimiser, state["optimiser"])
        for name, value in self.slow.items():
            value.copy_(torch.as_tensor(np.array(state["slow"][name])))
        self.accuracy.load_state_dict(state["accuracy"])
        self.num_calls, self.num_updates = int(state["num_calls"]), int(state["num_updates"])

    def _follow(self) -> None:
        """Moves the slow copy; at first it is a mean of all updates, so that it forgets the start soon."""
        power = self.config.slow_power
        step = max(self.config.slow_step, power / (self.num_updates + power))
        if self.slow:
            for name, parameter in self._learned:
                self.slow[name].lerp_(parameter.detach(), step)
