"""Times the whole exact update of the memory against a flat nearest-neighbour search alone.

    python -m benchmarks.memory [--quick] [--out results/memory/benchmark.json]

The reference is the faster of faiss's two flat-search paths, doing only its k = 20 search: the one
that ships is often not the faster one at these sizes. One thread each, CPU time; in every cell the
rivals take turns within each round, and a ratio is the median over rounds of the ratio in a round,
so that other work on the machine weighs on both. No row is used twice. Memories are filled by loading
a state drawn from the stream. Writes a JSON with all numbers and a figure of time against the number
of atoms.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import faiss
import numpy as np

from experiments.memory.streams import filled_state, make_stream
from softcount.measure.machine import processor
from softcount.memory import RecodeConfig
from softcount.memory.native_engine import NativeEngine
from softcount.memory.recode import NumpyEngine

STRUCTURED = ("walk4", "walk6", "rooms")
STREAMS = (*STRUCTURED, "gauss")
SIZES = (50_000, 200_000, 1_000_000)
BATCHES = (1, 16, 64, 256)
DIM, K = 32, 20
SEED = 1000
OTHERS = (("walk5", 7, 0.05), ("walk6", 7, 0.05), ("gauss", 0, 0.2))  # stream, seed of its map, η
SHIPPED = faiss.cvar.distance_compute_blas_threshold
FAISS_PATHS = {"direct": 1 << 30, "blas": 1}
Rows = np.ndarray[Any, Any]


def target(stream: str, size: int, batch: int) -> float | None:
    """Returns the largest time relative to faiss that is good enough, None where nothing was promised."""
    if stream == "gauss":
        return 1.1 if batch == 1 else 1.0
    if batch == 1:
        return 0.05 if size == 200_000 else None
    return {50_000: 0.25, 200_000: 0.10, 1_000_000: 0.05}[size] if batch == 64 else None


def fresh_batches(stream: str, batch: int, map_seed: int = 0) -> Iterator[Rows]:
    """Yields batches whose rows never repeat."""
    source = make_stream(stream, DIM, num_walkers=max(64, batch), seed=SEED + batch, map_seed=map_seed)
    while True:
        rows = next(source)
        for i in range(0, len(rows), batch):
            yield np.ascontiguousarray(rows[i : i + batch])


def cpu_time_per_row(call: Callable[[Rows], object], turn: Iterator[Rows], least_seconds: float) -> float:
    """Calls with batch after batch until the time suffices; returns seconds per embedding.

    Some batches are drawn at a time, while the clock stands still.
    """
    num, seconds = 0, 0.0
    while seconds < least_seconds:
        batches = [next(turn)]
        while sum(map(len, batches)) < 16:
            batches.append(next(turn))
        start = time.process_time()
        for rows in batches:
            call(rows)
        seconds += time.process_time() - start
        num += sum(map(len, batches))
    return seconds / num


def faiss_search(index: Any, threshold: int) -> Callable[[Rows], object]:
    def search(rows: Rows) -> object:
        faiss.cvar.distance_compute_blas_threshold = threshold
        return index.search(rows, K)

    return search


def observer(engine: Any, seed: int = 0) -> Callable[[Rows], object]:
    rng = np.random.default_rng(seed)
    return lambda rows: engine.observe(rows, rng.random((len(rows), 2)))


def filled(stream: str, config: RecodeConfig, map_seed: int = 0) -> tuple[Any, Any, dict[str, Any]]:
    """Returns an engine and a faiss index with the same atoms, and the state they are from."""
    state = filled_state(config, make_stream(stream, DIM, seed=2, map_seed=map_seed))
    index, engine = faiss.IndexFlatL2(DIM), NativeEngine(config)
    index.add(state["atoms"])
    engine.load_state_dict(state)
    return engine, index, state


def measure_cell(
    stream: str, batch: int, engine: Any, index: Any, rounds: int, map_seed: int = 0
) -> dict[str, Any]:
    """Times faiss's paths and the engine in turns; a faiss path 1.5 times slower than the other drops out."""
    size = engine.num_atoms
    turns = {name: fresh_batches(stream, batch, map_seed) for name in (*FAISS_PATHS, "native")}
    calls = {name: faiss_search(index, threshold) for name, threshold in FAISS_PATHS.items()}
    calls["native"] = observer(engine)
    num_warm = 0
    while num_warm < 128:  # long enough for the choice of path
        num_warm += len(calls["native"](next(turns["native"])).reward)  # type: ignore[attr-defined]
    before = engine.work()
    times: list[dict[str, float]] = []
    for _ in range(rounds):
        seconds = {name: cpu_time_per_row(call, turns[name], 0.02) for name, call in calls.items()}
        times.append(seconds)
        for name, other in (("direct", "blas"), ("blas", "direct")):
            if name in calls and other in calls and seconds[name] > 1.5 * seconds[other]:
                del calls[name]
    best = [min(seconds[name] for name in FAISS_PATHS if name in seconds) for seconds in times]
    ratio = float(np.median([seconds["native"] / b for seconds, b in zip(times, best, strict=True)]))
    goal = target(stream, size, batch)
    return {
        "stream": stream,
        "size": size,
        "batch": batch,
        "faiss_best_us": 1e6 * float(np.median(best)),
        "native_us": 1e6 * float(np.median([seconds["native"] for seconds in times])),
        "ratio": ratio,
        "target": goal,
        "met": None if goal is None else ratio <= goal,
        "path": engine.path,
        "rounds_us": [{name: 1e6 * value for name, value in seconds.items()} for seconds in times],
        **scanned(before, engine.work(), size),
        "bytes_per_atom": engine.bytes / size,
    }


