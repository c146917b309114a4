"""Prioritised replay of packed traces.

Steps are kept once, in chunks of `period` rows per environment; the trace that starts at a
chunk covers `trace_length` transitions, hence `trace_length + 1` rows, of which the last
only bootstraps. Chunks are compressed; each chunk's first row apart, because it is the
bootstrap row of an earlier trace. The agent's recurrent state is kept at every chunk start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from softcount.types import Array, ObservationSpec, Sequence, State, Step


@dataclass(frozen=True, kw_only=True)
class ReplayConfig:
    """Size, shape and schedule of the replay; the defaults are the paper's for Atari."""

    trace_length: int = 160
    """T: transitions per trace; rows are T + 1."""
    period: int = 80
    """Steps between the starts of two traces of one environment; divides `trace_length`."""
    capacity: int = 200_000
    """Largest number of traces kept; the oldest go first."""
    max_bytes: int = 8 * 2**30
    """Largest number of bytes kept (compressed); the oldest traces go first."""
    replay_ratio: float = 6.0
    """Transitions learned from per transition acted, in real steps."""
    min_traces: int = 6250
    """Learning starts when so many traces are there."""
    priority_exponent: float = 0.9
    """Sampling is proportional to priority to this power; 0 is uniform."""
    newest: int = 0
    """Up to so many traces of each batch are the newest ones that were never sampled yet."""
    compression: Literal["lz4", "none"] = "lz4"
    """Codec of observations."""


class Sample(NamedTuple):
    """A batch of traces, time-major `[T + 1, B, ...]`."""

    sequence: Sequence
    ids: Array  # [B] int64, for `reprioritise`
    probabilities: Array  # [B] float64 of having been drawn


class SequenceReplay:
    """Traces of vectorised environments, sampled by priority, restored exactly."""

    def __init__(self, config: ReplayConfig, num_envs: int, observation_spec: ObservationSpec) -> None:
        """Dtypes and shapes of actions, extras and states are learned from the first step added."""
        raise NotImplementedError

    def add(self, step: Step, state: Any, env_ids: Array | None = None) -> None:
        """Takes in one row of each environment (or of `env_ids`) and the recurrent state before it."""
        raise NotImplementedError

    @property
    def num_traces(self) -> int:
        """How many traces can be sampled."""
        raise NotImplementedError

    @property
    def num_bytes(self) -> int:
        """Bytes held by stored chunks."""
        raise NotImplementedError

    def ready(self) -> bool:
        """Says whether `min_traces` are there."""
        raise NotImplementedError

    def due(self) -> bool:
        """Says whether the replay ratio asks for another update now (and the replay is ready)."""
        raise NotImplementedError

    def sample(self, batch_size: int, rng: np.random.Generator) -> Sample:
        """Draws a batch; counts its real transitions as learned from."""
        raise NotImplementedError

    def reprioritise(self, ids: Array, priorities: Array) -> None:
        """Sets new priorities; ids that were evicted meanwhile are ignored."""
        raise NotImplementedError

    def state_dict(self) -> State:
        """Returns everything but the chunks; cuts chunks added since the last call into a new segment."""
        raise NotImplementedError

    def segments(self) -> dict[str, Callable[[], State]]:
        """Returns, by name, makers of the segments that `state_dict` refers to; they never change."""
        raise NotImplementedError

    def load_state_dict(self, state: State, segments: Mapping[str, State]) -> None:
        """Restores exactly, from a state and the segments it names."""
        raise NotImplementedError

    def metrics(self) -> dict[str, float]:
        """Returns traces, bytes, compression factor and the replay ratio reached so far."""
        raise NotImplementedError
