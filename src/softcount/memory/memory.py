"""`RecodeMemory`, the face of the memory: input checks, randomness, locking, disk.

The algorithm itself is in `recode.py` (NumPy, line by line) and once more in C++
(`engine.py`); both work on the same state and make the same decisions from the same
uniforms. Everything that must not depend on the engine is here.
"""

from __future__ import annotations

import math
import os
import threading
import warnings
from dataclasses import asdict
from typing import Any, Literal, Protocol, overload

import numpy as np

from softcount import store
from softcount.memory.config import RecodeConfig
from softcount.memory.recode import NumpyEngine, Observed
from softcount.types import Array, State, load_rng, rng_state

STATE_VERSION = 1
MOST_OBSERVED = 10**18
"""Embeddings after which the counters of the engines would run over; no stream is that long."""
MOST_D2 = 1e100
"""Above every squared distance between float32 rows; larger bandwidths are not real."""
EngineName = Literal["auto", "native", "numpy"]


class Engine(Protocol):
    """What runs Algorithm 1 on a state."""

    def observe(self, embeddings: Array, uniforms: Array) -> Observed: ...
    def score(self, embeddings: Array) -> Array: ...
    def state_dict(self) -> State: ...
    def load_state_dict(self, state: State) -> None: ...
    @property
    def num_atoms(self) -> int: ...
    @property
    def num_observed(self) -> int: ...
    @property
    def d2_ema(self) -> float: ...
    @property
    def bytes(self) -> int: ...


