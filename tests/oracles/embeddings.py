"""Streams of embeddings that the memory's tests run on, easy and awkward ones."""

import numpy as np


def gauss(rng, num, dim):
    return rng.standard_normal((num, dim))


def moving(rng, num, dim):
    return rng.random((num, dim)) * np.linspace(1, 10, num)[:, None]


def repeats(rng, num, dim):
    """Mostly exact repeats of a few dozen places, as from a deterministic environment."""
    return rng.standard_normal((40, dim))[rng.integers(40, size=num)]


def grid(rng, num, dim):
    """Whole numbers: equal distances everywhere."""
    return rng.integers(-3, 4, (num, dim)).astype(float)


def far_away(rng, num, dim):
    """A cloud whose distance from the origin is a thousand times its inner distances."""
    return 1000.0 + rng.standard_normal((num, dim))


def one_place(rng, num, dim):
    return np.full((num, dim), 0.1)
