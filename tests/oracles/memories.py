"""One small memory's config, rows for it, and when two states are the same."""

import numpy as np

from softcount import RecodeConfig

CONFIG = RecodeConfig(size=40, dim=3, neighbours=5, warmup_atoms=20, insertion_probability=0.5, d2_step=1e-2)


def same(one, other):
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name]) and type(one[name]) is type(other[name]) for name in one
    )


def rows(num=6, dim=3):
    return np.random.default_rng(7).standard_normal((num, dim))
