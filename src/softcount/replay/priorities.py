"""Sampling in proportion to priorities: a sum tree in one NumPy array.

Leaf weights sit in the lower half, every inner node is the sum of its two children and is
always recomputed from them, never corrected by differences: the tree is a function of its
leaves alone, so a restored one draws the same leaves to the last bit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from softcount.types import Array


class SumTree:
    """Draws leaves with probability proportional to their weight, in O(log n), many at once.

    >>> tree = SumTree(4)
    >>> tree.set([0, 2], [1.0, 3.0])
    >>> tree.find([0.5, 1.5, 3.9]).tolist(), tree.total
    ([0, 2, 2], 4.0)
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"size is {size}; expected at least 1")
        self.size = size
        self.depth = max(size - 1, 0).bit_length()
        self.first_leaf = 1 << self.depth
        self.nodes = np.zeros(2 * self.first_leaf)  # node 1 is the root, node n has 2n and 2n + 1

    @property
    def total(self) -> float:
        """The sum of all weights."""
        return float(self.nodes[1])

    def weights(self, leaves: npt.ArrayLike) -> Array:
        """Returns the weights of leaves."""
        return self.nodes[self.first_leaf + np.asarray(leaves, np.int64)]

    def set(self, leaves: npt.ArrayLike, weights: npt.ArrayLike) -> None:
        """Sets weights; of a leaf named twice the last one counts."""
        leaves = np.asarray(leaves, np.int64)
        if leaves.size == 0:
            return
        if leaves.min() < 0 or leaves.max() >= self.size:
            raise IndexError(f"leaves {leaves.min()} to {leaves.max()}; expected 0 to {self.size - 1}")
        nodes = self.first_leaf + leaves
        self.nodes[nodes] = weights
        for _ in range(self.depth):
            nodes = np.unique(nodes >> 1) if len(nodes) > 1 else nodes >> 1
            self.nodes[nodes] = self.nodes[2 * nodes] + self.nodes[2 * nodes + 1]

    def find(self, prefixes: npt.ArrayLike) -> Array:
        """Returns for each prefix in [0, total) the leaf where the running sum of weights passes it."""
        rest = np.array(prefixes, np.float64)
        node = np.ones(rest.shape, np.int64)
        for _ in range(self.depth):
            left = 2 * node
            weight = self.nodes[left]
            # An empty right side is never entered, even if rounding leaves a rest beyond the left one.
            goes_right = (rest >= weight) & (self.nodes[left + 1] > 0)
            rest = np.where(goes_right, rest - weight, rest)
            node = left + goes_right
        return node - self.first_leaf

    def sample(self, num: int, rng: np.random.Generator) -> Array:
        """Draws `num` leaves, one from each of as many equal parts of the total (stratified)."""
        if not self.total > 0:
            raise ValueError("nothing to sample: all weights are zero")
        return self.find((np.arange(num) + rng.random(num)) * (self.total / num))


def importance_weights(probabilities: Array, num: int, exponent: float) -> Array:
    """Returns (num · p)^−exponent, divided by the largest of the batch, float32.

    >>> importance_weights(np.array([0.1, 0.4]), 10, 0.5).tolist()
    [1.0, 0.5]
    """
    weights = (num * np.asarray(probabilities, np.float64)) ** -exponent
    return np.asarray(weights / weights.max(), np.float32)
