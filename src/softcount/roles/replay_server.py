"""The replay server: takes rows of actors, gives batches to the learner, keeps the ratio."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from softcount.replay.sequences import Sample, SequenceReplay
from softcount.types import Array, Observation, State, Step


class ReplayServer:
    """A sequence replay with its batch size and its own randomness."""

    def __init__(self, replay: SequenceReplay, batch_size: int, seed: int) -> None:
        self.replay = replay
        self.batch_size = batch_size
        self.rng = np.random.default_rng(seed)

    def add(self, row: Step, state: Any) -> None:
        self.replay.add(row, state)

    def due(self) -> bool:
        """Says whether the learner should take another batch now."""
        return self.replay.due()

    def sample(self) -> Sample:
        return self.replay.sample(self.batch_size, self.rng)

    def observations(self) -> Iterator[Observation]:
        """Yields every observation that is kept, some at a time, `[N, ...]`."""
        return self.replay.observations()

    @property
    def num_traces(self) -> int:
        return self.replay.num_traces

    def reprioritise(self, ids: Array, priorities: Array) -> None:
        self.replay.reprioritise(ids, priorities)

    def metrics(self) -> dict[str, float]:
        return self.replay.metrics()

    def state_dict(self) -> State:
        return {"replay": self.replay.state_dict(), "rng": json.dumps(self.rng.bit_generator.state)}

    def segments(self) -> dict[str, Callable[[], State]]:
        return self.replay.segments()

    def load_state_dict(self, state: State, segments: Mapping[str, State]) -> None:
        self.replay.load_state_dict(state["replay"], segments)
        self.rng.bit_generator.state = json.loads(state["rng"])