class RecodeMemory:
    """RECODE's memory: embeddings in, rewards of Algorithm 1 out (before normalisation).

    >>> memory = RecodeMemory(RecodeConfig(size=100, dim=2), seed=0)
    >>> memory.observe([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]).round(2).tolist()
    [100.0, 0.7, 0.5]
    >>> memory.score([[5.0, 5.0]]).tolist(), len(memory)
    ([100.0], 3)
    """

    def __init__(
        self,
        config: RecodeConfig | None = None,
        *,
        seed: int = 0,
        engine: EngineName = "auto",
        num_threads: int = 1,
    ) -> None:
        self.config = config or RecodeConfig()
        if not isinstance(num_threads, int) or num_threads < 1:
            raise ValueError(f"num_threads is {num_threads!r}; expected a whole number of at least 1")
        self._engine = _make_engine(self.config, engine, num_threads)
        self._rng = np.random.default_rng(seed)
        self._lock = threading.Lock()

    @overload
    def observe(self, embeddings: Any, *, details: Literal[False] = False) -> Array: ...
    @overload
    def observe(self, embeddings: Any, *, details: Literal[True]) -> tuple[Array, Observed]: ...
    def observe(self, embeddings: Any, *, details: bool = False) -> Array | tuple[Array, Observed]:
        """Scores and learns embeddings, `(B, dim)` or `(dim,)`, rows in sequence.

        With `details=True` also returns what happened to each row. Bad input raises and
        leaves the memory as it was. Safe to call from several threads: batches are taken
        one after the other.
        """
        rows, is_single = _as_rows(embeddings, self.config.dim)
        with self._lock:
            observed = self._engine.observe(rows, self._rng.random((len(rows), 2)))
        rewards = observed.reward[0] if is_single else observed.reward
        return (rewards, observed) if details else rewards

    def score(self, embeddings: Any) -> Array:
        """Returns the reward each embedding would get now; nothing changes."""
        rows, is_single = _as_rows(embeddings, self.config.dim)
        with self._lock:
            rewards = self._engine.score(rows)
        return rewards[0] if is_single else rewards

    def move_atoms(self, atoms: Any) -> None:
        """Puts the atoms elsewhere, `(len, dim)` in the order of `atoms`; all else stays as it is."""
        rows, _ = _as_rows(atoms, self.config.dim)
        with self._lock:
            state = self._engine.state_dict()
            if len(rows) != len(state["atoms"]):
                raise ValueError(f"{len(rows)} positions were given for {len(state['atoms'])} atoms")
            self._engine.load_state_dict({**state, "atoms": rows})

    def __len__(self) -> int:
        with self._lock:
            return self._engine.num_atoms

    def __repr__(self) -> str:
        cfg = self.config
        return f"RecodeMemory({len(self)}/{cfg.size} atoms, dim {cfg.dim}, engine {self.engine!r})"

    @property
    def engine(self) -> str:
        """Which engine runs: "native" or "numpy"."""
        return "numpy" if isinstance(self._engine, NumpyEngine) else "native"

    @property
    def atoms(self) -> Array:
        """Positions m_l, `(len, dim)` float32, a copy."""
        return np.asarray(self._snapshot()["atoms"])

    @property
    def counts(self) -> Array:
        """Discounted visit counts c_l, `(len,)`; very old ones may underflow to 0, see `log_counts`."""
        return np.exp(self.log_counts)

    @property
    def log_counts(self) -> Array:
        """log c_l, `(len,)`, which never leaves floating point."""
        state = self._snapshot()
        return np.asarray(state["log_counts"] + state["log_scale"])

    @property
    def ages(self) -> Array:
        """How many embeddings ago each atom was inserted, `(len,)` int64."""
        state = self._snapshot()
        return np.asarray(state["num_observed"] - state["births"])

    @property
    def d2_ema(self) -> float:
        """d²_ema, the bias-corrected moving average of squared distances to the k nearest atoms."""
        with self._lock:
            return self._engine.d2_ema

    @property
    def num_observed(self) -> int:
        with self._lock:
            return self._engine.num_observed

    @property
    def bytes(self) -> int:
        """Bytes held by the memory, indices of the engine included."""
        with self._lock:
            return self._engine.bytes

    def state_dict(self) -> State:
        """Returns everything that must be kept to continue exactly, the same for both engines."""
        with self._lock:
            state = self._engine.state_dict()
            generator = rng_state(self._rng)
        return {
            "version": STATE_VERSION,
            "size": self.config.size,
            "dim": self.config.dim,
            **state,
            "generator": generator,
        }

    def load_state_dict(self, state: State) -> None:
        """Takes over a state of any config of equal size and dim, after checking all of it."""
        checked = _checked_state(state, self.config)
        rng = _restored_generator(state["generator"])
        with self._lock:
            self._engine.load_state_dict(checked)
            self._rng = rng

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes config and state to one file, atomically."""
        store.save(path, {"config": asdict(self.config), "state": self.state_dict()}, kind="recode-memory")

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, engine: EngineName = "auto", num_threads: int = 1
    ) -> RecodeMemory:
        """Reads a memory back; it continues as if it had never been saved."""
        content = store.load(path, kind="recode-memory")
        try:
            memory = cls(RecodeConfig(**content["config"]), engine=engine, num_threads=num_threads)
            memory.load_state_dict(content["state"])
        except (KeyError, TypeError, ValueError, MemoryError) as error:
            raise store.StoreError(f"{path} does not hold a usable memory: {error}") from error
        return memory

    def _snapshot(self) -> State:
        with self._lock:
            return self._engine.state_dict()


def _make_engine(config: RecodeConfig, name: EngineName, num_threads: int) -> Engine:
    if name not in ("auto", "native", "numpy"):
        raise ValueError(f"engine is {name!r}; expected 'auto', 'native' or 'numpy'")
    if config.size * (4 * config.dim + 16) > _bytes_of_this_machine():  # said before anything is taken
        raise MemoryError(
            f"a memory of size {config.size} and dim {config.dim} does not fit into this machine's memory"
        )
    if name == "numpy":
        return NumpyEngine(config)
    try:
        from softcount.memory.native_engine import NativeEngine
    except ImportError as error:
        if name == "native":
            raise ImportError(
                "the native engine was not built; reinstall softcount with a C++17 compiler, "
                "or use engine='numpy'"
            ) from error
        warnings.warn(
            "softcount was installed without its native engine, so the memory runs on NumPy, tens of times "
            "slower; reinstall with a C++17 compiler, or pass engine='numpy' to silence this",
            stacklevel=3,
        )
        return NumpyEngine(config)
    return NativeEngine(config, num_threads)


def _bytes_of_this_machine() -> float:
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not told on this system: then the allocation fails
        return math.inf


def _as_rows(embeddings: Any, dim: int) -> tuple[Array, bool]:
    """Returns embeddings as contiguous float32 `(B, dim)`, and whether one row came alone."""
    array = _as_array(embeddings)
    if array.dtype.kind != "f":
        raise TypeError(f"embeddings have dtype {array.dtype}; expected floating point numbers")
    if array.ndim not in (1, 2) or array.shape[-1] != dim:
        raise ValueError(f"embeddings have shape {array.shape}; expected (B, {dim}) or ({dim},)")
    rows = array.reshape(-1, dim)
    if len(rows) == 0:
        raise ValueError("embeddings are an empty batch; expected at least one row")
    with np.errstate(over="ignore"):
        single = np.ascontiguousarray(rows, np.float32)
    is_bad = ~np.isfinite(single).all(axis=1)
    if is_bad.any():
        row = int(is_bad.argmax())
        cause = "is beyond float32" if np.isfinite(rows[row]).all() else "holds NaN or infinity"
        raise ValueError(f"embeddings[{row}] {cause}; the memory is unchanged")
    return single, array.ndim == 1


def _as_array(embeddings: Any) -> Array:
    """Takes arrays of any library: `__array__`, DLPack, sequences; torch tensors without their graph."""
    if hasattr(embeddings, "detach"):
        embeddings = embeddings.detach()
    try:
        if hasattr(embeddings, "__array__") or not hasattr(embeddings, "__dlpack__"):
            return np.asarray(embeddings)
        return np.from_dlpack(embeddings)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise TypeError(
            f"embeddings of type {type(embeddings).__name__} do not turn into an array: {error}"
        ) from error


def _checked_state(state: State, config: RecodeConfig) -> State:
    """Returns a copy of the engine's part of a state; raises if anything is off."""
    missing = _STATE_KEYS - set(state)
    if missing:
        raise ValueError(f"state lacks {', '.join(sorted(missing))}")
    if state["version"] != STATE_VERSION:
        raise ValueError(f"state has version {state['version']!r}; expected {STATE_VERSION}")
    for name in ("size", "dim"):
        if state[name] != getattr(config, name):
            raise ValueError(
                f"state has {name} {state[name]}; this memory has {name} {getattr(config, name)}"
            )
    atoms = np.atleast_1d(_real_array(state, "atoms", np.float32, "f"))
    n = len(atoms)
    log_counts = _real_array(state, "log_counts", np.float64, "f")
    births = _real_array(state, "births", np.int64, "iu")
    if n > config.size or atoms.shape != (n, config.dim) or log_counts.shape != (n,) or births.shape != (n,):
        raise ValueError(
            f"state has atoms {atoms.shape}, log_counts {log_counts.shape} and births {births.shape}; "
            f"expected (n, {config.dim}), (n,) and (n,) with n <= {config.size}"
        )
    numbers = {name: _real_number(state, name) for name in ("log_scale", "d2_biased", "d2_weight")}
    if not (np.isfinite(atoms).all() and np.isfinite(log_counts).all()):
        raise ValueError("state holds NaN or infinity")
    if n and ((log_counts + numbers["log_scale"]).max() > 700 or np.abs(log_counts).max() > 1e300):
        raise ValueError("state has counts above e^700 or log counts beyond 1e300; no stream leaves such")
    if abs(numbers["log_scale"]) > 1e300:
        raise ValueError("state has a log_scale beyond 1e300; no stream leaves such")
    if numbers["d2_biased"] < 0 or not 0 <= numbers["d2_weight"] <= 1:
        raise ValueError("state has a negative d2_biased, or a d2_weight outside [0, 1]")
    if numbers["d2_biased"] > MOST_D2 * numbers["d2_weight"]:
        raise ValueError(
            f"state has a bandwidth d2_biased / d2_weight above {MOST_D2:g}; no stream leaves such"
        )
    num_observed = state["num_observed"]
    if not isinstance(num_observed, int | np.integer) or isinstance(num_observed, bool):
        raise ValueError(f"state has num_observed {num_observed!r}; expected a whole number")
    if num_observed > MOST_OBSERVED:
        raise ValueError(f"state has num_observed {num_observed:.3e}; expected at most {MOST_OBSERVED:.0e}")
    if num_observed < n or (n and (births.min() < 0 or births.max() >= num_observed)):
        raise ValueError("state has more atoms than embeddings observed, or births out of range")
    return {
        "atoms": atoms,
        "log_counts": log_counts,
        "births": births,
        "num_observed": int(num_observed),
        **numbers,
    }


