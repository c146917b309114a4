"""How right are scores of places? Each measure compares what visits would be paid with true visits.

agreement     Spearman's rank correlation between the scores and 1/√(N + 1), over all places
contrast      median score of places never visited, over the median score of visited ones
overlooked    1/√N over the score, largest among visited places, in units of its median: near 1 if all
              are paid in proportion, 10 if one is paid a tenth of what it deserves
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.types import Array

SMALLEST = 1e-12
"""What a score counts as at least, where it divides."""


def agreement(scores: Any, visits: Any) -> float:
    """Returns how well scores order places by their true visits, from -1 to 1.

    >>> agreement([0.1, 0.2, 1.0], [100, 25, 0])
    1.0
    """
    return rank_correlation(scores, (np.asarray(visits) + 1.0) ** -0.5)


def contrast(scores: Any, visits: Any) -> float | None:
    """Returns how many times as much new places are paid as known ones; None without both kinds.

    >>> contrast([0.1, 0.3, 2.0], [100, 25, 0])
    10.0
    """
    scores, is_known = np.asarray(scores), np.asarray(visits) > 0
    if is_known.all() or not is_known.any():
        return None
    return float(np.median(scores[~is_known]) / max(np.median(scores[is_known]), SMALLEST))


def overlooked(scores: Any, visits: Any) -> float | None:
    """Returns how much less than its share the worst-paid visited place gets; None if none was visited.

    >>> overlooked([0.1, 0.02, 0.1, 9.0], [100, 25, 100, 0])
    10.0
    """
    scores, visits = np.asarray(scores), np.asarray(visits)
    is_known = visits > 0
    if not is_known.any():
        return None
    missing = visits[is_known] ** -0.5 / np.maximum(scores[is_known], SMALLEST)
    return float(missing.max() / np.median(missing))


def rank_correlation(x: Any, y: Any) -> float:
    """Returns Spearman's ρ; ties share their mean rank; 0 where one side is constant.

    >>> rank_correlation([1, 2, 3, 4], [10, 30, 20, 40])
    0.8
    """
    a, b = _ranks(np.asarray(x, float)), _ranks(np.asarray(y, float))
    a, b = a - a.mean(), b - b.mean()
    norm = np.sqrt((a @ a) * (b @ b))
    return round(float(a @ b / norm), 12) if norm > 0 else 0.0


def _ranks(x: Array) -> Array:
    _, index, counts = np.unique(x, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[index])