def scanned(before: dict[str, int], after: dict[str, int], size: int) -> dict[str, float]:
    """Returns per embedding: the fraction of atoms looked at, and of atoms compared in all dimensions."""
    done = {name: after[name] - before[name] for name in after}
    num = done["num_rows_brute"] + done["num_rows_pruned"]
    per_atom = 1.0 / (num * size)
    return {
        "fraction_scanned": (done["num_projected"] + done["num_scanned_brute"]) * per_atom,
        "fraction_compared": (done["num_compared"] + done["num_scanned_brute"]) * per_atom,
        "insertions_into_full": done["num_heirs"] / num,
    }


def measure_rivals(stream: str, size: int, batch: int, state: dict[str, Any]) -> dict[str, Any]:
    """Times what else one might use, once around: searches alone, and Algorithm 1 in NumPy."""
    import hnswlib
    import torch

    torch.set_num_threads(1)
    atoms = state["atoms"]
    index = faiss.IndexFlatL2(DIM)
    index.add(atoms)
    table = torch.from_numpy(atoms)
    numpy = NumpyEngine(RecodeConfig(size=size, dim=DIM))
    numpy.load_state_dict(state)
    graph = hnswlib.Index("l2", DIM)
    graph.init_index(size, M=16, ef_construction=100)
    graph.set_num_threads(1)
    graph.add_items(atoms)
    graph.set_ef(50)
    calls: dict[str, Callable[[Rows], object]] = {
        "faiss_direct": faiss_search(index, FAISS_PATHS["direct"]),
        "faiss_blas": faiss_search(index, FAISS_PATHS["blas"]),
        "faiss_as_shipped": faiss_search(index, SHIPPED),
        "torch_cdist_topk": lambda rows: torch.cdist(torch.from_numpy(rows), table).topk(K, largest=False),
        "hnswlib_approximate": lambda rows: graph.knn_query(rows, K),
        "numpy_engine": observer(numpy),
    }
    turns = {name: fresh_batches(stream, batch) for name in calls}
    rounds = [{n: 1e6 * cpu_time_per_row(c, turns[n], 0.02) for n, c in calls.items()} for _ in range(3)]
    medians = {name: float(np.median([one[name] for one in rounds])) for name in calls}
    best = min(medians["faiss_direct"], medians["faiss_blas"])
    ratios = {name: value / best for name, value in medians.items()}
    return {"stream": stream, "size": size, "batch": batch, "us": medians, "ratio": ratios}


def measure_others(rounds: int) -> list[dict[str, Any]]:
    """Times worlds on which nothing was tuned, and noise with more insertions. No goals were set."""
    cells = []
    for stream, map_seed, eta in OTHERS:
        engine, index, _ = filled(
            stream, RecodeConfig(size=200_000, dim=DIM, insertion_probability=eta), map_seed
        )
        for batch in BATCHES:
            cell = measure_cell(stream, batch, engine, index, rounds, map_seed)
            cells.append(
                {**cell, "target": None, "met": None, "map_seed": map_seed, "insertion_probability": eta}
            )
            show(cells[-1])
    return cells


def measure_drift(size: int, num_steps: int) -> dict[str, Any]:
    """Feeds a slowly turning map; compares the time of the last tenth with the first after filling."""
    config = RecodeConfig(size=size, dim=DIM)
    engine = NativeEngine(config)
    stream = make_stream("drift", DIM, seed=1)
    engine.load_state_dict(filled_state(config, stream))
    call = observer(engine)
    for _ in range(20):
        call(next(stream))
    parts, per_part = [], num_steps // 10 // 64
    for _ in range(10):
        seconds, before = 0.0, engine.work()
        for _ in range(per_part):
            rows = next(stream)
            start = time.process_time()
            call(rows)
            seconds += time.process_time() - start
        parts.append({"us": 1e6 * seconds / per_part / 64, **scanned(before, engine.work(), size)})
    ratio = parts[-1]["us"] / parts[0]["us"]
    result = {"size": size, "steps": num_steps, "parts": parts, "last_over_first": ratio, "target": 1.3}
    return {**result, "met": ratio <= 1.3, "path": engine.path}


