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

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments import runs
from experiments.jobs import RESULTS, Job, Row
from softcount.config import RunConfig, with_fields
from softcount.launch.build import make_env
from softcount.launch.local import LocalLoop
from softcount.memory.inspect import nearest_atoms
from softcount.presets import LAPTOP, suited
from softcount.runs.run import Run
from softcount.types import Array

FOLDER = RESULTS / "runs"
RUNS = Path("runs/figures")
STEPS = 150_000
FIRST_LAYOUT = 10
DRAWINGS = 4


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
    return Job(
        key=key,
        seed=config.seed,
        settings={"name": name, "agent": config.agent, "steps": config.steps},
        measure=lambda: runs.train(config, RUNS / key, watch=Places()),
    )


class Places(runs.Watch):
    """Asks about every place at every report."""

    def prepare(self, run: Run) -> None:
        self.views = views_of_places(run.config)

    def ask(self, run: Run, metrics: Mapping[str, float]) -> Row:
        return {
            **take_snapshot(_here(run), self.views),
            "episodic_length": metrics.get("charts/episodic_length"),
            "success_rate": metrics.get("charts/success_rate"),
        }

    def say(self, answer: Row) -> str:
        visits = answer["visits"]
        return f"{sum(num > 0 for num in visits)} of {len(visits)} places"

    def sum_up(self, run: Run, answers: Sequence[Row]) -> Row:
        """Returns the maze, when each place was first seen, and the snapshots."""
        return {**_summary(_here(run)), "snapshots": list(answers)}


def views_of_places(config: RunConfig) -> list[Array]:
    """Returns `DRAWINGS` observations of every place, walls drawn anew each time: arrays `[places, ...]`."""
    env: Any = make_env(config, 1, 0)
    rng = np.random.default_rng([config.seed, 1234])
    return [env.portray(np.arange(env.num_places), rng) for _ in range(DRAWINGS)]


def _here(run: Run) -> LocalLoop:
    assert isinstance(run.loop, LocalLoop)  # what is looked at lives in this process
    return run.loop


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


def _summary(loop: LocalLoop) -> Row:
    maze: Any = loop.roles.actor.env
    coverage, bonus = loop.coverage, loop.roles.memory.bonus
    memories = {} if bonus is None else bonus.memories()
    assert coverage is not None
    num_places = int(maze.num_places)
    cells = [maze.cell_of(place) for place in range(num_places)]
    goal = cells.index(tuple(maze.goal))
    return {
        "num_places": num_places,
        "cells": [list(map(int, cell)) for cell in cells],
        "map_shape": list(maze.map_shape),
        "distances": [int(maze.distances[cell]) for cell in cells],
        "first_seen": coverage.first_seen[:num_places].tolist(),
        "first_goal": int(coverage.first_seen[goal]) or None,
        "ages": next((memory.ages.tolist() for memory in memories.values()), None),
    }
