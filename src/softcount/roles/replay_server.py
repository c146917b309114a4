"""The replay server: takes rows of actors, gives weighed batches to the learner, keeps the ratio."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from softcount.replay.priorities import importance_weights
from softcount.replay.sequences import SequenceReplay
from softcount.types import Array, Observation, Sample, State, Step, load_rng, rng_state


class ReplayServer:
    """A sequence replay with its batch size and its own randomness."""

    def __init__(
        self, replay: SequenceReplay, batch_size: int, seed: int, *, importance_exponent: float = 0.0
    ) -> None:
        self.replay = replay
        self.batch_size = batch_size
        self.importance_exponent = importance_exponent
        self.rng = np.random.default_rng(seed)

    def add(self, row: Step, state: Any, env_ids: Array | None = None) -> None:
        self.replay.add(row, state, env_ids)

    def due(self) -> bool:
        """Says whether the learner should take another batch now."""
        return self.replay.due()

    def backlog(self) -> float:
        """How many batches of full traces are due by the replay ratio."""
        return self.replay.num_owed() / (self.batch_size * self.replay.config.trace_length)

    def is_strict(self) -> bool:
        """A replay's traces are old anyway."""
        return False

    def rows_to_batch(self) -> int:
        raise TypeError("environments fill a replay at their own pace; expected a source of whole unrolls")

    def is_on_policy(self) -> bool:
        """A trace is of one environment, whatever others do."""
        return False

    def sample(self) -> Sample:
        """Draws a batch; its weights undo some of the bias of drawing by priority."""
        drawn = self.replay.sample(self.batch_size, self.rng)
        weights = importance_weights(drawn.probabilities, self.replay.num_traces, self.importance_exponent)
        return Sample(drawn.sequence, drawn.ids, weights)

    def num_parts(self) -> int:
        """How many parts there are of all observations that are kept."""
        return self.replay.num_parts()

    def part(self, number: int) -> Observation:
        """Returns one part of the observations that are kept, `[N, ...]`."""
        return self.replay.part(number)

    def reprioritise(self, ids: Array, priorities: Array) -> None:
        self.replay.reprioritise(ids, priorities)

    def metrics(self) -> dict[str, float]:
        return self.replay.metrics()

    def state_dict(self) -> State:
        return {"replay": self.replay.state_dict(), "rng": rng_state(self.rng)}

    def segment_names(self) -> list[str]:
        """Names the segments that the last `state_dict` refers to."""
        return list(self.replay.segments())

    def segment(self, name: str) -> State:
        """Returns a segment; it never changes."""
        return self.replay.segments()[name]()

    def load_state_dict(self, state: State, segments: Mapping[str, State]) -> None:
        self.replay.load_state_dict(state["replay"], segments)
        load_rng(self.rng, state["rng"])
