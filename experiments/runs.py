"""The one driver of training runs behind figures: a process each, resumable, watched, ended by a rule.

    train(config, folder, watch=..., until=...)

At every report the run is asked what `watch` wants to know, and that is kept beside its checkpoints. A run
that was stopped goes on where it was; one of another configuration is thrown away. It ends after its
steps, or when `until` says so of the answers so far. What is returned holds the configuration, the steps,
the time that training took and what `watch` makes of it all. Checkpoints are then deleted.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from multiprocessing import get_context
from pathlib import Path

from experiments.jobs import Row
from softcount import checkpoint
from softcount.config import RunConfig, only_read
from softcount.config_json import to_json, to_tree
from softcount.runs.allocator import ALLOCATOR
from softcount.runs.folder import CHECKPOINTS, CONFIG
from softcount.runs.lock import empty
from softcount.runs.run import Run

ANSWERS = "answers.jsonl"

Until = Callable[[Sequence[Row]], bool]


class Watch:
    """What a figure wants to know of a run; this one asks nothing. It is sent to the process of the run."""

    def prepare(self, run: Run) -> None:
        """Changes a run before it trains, also when it is resumed; its checkpoints must still fit."""

    def ask(self, run: Run, metrics: Mapping[str, float]) -> Row:
        """Answers at a report, beside step and clocks."""
        return {}

    def say(self, answer: Row) -> str:
        """Tells the answer on the screen, after the step."""
        return ""

    def sum_up(self, run: Run, answers: Sequence[Row]) -> Row:
        """What is kept of the run in the end."""
        return {"rows": list(answers)}


def never(answers: Sequence[Row]) -> bool:
    """Lets a run take all of its steps."""
    return False


def train(config: RunConfig, folder: Path, *, watch: Watch | None = None, until: Until = never) -> Row:
    """Trains in a process of its own, from where it was left; returns what is known of the run."""
    folder.mkdir(parents=True, exist_ok=True)
    if not _is_begun(folder, config):
        empty(folder)  # of another configuration or version, or finished and taken away, or hardly begun
    spawn = get_context("spawn")
    with _environment({**ALLOCATOR, "OMP_NUM_THREADS": "1"}), ProcessPoolExecutor(1, spawn) as pool:
        try:
            found = pool.submit(train_here, config, folder, watch or Watch(), until).result()
        except BrokenProcessPool:
            raise RuntimeError(f"the run {folder} was killed; the same command goes on with it") from None
    shutil.rmtree(folder / CHECKPOINTS)  # only what was found is needed from here on
    return found


def train_here(config: RunConfig, folder: Path, watch: Watch, until: Until = never) -> Row:
    """Trains in this process."""
    run = Run.resume(folder) if (folder / CONFIG).exists() else Run.create(folder, config)
    with closing(run):
        watch.prepare(run)
        answers = _follow(run, watch, until)
        return {
            "config": to_tree(run.config),
            "steps": run.loop.num_steps,
            "seconds": answers[-1]["seconds"],
            "cpu_seconds": answers[-1]["cpu_seconds"],
            **watch.sum_up(run, answers),
        }


def _follow(run: Run, watch: Watch, until: Until) -> list[Row]:
    answers = answers_until(run.folder, run.loop.num_steps)
    earlier = answers[-1] if answers else {"cpu_seconds": 0.0, "seconds": 0.0}
    started, started_cpu = time.monotonic(), time.process_time()
    is_over = [bool(answers) and until(answers)]
    for step, metrics in run.train(lambda: is_over[-1]):
        answer = {
            "step": step,
            "cpu_seconds": round(earlier["cpu_seconds"] + time.process_time() - started_cpu, 3),
            "seconds": round(earlier["seconds"] + time.monotonic() - started, 3),
            **watch.ask(run, metrics),
        }
        answers.append(answer)
        with open(run.folder / ANSWERS, "a") as file:
            file.write(json.dumps(answer) + "\n")
        print(f"  {step:>9,} of {run.config.steps:,} steps {watch.say(answer)}", flush=True)
        is_over.append(until(answers))
    return answers


def answers_until(folder: Path, step: int) -> list[Row]:
    """Reads the answers that the checkpoint knows of, and forgets later ones."""
    path = folder / ANSWERS
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
    if path.exists():
        path.write_text("".join(kept))
    return [json.loads(line) for line in kept]


def _is_begun(folder: Path, config: RunConfig) -> bool:
    """Says whether a folder holds an unfinished run of this configuration that this version can continue."""
    path, manifest = folder / CONFIG, folder / CHECKPOINTS / checkpoint.MANIFEST
    if not (path.exists() and manifest.exists()):
        return False
    is_same = path.read_text(encoding="utf-8") == to_json(only_read(config))
    return is_same and json.loads(manifest.read_text())["format"] == checkpoint.FORMAT


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Sets what a process started here will find in its environment."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
