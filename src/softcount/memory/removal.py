"""Which atom makes room for a new one.

When Algorithm 1 inserts an embedding, one of the |M| atoms has to go. The paper
(§3, "Building the memory") compares three rules, all driven by the counts c:

    (a)  P(j) ∝ 1 / c_j²    `inverse_square`, the paper's choice (Alg. 1, L11)
    (b)  P(j) ∝ 1 / c_j     `inverse`
    (c)  j = argmin c_j     `smallest`

A rule is any function `(log_counts, u) -> index`, u uniform in [0, 1). To try
another, write it here and name it in `RULES`; the native engine knows these three.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from softcount.types import Array


def inverse_square(log_counts: Array, u: float) -> int:
    """Rule (a): little-visited atoms go first, popular ones almost never."""
    return _sample(-2.0 * log_counts, u)


def inverse(log_counts: Array, u: float) -> int:
    """Rule (b): the same preference, weaker."""
    return _sample(-log_counts, u)


def smallest(log_counts: Array, u: float) -> int:
    """Rule (c): always the atom with the smallest count; of equals the lowest slot."""
    return int(log_counts.argmin())


def _sample(log_weights: Array, u: float) -> int:
    """Draws j with P(j) ∝ exp(log_weights_j) by inverting the cumulative sum.

    Counts that were discounted for a million steps leave float64, their logs do
    not; weights are taken relative to the largest, which keeps them in (0, 1].
    """
    cumulative = np.cumsum(np.exp(log_weights - log_weights.max()))
    index = int(np.searchsorted(cumulative, u * cumulative[-1], side="right"))
    return min(index, len(cumulative) - 1)  # u·Σ may round up to Σ


Rule = Callable[[Array, float], int]
RULES: dict[str, Rule] = {"inverse_square": inverse_square, "inverse": inverse, "smallest": smallest}
