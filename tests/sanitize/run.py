"""Runs the memory's tests, bad inputs and many threads on an engine that was built with a sanitizer.

    python tests/sanitize/run.py FOLDER [--quick]

FOLDER holds the built module; `make sanitize` builds them and calls this. The sanitizer's runtime must be
loaded before Python (LD_PRELOAD). It ends the process with a report at the first thing it finds, so ending
well means that nothing was found.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from softcount import RecodeConfig, RecodeMemory

MODULE = "softcount.memory._native"
TESTS = Path(__file__).parents[1]
CONFIG = RecodeConfig(
    size=700, dim=5, insertion_probability=0.5, far_tolerance=0.05, warmup_atoms=300, embeddings_per_step=1
)


def use_module_of(folder: Path) -> None:
    """Lets Python find the sanitized engine in place of the installed one."""
    (path,) = folder.glob("_native.*.so")
    spec = importlib.util.spec_from_file_location(MODULE, path)
    assert spec is not None
    assert spec.loader is not None
    sys.modules[MODULE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[MODULE])


def bad_inputs(rng: np.random.Generator) -> list[object]:
    """Things that are no embeddings."""
    rows = rng.standard_normal((int(rng.integers(1, 40)), CONFIG.dim))
    spoilt = rows.copy()
    spoilt[rng.integers(len(rows)), rng.integers(CONFIG.dim)] = rng.choice([np.nan, np.inf, -np.inf, 1e39])
    return [
        spoilt,
        rows[:, :-1],
        rows[:0],
        rows[None],
        rows.astype(np.int64),
        rows + 1j,
        rows.astype(str),
        [[1.0], [1.0, 2.0]],
        None,
        float(rng.random()),
    ]


def spoilt_state(state: dict[str, object], rng: np.random.Generator) -> dict[str, object]:
    """A state in which one field is something else."""
    name = str(rng.choice(sorted(state)))
    values = [None, "text", 10**40, -1, 1.5, np.nan, np.zeros((3, 3)), np.array([1 + 1j]), [], {}]
    changed = values[int(rng.integers(len(values)))]
    return {**state, name: changed}


def fuzz(seconds: float, seed: int) -> int:
    """Gives a memory bad inputs and states among good ones; each must be refused and leave no trace."""
    rng, end, num_refused = np.random.default_rng(seed), time.monotonic() + seconds, 0
    memory = RecodeMemory(CONFIG, engine="native")
    while time.monotonic() < end:
        memory.observe(
            rng.standard_normal((int(rng.integers(1, 300)), CONFIG.dim)) * 10.0 ** rng.integers(-6, 6)
        )
        before = memory.state_dict()
        for value in bad_inputs(rng):
            for method in (memory.observe, memory.score, memory.move_atoms):
                with pytest.raises((TypeError, ValueError)):
                    method(value)
                num_refused += 1
        for _ in range(20):
            state = spoilt_state(before, rng)
            try:
                memory.load_state_dict(state)
            except ValueError:
                num_refused += 1
        memory.load_state_dict(before)
        after = memory.state_dict()
        assert all(np.array_equal(before[name], after[name]) for name in before)
    return num_refused


def hammer(seconds: float, num_threads: int) -> int:
    """Uses one memory from many threads in every way there is; returns how many calls were made."""
    memory = RecodeMemory(CONFIG, engine="native", num_threads=2)
    state, end = memory.state_dict(), time.monotonic() + seconds
    num_calls, errors = [0] * num_threads, []

    def move(rng: np.random.Generator) -> None:
        atoms = memory.atoms
        if len(atoms):
            with contextlib.suppress(ValueError):  # the memory has grown or was emptied meanwhile
                memory.move_atoms(atoms + 0.1)

    ways = [
        lambda rng: memory.observe(rng.standard_normal((50, CONFIG.dim))),
        lambda rng: memory.observe(rng.standard_normal((400, CONFIG.dim))),
        lambda rng: memory.score(rng.standard_normal((20, CONFIG.dim))),
        lambda rng: memory._engine.set_path(rng.choice(["auto", "brute", "pruned"])),
        lambda rng: (len(memory), memory.num_observed, memory.bytes, memory.d2_ema, repr(memory)),
        lambda rng: (memory.bytes, memory._engine.path, memory._engine.work()),
        lambda rng: memory.log_counts,
        lambda rng: memory.load_state_dict(state) if rng.random() < 0.2 else memory.state_dict(),
        move,
    ]

    def use(thread: int) -> None:
        rng = np.random.default_rng(thread)
        try:
            while time.monotonic() < end:
                ways[int(rng.integers(len(ways)))](rng)
                num_calls[thread] += 1
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=use, args=(i,)) for i in range(num_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    return sum(num_calls)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--quick", action="store_true", help="some tests of threads only, and seconds")
    parser.add_argument(
        "--seconds", type=float, help="of bad inputs, and of threads (default 60; 4 with --quick)"
    )
    parsed = parser.parse_args()
    seconds = parsed.seconds or (4 if parsed.quick else 60)
    use_module_of(parsed.folder)
    warnings.simplefilter("ignore")
    print(f"bad inputs: {fuzz(seconds, seed=0):,} refused", flush=True)
    print(f"threads: {hammer(seconds, num_threads=4):,} calls", flush=True)
    options = ["-q", "--capture=sys", "-p", "no:cacheprovider", "--timeout=1200"]
    tests = [str(TESTS / "memory")]
    if parsed.quick:
        tests = [str(TESTS / "memory" / "test_engine_threads.py"), "-k", "waits or whole or lose"]
    return int(pytest.main([*options, *tests]))


if __name__ == "__main__":
    sys.exit(main())