def growth(cells: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Fits time ∝ |M|^exponent over the sizes at batch 64."""
    found = []
    for stream in STREAMS:
        mine = [cell for cell in cells if cell["stream"] == stream and cell["batch"] == 64]
        if len(mine) < 2:
            continue
        sizes, times = ([cell[name] for cell in mine] for name in ("size", "native_us"))
        exponent = float(np.polyfit(np.log(sizes), np.log(times), 1)[0])
        goal = 0.5 if stream in STRUCTURED else None
        met = None if goal is None else exponent <= goal
        found.append({"stream": stream, "exponent": exponent, "target": goal, "met": met})
    return found


def machine() -> dict[str, Any]:
    packages = ("softcount", "numpy", "faiss-cpu", "torch", "hnswlib")
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "kernels": NativeEngine(RecodeConfig(size=1, dim=1)).kernels,
        "versions": {name: version(name) for name in packages},
    }


def draw(cells: list[dict[str, Any]], path: Path) -> None:
    """Draws time against the number of atoms at batch 64."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.2), layout="constrained")
    for stream in STREAMS:
        mine = [cell for cell in cells if cell["stream"] == stream and cell["batch"] == 64]
        axes.plot(
            [c["size"] for c in mine], [c["native_us"] for c in mine], "o-", label=f"whole update, {stream}"
        )
    mine = [cell for cell in cells if cell["stream"] == "walk4" and cell["batch"] == 64]
    axes.plot(
        [c["size"] for c in mine], [c["faiss_best_us"] for c in mine], "k--", label="faiss, search alone"
    )
    axes.set(xscale="log", yscale="log", xlabel="atoms |M|", ylabel="µs per embedding")
    axes.set_title("RECODE's exact update, one thread, D = 32, batches of 64")
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def verdict(entry: dict[str, Any]) -> str:
    return "" if entry["met"] is None else f"≤ {entry['target']:g} {'met' if entry['met'] else 'MISSED'}"


def show(cell: dict[str, Any]) -> None:
    print(
        f"{cell['stream']:6} {cell['size']:8} {cell['batch']:4} {cell['faiss_best_us']:9.1f} "
        f"{cell['native_us']:9.1f} {cell['ratio']:6.3f} {cell['path']:7} "
        f"{100 * cell['fraction_scanned']:7.2f} %  {verdict(cell)}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one size, few rounds, a short drift")
    parser.add_argument("--out", type=Path, default=Path("results/memory/benchmark.json"))
    parser.add_argument("--figure", type=Path, default=Path("docs/images/memory_time.png"))
    options = parser.parse_args()
    faiss.omp_set_num_threads(1)
    start = time.time()
    sizes, rounds = ((50_000,), 3) if options.quick else (SIZES, 5)
    print("stream     size    B  faiss µs native µs  ratio path    scanned   target")
    cells: list[dict[str, Any]] = []
    rivals: list[dict[str, Any]] = []
    for size in sizes:
        for stream in STREAMS:
            engine, index, state = filled(stream, RecodeConfig(size=size, dim=DIM))
            for batch in BATCHES:
                cells.append(measure_cell(stream, batch, engine, index, 3 if size > 500_000 else rounds))
                show(cells[-1])
            if size == 50_000 and stream in ("walk4", "gauss"):
                rivals.extend(measure_rivals(stream, size, batch, state) for batch in (1, 64))
    others = [] if options.quick else measure_others(rounds)
    for rival in rivals:
        ratios = "  ".join(f"{name} {value:.2f}" for name, value in rival["ratio"].items())
        print(f"relative to faiss best, {rival['stream']}, |M| {rival['size']}, B {rival['batch']}: {ratios}")
    exponents = growth(cells)
    for entry in exponents:
        print(f"time grows as |M|^{entry['exponent']:.2f} on {entry['stream']} {verdict(entry)}")
    drift = measure_drift(20_000 if options.quick else 50_000, 100_000 if options.quick else 1_000_000)
    print(f"drift, {drift['steps']} steps: last/first tenth {drift['last_over_first']:.2f} {verdict(drift)}")
    settings = {
        "dim": DIM,
        "neighbours": K,
        "seeds": {"stream": f"{SEED} + batch", "drift": 1, "state": 2, "uniforms": 0},
        "rounds": rounds,
    }
    report = {
        "machine": machine(),
        "settings": settings,
        "seconds": round(time.time() - start),
        "cells": cells,
    }
    report |= {"others": others, "rivals": rivals, "growth": exponents, "drift": drift}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(report, indent=1) + "\n")
    draw(cells, options.figure)


if __name__ == "__main__":
    main()
