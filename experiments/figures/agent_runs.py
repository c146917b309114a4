"""Training runs behind the figures that need an agent: one process at a time, resumable, shared.

All train for 150,000 steps in 11×11 Random Disco Mazes, with the `laptop` preset but for one field: atoms
stay where they were put, as in the paper. Seed s walks layout 10 + s, none of which the preset was
chosen on but for that one field (figure `choices`). Every 20,000 steps the run is asked, for every place
of the maze: how often was it visited, what would a visit be paid now (mean over four drawings of the
walls), how many atoms of the memory stand for it, and what do they count.

RECODE's constants are the preset's, chosen on other layouts; nobody else's were tuned. What the preset
leaves to the other bonuses' own papers is in `presets.suited`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.figures.jobs import RESULTS, Job
from softcount import store
from softcount.config import RunConfig, with_fields
from softcount.config_json import from_json, to_json, to_tree
from softcount.launch.build import make_env
from softcount.launch.local import LocalLoop
from softcount.memory.inspect import nearest_atoms
from softcount.presets import LAPTOP, suited
from softcount.runs.allocator import ALLOCATOR
from softcount.runs.lock import empty
from softcount.runs.run import CHECKPOINTS, CONFIG, Run
from softcount.types import Array

FOLDER = RESULTS / "runs"
RUNS = Path("runs/figures")
STEPS = 150_000
FIRST_LAYOUT = 10
DRAWINGS = 4
SNAPSHOTS, SUMMARY = "places.jsonl", "summary.json"
MODULE = "experiments.figures.agent_runs"


def maze_config(agent: str, seed: int, changes: Mapping[str, Any] | None = None) -> RunConfig:
    """Returns the configuration of an agent in the maze of a seed; `changes` name fields by their path."""
    config = replace(
        suited(LAPTOP, agent),
        env_options={"size": 11, "layout": FIRST_LAYOUT + seed, "observation": "palette"},
        seed=seed,
        steps=STEPS,
        recode=replace(LAPTOP.recode, reembed_every=0),
        evaluate_every=0,
        report_every=20_000,
    )
    return with_fields(config, changes or {})


def job(name: str, config: RunConfig) -> Job:
    """Returns the job that trains a configuration; `name` says what is special about it."""
    key = f"{name}__seed{config.seed}"
    settings = {"name": name, "agent": config.agent, "steps": config.steps}
    return Job(key=key, seed=config.seed, settings=settings, measure=lambda: train(key, config))


def train(key: str, config: RunConfig, runs: Path = RUNS, module: str = MODULE) -> dict[str, Any]:
    """Trains in a process of its own, from where it was left; returns the summary that `module` leaves."""
    folder = runs / key
    runs.mkdir(parents=True, exist_ok=True)
    wanted = runs / f"{key}.json"
    is_same = wanted.exists() and wanted.read_text() == to_json(config)
    is_run = (folder / CONFIG).exists() and (folder / CHECKPOINTS).exists()
    if folder.exists() and not (is_same and is_run):
        empty(folder)  # of another version of the configuration, or finished and taken away, or hardly begun
    store.write_atomically(wanted, to_json(config).encode())
    done = subprocess.run(
        [sys.executable, "-m", module, str(folder)],
        env={**os.environ, **ALLOCATOR, "OMP_NUM_THREADS": "1"},
    )
    if done.returncode != 0:
        raise RuntimeError(f"the training run {folder} failed with code {done.returncode}")
    summary: dict[str, Any] = json.loads((folder / SUMMARY).read_text())
    shutil.rmtree(folder / CHECKPOINTS)  # only the summary is needed from here on
    return summary


def train_here(folder: Path, config: RunConfig, say: Callable[[str], None]) -> dict[str, Any]:
    """Trains in this process, with snapshots; returns and writes the summary."""
    run = Run.resume(folder) if (folder / CONFIG).exists() else Run.create(folder, config)
    with closing(run):
        summary = _follow(run, say)
    store.write_atomically(folder / SUMMARY, json.dumps(summary, allow_nan=False).encode())
    return summary


def _follow(run: Run, say: Callable[[str], None]) -> dict[str, Any]:
    folder, config, loop = run.folder, run.config, run.loop
    assert isinstance(loop, LocalLoop)  # what is looked at lives here
    snapshots = snapshots_until(folder, run.loop.num_steps)
    earlier = snapshots[-1] if snapshots else {"cpu_seconds": 0.0, "seconds": 0.0}
    started, views = time.monotonic(), views_of_places(config)
    started_cpu = time.process_time()
    for step, metrics in run.train():
        snapshot = {
            "step": step,
            **take_snapshot(loop, views),
            "episodic_length": metrics.get("charts/episodic_length"),
            "success_rate": metrics.get("charts/success_rate"),
            "cpu_seconds": round(earlier["cpu_seconds"] + time.process_time() - started_cpu, 1),
            "seconds": round(earlier["seconds"] + time.monotonic() - started, 1),
        }
        snapshots.append(snapshot)
        with open(folder / SNAPSHOTS, "a") as file:
            file.write(json.dumps(snapshot) + "\n")
        places = sum(visits > 0 for visits in snapshot["visits"])
        say(f"  {step:>8,} of {config.steps:,} steps, {places} of {len(views[0])} places")
    return _summarise(loop, config, snapshots)


def views_of_places(config: RunConfig) -> list[Array]:
    """Returns `DRAWINGS` observations of every place, walls drawn anew each time: arrays `[places, ...]`."""
    env: Any = make_env(config, 1, 0)
    rng = np.random.default_rng([config.seed, 1234])
    return [env.portray(np.arange(env.num_places), rng) for _ in range(DRAWINGS)]


def take_snapshot(loop: LocalLoop, views: Sequence[Array]) -> dict[str, Any]:
    """Asks a run about every place: visits, what it would be paid, its atoms and their counts."""
    num_places = len(views[0])
    bonus = loop.roles.memory.bonus
    assert loop.coverage is not None
    snapshot: dict[str, Any] = {"visits": loop.coverage.visits[:num_places].tolist()}
    if bonus is None or bonus.lasts == "episode":
        return snapshot
    places = np.arange(num_places)
    features = [loop.roles.inference.embed(view)._replace(place=places) for view in views]
    if bonus.can_read(features[0]):
        scores = np.mean([bonus.score(f) for f in features], axis=0, dtype=np.float64)
        snapshot["scores"] = scores.round(6).tolist()
    for memory in bonus.memories().values():
        if len(memory) == 0:
            continue
        embeddings = [f.embedding for f in features if f.embedding is not None]
        nearest, _ = nearest_atoms(np.concatenate(embeddings), memory.atoms)
        of_atom = nearest % num_places
        counts = np.bincount(of_atom, weights=memory.counts, minlength=num_places)
        snapshot["atoms"] = np.bincount(of_atom, minlength=num_places).tolist()
        snapshot["counts"] = counts.round(4).tolist()
    return snapshot


def _summarise(loop: LocalLoop, config: RunConfig, snapshots: Sequence[dict[str, Any]]) -> dict[str, Any]:
    maze: Any = loop.roles.actor.env
    coverage, bonus = loop.coverage, loop.roles.memory.bonus
    memories = {} if bonus is None else bonus.memories()
    assert coverage is not None
    num_places = int(maze.num_places)
    cells = [maze.cell_of(place) for place in range(num_places)]
    goal = cells.index(tuple(maze.goal))
    return {
        "config": to_tree(config),
        "num_places": num_places,
        "cells": [list(map(int, cell)) for cell in cells],
        "map_shape": list(maze.map_shape),
        "distances": [int(maze.distances[cell]) for cell in cells],
        "first_seen": coverage.first_seen[:num_places].tolist(),
        "first_goal": int(coverage.first_seen[goal]) or None,
        "ages": next((memory.ages.tolist() for memory in memories.values()), None),
        "snapshots": list(snapshots),
        "cpu_seconds": snapshots[-1]["cpu_seconds"],
        "seconds": snapshots[-1]["seconds"],
    }


def snapshots_until(folder: Path, step: int) -> list[dict[str, Any]]:
    """Reads the snapshots that the checkpoint knows of, and forgets later ones."""
    path = folder / SNAPSHOTS
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    kept = [line for line in lines if line.endswith("\n") and json.loads(line)["step"] <= step]
    if path.exists():
        path.write_text("".join(kept))
    return [json.loads(line) for line in kept]


if __name__ == "__main__":
    where = Path(sys.argv[1])
    train_here(
        where, from_json((where.parent / f"{where.name}.json").read_text()), lambda x: print(x, flush=True)
    )
