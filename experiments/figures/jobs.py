"""Jobs: the units a figure is made of. Each leaves one JSON file, and is not run again once it is there.

    results/figures/FOLDER/KEY.json      what was measured, with seed, seconds and machine
    docs/images/figures/NAME.png, .svg   the picture

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
from softcount.hints import install
from softcount.measure.machine import machine

RESULTS = Path("results/figures")
IMAGES = Path("docs/images/figures")
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
    """Runs the jobs that have left no file yet, one after the other."""
    todo = [job for job in jobs if not path_of(folder, job.key).exists()]
    if len(todo) < len(jobs):
        say(f"{len(jobs) - len(todo)} of {len(jobs)} runs are there already")
    for i, job in enumerate(todo):
        say(f"[{i + 1}/{len(todo)}] {job.key} ...")
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


def read(jobs: Sequence[Job], folder: Path) -> list[Row]:
    """Returns the rows of the jobs that were run, in the order of the jobs."""
    paths = [path_of(folder, job.key) for job in jobs]
    return [json.loads(path.read_text()) for path in paths if path.exists()]


def per_seed(values: Iterable[float | None], digits: int = 2) -> str:
    """Returns one number per seed as the documentation writes them.

    >>> per_seed([0.5, None, 1.25])
    '0.50 / - / 1.25'
    """
    return " / ".join("-" if value is None else f"{value:.{digits}f}" for value in values)


def path_of(folder: Path, key: str) -> Path:
    return folder / f"{key}.json"


def save_picture(figure: Any, name: str, images: Path) -> list[Path]:
    """Writes a matplotlib figure as PNG and SVG; equal figures give equal files."""
    import matplotlib

    images.mkdir(parents=True, exist_ok=True)
    paths = [images / f"{name}.{suffix}" for suffix in ("png", "svg")]
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none"}):
        figure.savefig(paths[0], dpi=110)
        figure.savefig(paths[1], metadata={"Date": None})
    return paths


def new_figure(width: float, height: float) -> Any:
    """Returns an empty matplotlib figure that needs no screen."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"drawing needs matplotlib: {install('plots')}") from error
    return Figure(figsize=(width, height), layout="constrained")
