"""NGU's episodic memory: how unlike everything seen in this episode an embedding is [NGU].

Each environment keeps the embeddings of its running episode. A new one is compared with
its k nearest among them, s₁ … s_k squared distances:

    ρ_i = max(s_i / d²_m − ξ, 0)        K_i = ε / (ρ_i + ε)
    r   = 1 / (√Σ K_i + c),  0 if √Σ K_i + c > s_max,  0 until k are stored,

then stored. d²_m is the running mean of all such s_i, which takes in the new ones before
they are divided by it, and which outlives episodes. RECODE's memory is the same idea made
life-long; the paper's MEME-EMM and MEME-NGU baselines are built on this one.

Environments are independent: one ring buffer, one d²_m each. A buffer doubles as its episode
outgrows it and is kept for the next. The search goes environment by environment, each one
vectorised over its stored rows: faster than all at once, whose temporaries leave the cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from softcount.types import Array, State
from softcount.validation import above, at_least, check_fields

FIRST_LENGTH = 256  # rows a buffer starts with


@dataclass(frozen=True, kw_only=True)
class EpisodicConfig:
    """The knobs of NGU's episodic bonus; defaults are NGU's table."""

    dim: int = 32
    """Dimension of the embeddings."""
    capacity: int = 30_000
    """How many embeddings an episode keeps; then the oldest go."""
    neighbours: int = 10
    """k, how many nearest embeddings are compared with."""
    kernel_epsilon: float = 1e-4
    """ε of the kernel."""
    cluster_distance: float = 0.008
    """ξ: relative squared distances below this count as zero."""
    similarity_constant: float = 1e-3
    """c, keeps the reward finite: at most 1/c."""
    max_similarity: float = 8.0
    """s_max: above it an embedding is familiar and pays nothing."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            dim=at_least(1),
            capacity=at_least(1),
            neighbours=at_least(1),
            kernel_epsilon=above(0),
            cluster_distance=at_least(0),
            similarity_constant=above(0),
            max_similarity=at_least(0),
        )
        if self.capacity < self.neighbours:
            raise ValueError(f"EpisodicConfig.capacity is {self.capacity}; expected at least neighbours")


