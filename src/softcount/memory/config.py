"""The knobs of RECODE's memory; defaults are the paper's Atari table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from softcount.validation import above, at_least, between, check_fields

Removal = Literal["inverse_square", "inverse", "smallest"]

PAPER_FLEET = 64
"""How many embeddings come at one time step in the paper's toys and in its runs."""


MOST = 10**9  # slots and dimensions are 32 bits wide in the native engine


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
        number = at_least(1, at_most=MOST)
        check_fields(
            self,
            size=number,
            dim=number,
            neighbours=number,
            count_discount=between(0, 1, "(]"),
            embeddings_per_step=number,
            insertion_probability=between(0, 1),
            far_tolerance=at_least(0),
            d2_step=between(0, 1, "(]"),
            reward_constant=above(0),
            kernel_epsilon=at_least(1e-30),
            warmup_atoms=number,
        )

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
