"""The settings of a replay of traces."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from softcount.validation import above, at_least, check_fields


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

    def __post_init__(self) -> None:
        check_fields(
            self,
            trace_length=at_least(1),
            period=at_least(1),
            capacity=at_least(1),
            max_bytes=at_least(1),
            replay_ratio=above(0),
            min_traces=at_least(1),
            priority_exponent=at_least(0),
            newest=at_least(0),
        )
        if self.trace_length % self.period:
            raise ValueError(
                f"ReplayConfig.trace_length is {self.trace_length}; "
                f"expected a multiple of the period, {self.period}"
            )
        if self.min_traces > self.capacity:
            raise ValueError(
                f"ReplayConfig.min_traces is {self.min_traces}; expected 1 to the capacity of {self.capacity}"
            )
