"""The native engine: Algorithm 1 in C++ (`native/`), the same decisions as `recode.py`, much faster.

Two exact ways to find the atoms near an embedding work on one state. The brute one scans all
atoms for a whole batch at once; the pruned one keeps an index that follows every change and skips
what the triangle inequality rules out. Both filter in float32 with a margin and decide in float64,
so results are the same bits on either path and with any number of threads. Which path runs is
decided by counted work, never by a clock. `docs/performance.md` explains and measures.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from softcount.memory._native import Engine
from softcount.memory.config import RecodeConfig
from softcount.memory.recode import Observed
from softcount.types import Array, State

PathName = Literal["auto", "brute", "pruned"]
_PATHS = ("auto", "brute", "pruned")
_POWERS = {"inverse_square": 2, "inverse": 1, "smallest": 0}
_DTYPES = (np.float64, np.float64, np.float64, np.int64, np.bool_, np.bool_, np.int64, np.int64)


class NativeEngine:
    """Algorithm 1 in C++; the state is the one of `NumpyEngine`.

    >>> engine = NativeEngine(RecodeConfig(size=100, dim=2))
    >>> engine.observe(np.zeros((3, 2), np.float32), np.zeros((3, 2))).reward.round(2).tolist()
    [100.0, 0.7, 0.5]
    """

    def __init__(self, config: RecodeConfig, num_threads: int = 1, *, only_baseline: bool = False) -> None:
        """Makes an empty memory; `only_baseline` leaves the processor's wider instructions unused."""
        self.config = config
        self._native: Any = Engine(
            size=config.size,
            dim=config.dim,
            neighbours=config.neighbours,
            num_warmup=config.num_warmup,
            insertion_probability=config.insertion_probability,
            far_tolerance=config.far_tolerance,
            d2_step=config.d2_step,
            reward_constant=config.reward_constant,
            kernel_epsilon=config.kernel_epsilon,
            log_discount=math.log(config.embedding_discount),
            removal_power=_POWERS[config.removal],
            num_threads=num_threads,
            only_baseline=only_baseline,
        )

    @property
    def num_atoms(self) -> int:
        return int(self._native.num_atoms)

    @property
    def num_observed(self) -> int:
        return int(self._native.num_observed)

    @property
    def d2_ema(self) -> float:
        """The bias-corrected bandwidth d²_ema (Decision 2)."""
        return float(self._native.d2_ema)

    @property
    def bytes(self) -> int:
        """Bytes held, the index of the pruned path included while there is one."""
        return int(self._native.bytes)

    def observe(self, embeddings: Array, uniforms: Array) -> Observed:
        """Scores and learns rows in sequence; `uniforms` [B, 2] are their coins and victims' draws."""
        columns = [np.empty(len(embeddings), dtype) for dtype in _DTYPES]
        self._native.observe(embeddings, uniforms, *columns)
        return Observed(*columns)

    def score(self, embeddings: Array) -> Array:
        """Returns the rewards of rows under the memory as it is."""
        rewards = np.empty(len(embeddings))
        self._native.score(embeddings, rewards)
        return rewards

    def state_dict(self) -> State:
        native, n = self._native, self.num_atoms
        atoms = np.empty((n, self.config.dim), np.float32)
        log_counts, births = np.empty(n), np.empty(n, np.int64)
        native.read(atoms, log_counts, births)
        return {
            "atoms": atoms,
            "log_counts": log_counts,
            "births": births,
            "num_observed": self.num_observed,
            "log_scale": float(native.log_scale),
            "d2_biased": float(native.d2_biased),
            "d2_weight": float(native.d2_weight),
        }

    def load_state_dict(self, state: State) -> None:
        self._native.load(
            np.ascontiguousarray(state["atoms"], np.float32),
            np.ascontiguousarray(state["log_counts"], np.float64),
            np.ascontiguousarray(state["births"], np.int64),
            state["num_observed"],
            state["log_scale"],
            state["d2_biased"],
            state["d2_weight"],
        )

    def set_path(self, path: PathName) -> None:
        """Forces how atoms are found, for tests and benchmarks; results do not depend on it."""
        if path not in _PATHS:
            raise ValueError(f"path is {path!r}; expected 'auto', 'brute' or 'pruned'")
        self._native.set_path(_PATHS.index(path))

    @property
    def path(self) -> str:
        """Which path runs at the moment: "brute" or "pruned"."""
        return "pruned" if self._native.is_pruned else "brute"

    @property
    def kernels(self) -> str:
        """Which instruction set runs: "avx2" or "baseline"."""
        return str(self._native.kernels)

    def work(self) -> dict[str, int]:
        """Returns what was done since the engine was made: rows per path, atoms looked at, builds."""
        return dict(self._native.work())