def _real_array(state: State, name: str, dtype: type[np.generic], kinds: str) -> Array:
    """Returns a copy of an array of a state in the engine's type; nothing is rounded, masked or cut off."""
    value = state[name]
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"state has {name} as a masked array; expected a plain one")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"state has {name} that do not turn into an array: {error}") from error
    if array.dtype.kind not in kinds and array.size > 0:
        expected = "floating point" if kinds == "f" else "whole"
        raise ValueError(f"state has {name} of {array.dtype}; expected {expected} numbers")
    if array.dtype.kind == "u" and array.size > 0 and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"state has {name} out of range: up to {array.max()}")
    with np.errstate(over="ignore"):
        return np.array(array, dtype)


def _real_number(state: State, name: str) -> float:
    value = state[name]
    if not isinstance(value, int | float | np.integer | np.floating) or isinstance(value, bool):
        raise ValueError(f"state has {name} {value!r}; expected a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"state holds NaN or infinity: {name} is {number}")
    return number


def _restored_generator(text: str) -> np.random.Generator:
    """Returns the random generator that a state holds as JSON."""
    rng = np.random.default_rng()
    try:
        load_rng(rng, text)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        raise ValueError(f"state['generator'] is not the state of a random generator: {error}") from error
    return rng


_STATE_KEYS = {
    "version", "size", "dim", "atoms", "log_counts", "births", "num_observed",
    "log_scale", "d2_biased", "d2_weight", "generator",
}  # fmt: skip