class EpisodicMemory:
    """The episodic memories of many environments.

    >>> memory = EpisodicMemory(EpisodicConfig(dim=1, neighbours=2), num_envs=1)
    >>> [round(float(memory.observe([[x]], [0], [x == 0.0])[0]), 3) for x in (0.0, 1.0, 3.0, 3.0)]
    [0.0, 0.0, 60.965, 0.999]
    """

    def __init__(self, config: EpisodicConfig | None = None, num_envs: int = 1) -> None:
        self.config = config or EpisodicConfig()
        if not isinstance(num_envs, int) or isinstance(num_envs, bool) or num_envs < 1:
            raise ValueError(f"num_envs is {num_envs!r}; expected a whole number of at least 1")
        self.num_envs = num_envs
        self._rows = [np.zeros((0, self.config.dim), np.float32) for _ in range(num_envs)]  # ring buffers
        self._num_stored = np.zeros(num_envs, np.int64)  # in the running episode, also beyond capacity
        self._d2_mean = np.zeros(num_envs)
        self._d2_num = np.zeros(num_envs)  # how many distances each mean has taken in

    def observe(self, embeddings: Array, env_ids: Array, is_first: Array) -> Array:
        """Scores embeddings `[B, dim]`, then stores them; rows with `is_first` start an episode.

        An environment may appear in a batch once.
        """
        e, ids = self._checked(embeddings, env_ids)
        starts = np.asarray(is_first, bool)
        if starts.shape != ids.shape:
            raise ValueError(f"is_first has shape {starts.shape}; expected {ids.shape}")
        if len(np.unique(ids)) != len(ids):
            raise ValueError("env_ids name an environment twice; expected each at most once in a batch")
        self._num_stored[ids[starts]] = 0
        d2, is_ready = self._nearest(e, ids)
        self._update_means(ids[is_ready], d2[is_ready])
        rewards = self._rewards(d2, ids, is_ready)
        self._store(e, ids)
        return rewards

    def score(self, embeddings: Array, env_ids: Array) -> Array:
        """Returns the reward each embedding would get now in its environment; nothing changes."""
        e, ids = self._checked(embeddings, env_ids)
        d2, is_ready = self._nearest(e, ids)
        num = self._d2_num[ids] + self.config.neighbours
        means = self._d2_mean[ids] + (np.where(is_ready[:, None], d2, 0.0).mean(1) - self._d2_mean[ids]) * (
            self.config.neighbours / num
        )
        return self._rewards(d2, ids, is_ready, means)

    def reset(self, env_ids: Array | None = None) -> None:
        """Forgets the running episode of some environments, or of all; d²_m stays."""
        self._num_stored[slice(None) if env_ids is None else np.asarray(env_ids, np.int64)] = 0

    @property
    def num_stored(self) -> Array:
        """How many embeddings each environment's episode holds, `[num_envs]`."""
        return np.minimum(self._num_stored, self.config.capacity)

    @property
    def d2_mean(self) -> Array:
        """d²_m of each environment, `[num_envs]`; 0 before the first distances."""
        return self._d2_mean.copy()

    @property
    def bytes(self) -> int:
        return sum(rows.nbytes for rows in self._rows) + 3 * self._d2_mean.nbytes

    def state_dict(self) -> State:
        """Returns all running episodes and means."""
        return {
            "rows": [rows[:num].copy() for rows, num in zip(self._rows, self.num_stored)],
            "num_stored": self._num_stored.copy(),
            "d2_mean": self._d2_mean.copy(),
            "d2_num": self._d2_num.copy(),
        }

    def load_state_dict(self, state: State) -> None:
        """Takes over a state of as many environments and equal dim and capacity."""
        rows = [np.array(part, np.float32) for part in state["rows"]]
        arrays = {name: np.array(state[name], float) for name in ("num_stored", "d2_mean", "d2_num")}
        if len(rows) != self.num_envs or any(array.shape != (self.num_envs,) for array in arrays.values()):
            raise ValueError(f"state has {len(rows)} environments; this memory has {self.num_envs}")
        for i, part in enumerate(rows):
            expected = int(min(arrays["num_stored"][i], self.config.capacity)), self.config.dim
            if part.shape != expected:
                raise ValueError(f"state['rows'][{i}] has shape {part.shape}; expected {expected}")
        self._rows = rows
        self._num_stored = arrays["num_stored"].astype(np.int64)
        self._d2_mean, self._d2_num = arrays["d2_mean"], arrays["d2_num"]

    def _checked(self, embeddings: Array, env_ids: Array) -> tuple[Array, Array]:
        e, ids = np.asarray(embeddings, np.float32), np.asarray(env_ids, np.int64)
        if e.ndim != 2 or e.shape[1] != self.config.dim:
            raise ValueError(f"embeddings have shape {e.shape}; expected (B, {self.config.dim})")
        if ids.shape != e.shape[:1]:
            raise ValueError(f"env_ids have shape {ids.shape}; expected ({len(e)},)")
        if ((ids < 0) | (ids >= self.num_envs)).any():
            raise ValueError(f"env_ids lie in {ids.min()} … {ids.max()}; expected 0 … {self.num_envs - 1}")
        is_bad = ~np.isfinite(e).all(axis=1)
        if is_bad.any():
            raise ValueError(
                f"embeddings[{int(is_bad.argmax())}] holds NaN or infinity; the memory is unchanged"
            )
        return e, ids

    def _nearest(self, e: Array, ids: Array) -> tuple[Array, Array]:
        """Returns the k smallest squared distances `[B, k]` (inf where fewer are stored), and who has k."""
        k = self.config.neighbours
        num = self.num_stored[ids]
        nearest = np.full((len(e), k), np.inf)
        for row in np.flatnonzero(num >= k):
            difference = self._rows[ids[row]][: num[row]] - e[row].astype(np.float64)
            d2 = np.einsum("td,td->t", difference, difference)
            nearest[row] = np.partition(d2, k - 1)[:k]
        return nearest, num >= k

    def _update_means(self, ids: Array, d2: Array) -> None:
        """Takes k distances of each environment into its running mean."""
        k = self.config.neighbours
        self._d2_num[ids] += k
        self._d2_mean[ids] += (d2.mean(axis=1) - self._d2_mean[ids]) * k / self._d2_num[ids]

    def _rewards(self, d2: Array, ids: Array, is_ready: Array, means: Array | None = None) -> Array:
        cfg = self.config
        means = self._d2_mean[ids] if means is None else means
        scale = np.where(means > 0, means, 1.0)[:, None]  # all distances so far 0: ρ = 0
        rho = np.maximum(np.where(is_ready[:, None], d2, 0.0) / scale - cfg.cluster_distance, 0.0)
        kernel = cfg.kernel_epsilon / (rho + cfg.kernel_epsilon)
        similarity = np.sqrt(kernel.sum(axis=1)) + cfg.similarity_constant
        is_paid = is_ready & (similarity <= cfg.max_similarity)
        return np.where(is_paid, 1.0 / similarity, 0.0)

    def _store(self, e: Array, ids: Array) -> None:
        slots = self._num_stored[ids] % self.config.capacity
        for row, i, slot in zip(e, ids, slots):
            length = len(self._rows[i])
            if slot == length:
                grown = min(self.config.capacity, max(FIRST_LENGTH, 2 * length))
                self._rows[i] = np.concatenate(
                    [self._rows[i], np.zeros((grown - length, e.shape[1]), np.float32)]
                )
            self._rows[i][slot] = row
        self._num_stored[ids] += 1
