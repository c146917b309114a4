"""Distances and the similarity kernel of RECODE (Eq. 3).

    K(m, e) = 1{‖e − m‖² < d²} / (1 + ‖e − m‖² / (ε d²))

Distances are the plain sum of squared differences in float64, one dimension after
the other. The expansion ‖m‖² − 2m·e + ‖e‖² is faster and wrong: far from the origin
it cancels. The fixed order of summation makes every engine get the same bits.
"""

from __future__ import annotations

import numpy as np

from softcount.types import Array

SMALLEST_D2 = 1e-90
"""Below the square of the smallest float32 (1.4e-45²): a bandwidth down there is 0, lest ε d² underflow."""


def squared_distances(atoms: Array, e: Array) -> Array:
    """Returns ‖m_l − e‖² for all l."""
    d2 = np.zeros(len(atoms))
    for i in range(atoms.shape[1]):
        d2 += (atoms[:, i].astype(np.float64) - float(e[i])) ** 2
    return d2


def kernel(d2: Array, d2_ema: float, epsilon: float) -> Array:
    """Returns K for squared distances; with d² = 0 only exact repeats count (Decision 2)."""
    if d2_ema < SMALLEST_D2:
        return np.where(d2 == 0.0, 1.0, 0.0)
    return np.where(d2 < d2_ema, 1.0 / (1.0 + d2 / (epsilon * d2_ema)), 0.0)


def k_smallest(values: Array, k: int) -> Array:
    """Returns the k smallest values in ascending order."""
    return np.sort(np.partition(values, k - 1)[:k])
