"""The knobs of RECODE's memory; defaults are the paper's Atari table."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Literal

Removal = Literal["inverse_square", "inverse", "smallest"]

PAPER_FLEET = 64
"""How many embeddings come at one time step in the paper's toys and in its runs."""


@dataclass(frozen=True, kw_only=True)
class RecodeConfig:
    """What Algorithm 1 needs to know. Each field names its symbol in the paper.

    >>> config = RecodeConfig(size=100, dim=2, count_discount=0.5, embeddings_per_step=2)
    >>> round(config.embedding_discount, 4)  # √½
    0.7071
    """

    size: int = 50_000
    """|M|, the number of atoms the memory can hold."""
    dim: int = 32
    """Dimension of the embeddings. Decision 7: not given in the paper."""
    neighbours: int = 20
    """k, how many nearest atoms the bandwidth d²_ema averages over."""
    count_discount: float = 0.999
    """γ, the factor by which all counts shrink per time step of the fleet."""
    embeddings_per_step: int | None = None
    """How many embeddings share one time step: each discounts by γ^(1/this). None is the number of
    environments of a run, 64 in a memory used alone; 1 is the letter of Algorithm 1. Decision 10."""
    insertion_probability: float = 0.05
    """η, the chance that a far embedding becomes an atom."""
    far_tolerance: float = 0.2
    """κ: farther than κ·d²_ema from every atom is "far"."""
    d2_step: float = 1e-4
    """1 − τ, the weight of the new sample in d²_ema. Decision 1."""
    reward_constant: float = 0.01
    """n₀, keeps the reward finite: at most 1/n₀."""
    kernel_epsilon: float = 1e-4
    """ε, the width of the kernel's peak relative to d²_ema. Decision 6: not given in the paper."""
    removal: Removal = "inverse_square"
    """Which atom makes room: P(j) ∝ 1/c_j², P(j) ∝ 1/c_j, or the smallest count."""
    warmup_atoms: int = 200
    """Every embedding becomes an atom until there are this many (or |M|). Decision 4."""

    def __post_init__(self) -> None:
        for name, (expected, is_valid) in _RANGES.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not is_valid(value):
                raise ValueError(f"RecodeConfig.{name} is {value!r}; expected {expected}")

    @property
    def embedding_discount(self) -> float:
        """g = γ^(1/embeddings_per_step), the discount that one embedding brings."""
        return float(self.count_discount ** (1.0 / (self.embeddings_per_step or PAPER_FLEET)))

    @property
    def num_warmup(self) -> int:
        return min(self.size, self.warmup_atoms)

    def neighbours_among(self, num_atoms: int) -> int:
        """How many nearest atoms the bandwidth uses when this many atoms exist. Decision 4."""
        if num_atoms < self.num_warmup:
            return min(self.neighbours, max(1, num_atoms // 10))
        return min(self.neighbours, num_atoms)


MOST = 10**9  # slots and dimensions are 32 bits wide in the native engine


def _is_whole(least: int) -> Callable[[object], bool]:
    return lambda value: isinstance(value, int) and least <= value <= MOST


def _is_number(low: float, high: float, *, open_low: bool = False) -> Callable[[object], bool]:
    def is_valid(value: object) -> bool:
        if not isinstance(value, int | float) or not math.isfinite(value):
            return False
        return (low < value if open_low else low <= value) and value <= high

    return is_valid


WHOLE = f"a whole number of at least 1 and at most {MOST:,}"
_RANGES: dict[str, tuple[str, Callable[[object], bool]]] = {
    "size": (WHOLE, _is_whole(1)),
    "dim": (WHOLE, _is_whole(1)),
    "neighbours": (WHOLE, _is_whole(1)),
    "count_discount": ("a number in (0, 1]", _is_number(0, 1, open_low=True)),
    "embeddings_per_step": (
        f"{WHOLE}, or None",
        lambda value: value is None or _is_whole(1)(value),
    ),
    "insertion_probability": ("a number in [0, 1]", _is_number(0, 1)),
    "far_tolerance": ("a finite number of at least 0", _is_number(0, math.inf)),
    "d2_step": ("a number in (0, 1]", _is_number(0, 1, open_low=True)),
    "reward_constant": ("a finite number above 0", _is_number(0, math.inf, open_low=True)),
    "kernel_epsilon": ("a finite number of at least 1e-30", _is_number(1e-30, math.inf)),
    "removal": (
        "'inverse_square', 'inverse' or 'smallest'",
        lambda value: value in ("inverse_square", "inverse", "smallest"),
    ),
    "warmup_atoms": (WHOLE, _is_whole(1)),
}
assert set(_RANGES) == {field.name for field in fields(RecodeConfig)}
