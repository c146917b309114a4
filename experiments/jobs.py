"""Jobs: the units a figure is made of. Each leaves one JSON file, and is not run again once it is there.

    FOLDER/KEY.json      what was measured, with seed, seconds and machine

A figure stopped in the middle goes on with the job that was under way; two figures that share a
folder share their jobs (the trained agents do).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softcount import store
from softcount.measure.machine import machine

RESULTS = Path("results/figures")
SEEDS = (0, 1, 2)

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Job:
    """One measurement: which setting, which seed, and how it is made."""

    key: str
    """Name of its file."""
    seed: int
    """Seed of everything that it draws."""
    measure: Callable[[], Mapping[str, Any]]
    """Does the work; returns plain numbers, strings, lists and dicts."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What distinguishes it from its neighbours, kept in the file."""


def run(jobs: Sequence[Job], folder: Path, say: Callable[[str], None] = print) -> None:
    """Runs jobs one after the other; each leaves its file."""
    for i, job in enumerate(jobs):
        say(f"[{i + 1}/{len(jobs)}] {job.key} ...")
        started, started_cpu = time.perf_counter(), time.process_time()
        measured = job.measure()
        row = {
            "key": job.key,
            "seed": job.seed,
            **job.settings,
            "seconds": round(time.perf_counter() - started, 1),
            "cpu_seconds": round(time.process_time() - started_cpu, 1),
            "machine": machine(),
            **measured,
        }
        content = json.dumps(row, allow_nan=False, separators=(",", ":")) + "\n"
        folder.mkdir(parents=True, exist_ok=True)
        store.write_atomically(path_of(folder, job.key), content.encode())


def read(jobs: Sequence[Job], folder: Path) -> dict[str, Row]:
    """Returns the rows of the jobs that left a file, by key."""
    paths = {job.key: path_of(folder, job.key) for job in jobs}
    return {key: json.loads(path.read_text()) for key, path in paths.items() if path.exists()}


def by(rows: Iterable[Row], *names: str) -> dict[Any, list[Row]]:
    """Groups rows by what they have under some names, in the order in which they come.

    >>> by([{"a": 1, "seed": 0}, {"a": 2, "seed": 0}, {"a": 1, "seed": 1}], "a")[1]
    [{'a': 1, 'seed': 0}, {'a': 1, 'seed': 1}]
    """
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        values = tuple(row[name] for name in names)
        groups.setdefault(values if len(names) > 1 else values[0], []).append(row)
    return groups


def per_seed(values: Iterable[float | None], digits: int = 2) -> str:
    """Returns one number per seed as the documentation writes them.

    >>> per_seed([0.5, None, 1.25])
    '0.50 / - / 1.25'
    """
    return " / ".join("-" if value is None else f"{value:.{digits}f}" for value in values)


def path_of(folder: Path, key: str) -> Path:
    return folder / f"{key}.json"
