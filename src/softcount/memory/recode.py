"""RECODE, Algorithm 1: soft visitation counts from an online clustering of embeddings.

A memory of |M| atoms m_l with discounted visit counts c_l. Each embedding e is first
scored against the memory,

    N(e) = Σ_l (1 + c_l) K(m_l, e)          r = 1 / (√N(e) + n₀),

then learnt: a far one may become an atom in the place of a little-visited one, any
other pulls its nearest atom towards itself. This file is the algorithm as the paper
prints it, line numbers in the margin; it is what the native engine is tested against
and what runs where no compiler was. Without lines 3 and 4 it is the streaming
clustering of Algorithm 2 (`atoms` and `counts` are its centres and cluster sizes).

The slots in use are always 0 … n−1: insertions take empty slots first, in order, and
no slot is ever emptied again. Counts are kept as logarithms relative to one common
scale, so that discounting all of them is one addition (Decision 5).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from softcount.memory.config import RecodeConfig
from softcount.memory.kernels import k_smallest, kernel, squared_distances
from softcount.memory.removal import RULES
from softcount.types import Array, State

FOLD_BELOW = -1000.0
"""When the common log scale falls below this it is folded into the counts: keeps all digits."""


class Observed(NamedTuple):
    """What Algorithm 1 did with each embedding of a batch; arrays of length B."""

    reward: Array  # r, before normalisation
    soft_count: Array  # N(e)
    d2_nearest: Array  # ‖m_⋆ − e‖², inf while there was no atom
    nearest: Array  # ⋆, −1 while there was no atom
    is_far: Array  # ‖m_⋆ − e‖² > κ d²_ema (with the updated d²_ema)
    is_inserted: Array  # became an atom, otherwise moved atom ⋆
    slot: Array  # where it went: the new atom's slot, or ⋆
    merged_into: Array  # †, which got the removed atom's count; −1 if none was removed


class NumpyEngine:
    """Algorithm 1 in NumPy, one embedding after the other."""

    def __init__(self, config: RecodeConfig) -> None:
        self.config = config
        self.num_atoms = 0
        self.num_observed = 0
        self.atoms = np.zeros((config.size, config.dim), np.float32)
        self.log_counts = np.zeros(config.size)  # log c_l − log_scale
        self.births = np.zeros(config.size, np.int64)
        self.log_scale = 0.0
        self.d2_biased = 0.0  # moving average of the k-nearest distances, started at 0 …
        self.d2_weight = 0.0  # … and the weight it has gathered since
        self._log_discount = math.log(config.embedding_discount)

    @property
    def d2_ema(self) -> float:
        """The bias-corrected bandwidth d²_ema (Decision 2)."""
        return self.d2_biased / self.d2_weight if self.d2_weight > 0 else 0.0

    def observe(self, embeddings: Array, uniforms: Array) -> Observed:
        """Scores and learns rows in sequence; `uniforms` [B, 2] are their coins and victims' draws."""
        rows = [self._observe(e, float(u), float(v)) for e, (u, v) in zip(embeddings, uniforms, strict=True)]
        dtypes = (np.float64, np.float64, np.float64, np.int64, np.bool_, np.bool_, np.int64, np.int64)
        return Observed(*(np.array(column, dtype) for column, dtype in zip(zip(*rows), dtypes, strict=True)))

    def score(self, embeddings: Array) -> Array:
        """Returns the rewards of rows under the memory as it is."""
        atoms = self.atoms[: self.num_atoms]
        return np.array([self._reward(self._soft_count(squared_distances(atoms, e))) for e in embeddings])

    # fmt: off
    def _observe(self, e: Array, u: float, v: float) -> tuple[float | int | bool, ...]:
        """Scores an embedding, then learns from it: Algorithm 1, line by line."""
        cfg, n = self.config, self.num_atoms
        d2 = squared_distances(self.atoms[:n], e)                                 # ‖m_l − e‖², all l

        soft_count = self._soft_count(d2)                                         # L3
        reward = self._reward(soft_count)                                         # L4
        if n > 0:
            d2_near = _mean(k_smallest(d2, cfg.neighbours_among(n)))              # L5
            self.d2_biased += cfg.d2_step * (d2_near - self.d2_biased)            # L6
            self.d2_weight += cfg.d2_step * (1.0 - self.d2_weight)
        self._discount()                                                          # L7
        star = int(d2.argmin()) if n > 0 else -1                                  # L8
        d2_star = float(d2[star]) if n > 0 else math.inf
        is_far = d2_star > cfg.far_tolerance * self.d2_ema
        is_inserted = n < cfg.num_warmup or (is_far and u < cfg.insertion_probability)   # L9-10
        slot, merged_into = star, -1
        if is_inserted:
            slot, merged_into = self._make_room(v)                                # L11-13
            self._write(slot, e)                                                  # L14
        else:
            self._absorb(star, e)                                                 # L16-17
        self.num_observed += 1
        return reward, soft_count, d2_star, star, is_far, is_inserted, slot, merged_into
    # fmt: on

    def _soft_count(self, d2: Array) -> float:
        """Sums (1 + c_l) K(m_l, e) in slot order (Alg. 1, L3)."""
        weights = kernel(d2, self.d2_ema, self.config.kernel_epsilon)
        near = np.flatnonzero(weights)
        if len(near) == 0:
            return 0.0
        counts = np.exp(self.log_counts[near] + self.log_scale)
        return float(np.cumsum((1.0 + counts) * weights[near])[-1])

    def _reward(self, soft_count: float) -> float:
        return 1.0 / (math.sqrt(soft_count) + self.config.reward_constant)

    def _discount(self) -> None:
        """Multiplies all counts by the discount (L7): one addition in the log domain."""
        self.log_scale += self._log_discount
        if self.log_scale < FOLD_BELOW:
            self.log_counts[: self.num_atoms] += self.log_scale
            self.log_scale = 0.0

    def _make_room(self, v: float) -> tuple[int, int]:
        """Returns an empty slot, or removes an atom and hands its count to its nearest (L11-13)."""
        n = self.num_atoms
        if n < self.config.size:
            self.num_atoms += 1
            return n, -1
        victim = RULES[self.config.removal](self.log_counts[:n], v)
        d2 = squared_distances(self.atoms[:n], self.atoms[victim])
        d2[victim] = math.inf
        heir = int(d2.argmin()) if n > 1 else -1
        if heir >= 0:
            self.log_counts[heir] = np.logaddexp(self.log_counts[heir], self.log_counts[victim])
        return victim, heir

    def _write(self, slot: int, e: Array) -> None:
        """Makes e an atom with count 1 (L14)."""
        self.atoms[slot] = e
        self.log_counts[slot] = -self.log_scale
        self.births[slot] = self.num_observed

    def _absorb(self, star: int, e: Array) -> None:
        """Moves the nearest atom towards e and counts the visit (L16-17)."""
        log_c = float(self.log_counts[star] + self.log_scale)
        c = math.exp(log_c)
        moved = (c * self.atoms[star].astype(np.float64) + e.astype(np.float64)) / (c + 1.0)
        self.atoms[star] = moved.astype(np.float32)
        self.log_counts[star] = math.log1p(c) - self.log_scale

    def state_dict(self) -> State:
        n = self.num_atoms
        return {
            "atoms": self.atoms[:n].copy(),
            "log_counts": self.log_counts[:n].copy(),
            "births": self.births[:n].copy(),
            "num_observed": self.num_observed,
            "log_scale": self.log_scale,
            "d2_biased": self.d2_biased,
            "d2_weight": self.d2_weight,
        }

    def load_state_dict(self, state: State) -> None:
        n = len(state["atoms"])
        self.num_atoms = n
        self.atoms[:n] = state["atoms"]
        self.log_counts[:n] = state["log_counts"]
        self.births[:n] = state["births"]
        self.num_observed = state["num_observed"]
        self.log_scale = state["log_scale"]
        self.d2_biased = state["d2_biased"]
        self.d2_weight = state["d2_weight"]

    @property
    def bytes(self) -> int:
        return self.atoms.nbytes + self.log_counts.nbytes + self.births.nbytes


def _mean(ascending: Array) -> float:
    """Averages in the given order, the same in every engine."""
    return float(np.cumsum(ascending)[-1]) / len(ascending)
