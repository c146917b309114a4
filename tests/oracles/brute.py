"""What a memory's state says of embeddings, by looking at every atom, in NumPy float64."""

from __future__ import annotations

import numpy as np


def squared_distances(state, embeddings):
    """Of each embedding to each atom, `[B, len]`."""
    atoms, rows = (np.asarray(x, np.float64) for x in (state["atoms"], embeddings))
    total = np.zeros((len(rows), len(atoms)))
    for i in range(atoms.shape[1]):
        total += (rows[:, i, None] - atoms[:, i]) ** 2
    return total


def rewards(state, embeddings, *, kernel_epsilon, reward_constant):
    """1 / (√N + n₀), N over the atoms within the bandwidth of the state."""
    d2, bandwidth = squared_distances(state, embeddings), state["d2_biased"] / state["d2_weight"]
    counts = np.exp(np.asarray(state["log_counts"]) + state["log_scale"])
    similarity = np.where(d2 < bandwidth, kernel_epsilon / (kernel_epsilon + d2 / bandwidth), 0.0)
    return 1 / (np.sqrt(similarity @ (1 + counts)) + reward_constant)
