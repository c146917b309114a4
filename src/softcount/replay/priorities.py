"""Sampling in proportion to priorities: a sum tree in one NumPy array."""

from __future__ import annotations

from softcount.types import Array


class SumTree:
    """Draws leaves with probability proportional to their weight, in O(log n) each, vectorised.

    >>> tree = SumTree(4)
    >>> tree.set([0, 2], [1.0, 3.0])
    >>> tree.find([0.5, 1.5, 3.9]).tolist(), tree.total
    ([0, 2, 2], 4.0)
    """

    def __init__(self, size: int) -> None:
        raise NotImplementedError


def importance_weights(probabilities: Array, num: int, exponent: float) -> Array:
    """Returns (num · p)^−exponent, divided by the largest of the batch, float32."""
    raise NotImplementedError
