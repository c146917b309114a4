"""The learner: policy and representation learn from one batch, each with its own optimiser.

Publishes parameters for the inference worker and priorities for the replay, the only two
messages that flow backwards. A bonus whose reward needs a sequence (BYOL-Explore) is
paid here, on the batch, by the world model as the batch found it: one that has just
learned from the batch is no longer surprised by it. All others arrive paid.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from torch import Tensor

from softcount.agents.protocols import Agent
from softcount.bonuses.terminal import TerminalObservations, observe
from softcount.representations.trainer import RepresentationTrainer
from softcount.roles.inference import Parameters
from softcount.tensors import to_arrays, to_tensors
from softcount.types import Array, Bonus, Features, Observation, Sample, Sequence, State


class Update(NamedTuple):
    """What one batch taught."""

    ids: Array
    priorities: Array | None  # None where batches have no order
    metrics: dict[str, float]


class Learner:
    """Updates agent and representation on batches of traces; owns a bonus that is paid in learning."""

    def __init__(
        self,
        agent: Agent,
        trainer: RepresentationTrainer | None,
        *,
        bonus: Bonus | None = None,
        terminal_observations: TerminalObservations = "paid",
    ) -> None:
        self.agent, self.trainer, self.bonus = agent, trainer, bonus
        self.terminal_observations: TerminalObservations = terminal_observations

    def __call__(self, sample: Sample, intrinsic_targets: Array | None = None) -> Update:
        """Learns from a batch; `intrinsic_targets` [T+1, B] replace the stored rewards in targets."""
        sequence: Sequence[Tensor] = to_tensors(sample.sequence)
        metrics: dict[str, float] = {}
        if self.bonus is not None:
            intrinsic_targets = self._pay_sequence(sequence)
            metrics |= {f"intrinsic/{name}": x for name, x in self.bonus.metrics().items()}
        if self.trainer is not None:
            metrics |= {f"representation/{name}": x for name, x in self.trainer.update(sequence).items()}
        priorities, losses = self.agent.update(sequence, sample.weights, intrinsic_targets)
        return Update(sample.ids, priorities, metrics | {f"losses/{name}": x for name, x in losses.items()})

    def needs_statistics(self) -> bool:
        """Whether the representation is to be shown all observations there are before its first update."""
        return self.trainer is not None and self.trainer.needs_statistics

    def learn_statistics(self, observation: Observation) -> None:
        """Takes observations `[N, ...]` into the representation's statistics."""
        assert self.trainer is not None
        self.trainer.learn_statistics(observation)

    def parameters(self) -> Parameters:
        """Returns what should act from now on."""
        representation = None if self.trainer is None else to_arrays(dict(self.trainer.acting_state()))
        return Parameters(self.agent.parameters(), representation)

    def _pay_sequence(self, sequence: Sequence[Tensor]) -> Array:
        """Pays every row of the batch for the surprise of arriving there, `[T+1, B]`.

        Nothing in a trace predicts its row 0: like a first observation it is not paid and not counted.
        """
        assert self.trainer is not None
        assert self.bonus is not None
        surprise = self.trainer.surprise(sequence)
        steps = sequence.steps
        is_unpredicted = steps.is_first.numpy().copy()
        is_unpredicted[0] = True
        env_ids = np.broadcast_to(np.arange(surprise.shape[1]), surprise.shape).ravel()
        paid = observe(
            self.bonus,
            Features(surprise=surprise.ravel()),
            env_ids,
            is_unpredicted.ravel(),
            steps.is_terminal.numpy().ravel(),
            self.terminal_observations,
            steps.extras["task"].numpy().ravel() if "task" in steps.extras else None,
        )
        return paid.reshape(surprise.shape)

    def state_dict(self) -> State:
        return {
            "agent": self.agent.state_dict(),
            "trainer": None if self.trainer is None else self.trainer.state_dict(),
            "bonus": None if self.bonus is None else self.bonus.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        self.agent.load_state_dict(state["agent"])
        if self.trainer is not None:
            self.trainer.load_state_dict(state["trainer"])
        if self.bonus is not None:
            self.bonus.load_state_dict(state["bonus"])
