"""All tasks of Eight Rooms at once, one V-MPO network, continuous actions: the paper's Fig. 19 in small.

    softcount figure vmpo_eight-rooms [--only VARIANT]

Levels are tiny and fixed, so that places can be counted: a place is a stage of the task and a square metre.
A score is the return over what the scripted solver scores on tiny levels, kept within 0 and 1. Only what
the agent is paid differs between variants, and how long they run: BYOL-Explore takes about twice the time
per step and has half the steps, so that both have about the same. Numbers are of the steps that all had.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments import runs
from experiments.drawing import WIDTH, colours_of, legend_beside, new_figure, steps_below
from experiments.figure import Figure
from experiments.jobs import Job, Row
from softcount.config import RunConfig
from softcount.envs.eight_rooms.vector import MAP
from softcount.presets import VMPO_LAPTOP, suited
from softcount.runs.run import Run
from softcount.torsos import DqnConfig

FOLDER, RUNS, IMAGES = Path("results/vmpo/eight-rooms"), Path("runs/vmpo"), Path("docs/images")
SOLVER = Path("results/eight_rooms/solver.json")
POINTS = 20
"""Points of a curve."""
TORSO = DqnConfig(channels=(16, 32), kernels=(6, 4), strides=(3, 2), hidden_sizes=(128,))
MEMORY = 4000
"""Atoms: about 500 for each task."""

BASE = replace(
    VMPO_LAPTOP,
    env="eight-rooms/all",
    env_options={"actions": "continuous", "variant": "tiny", "layout": 0, "width": 64, "height": 48},
    num_envs=64,
    evaluation_episodes=16,  # two of each task
    recode=replace(
        VMPO_LAPTOP.recode,
        memory=replace(VMPO_LAPTOP.recode.memory, size=MEMORY, warmup_atoms=MEMORY),
    ),
    vmpo=replace(
        VMPO_LAPTOP.vmpo,
        network=replace(VMPO_LAPTOP.vmpo.network, torso=TORSO, core="lstm", core_size=128, head_size=128),
        batch_size=16,
    ),
    representation=replace(
        VMPO_LAPTOP.representation,
        embedding=replace(VMPO_LAPTOP.representation.embedding, torso=TORSO),
    ),
)
STEPS = {"VMPO-RECODE-AP": 400_000, "VMPO-BYOL-Explore": 200_000, "VMPO": 200_000}


def config_of(agent: str) -> RunConfig:
    """The run of an agent, with a report for each point of its curve."""
    config = replace(suited(BASE, agent), steps=STEPS[agent])
    return replace(config, overlap=False, report_every=config.steps // POINTS, evaluate_every=0)


@cache
def solver_scores() -> dict[str, float]:
    """What the scripted solver scores on tiny levels, by task."""
    kept = json.loads(SOLVER.read_text())["runs"]
    return {key.split()[0]: row["mean_score"] for key, row in kept.items() if key.endswith(" tiny")}


@dataclass
class PerTask(runs.Watch):
    """Keeps one point per report: what each task's episodes earned, its places and its stages."""

    def ask(self, run: Run, metrics: Mapping[str, float]) -> Row:
        actor, coverage = run.loop.roles.actor, run.loop.coverage
        assert coverage is not None
        places = np.flatnonzero(coverage.visits)
        tasks = actor.tasks_of(places)
        return {
            "intrinsic_per_step": round(metrics.get("intrinsic/reward_mean", 0.0), 5),
            "tasks": {
                name.split("/")[1]: {
                    "episodes": int(metrics[f"charts/episodes/{name}"]),
                    "return": _rounded(metrics.get(f"charts/episodic_return/{name}")),
                    "places": int((tasks == task).sum()),
                    "stages": len(set((places[tasks == task] // MAP**2).tolist())),
                }
                for task, name in enumerate(actor.task_names())
            },
        }

    def say(self, answer: Row) -> str:
        return ", ".join(f"{name} {own['places']} {own['return']}" for name, own in answer["tasks"].items())

    def sum_up(self, run: Run, answers: Sequence[Row]) -> Row:
        return {"steps": run.config.steps, "points": list(answers)}


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 4)


def jobs_of() -> list[Job]:
    """One run of each agent."""
    return [
        Job(
            key=f"{agent}__seed0",
            seed=0,
            settings={"agent": agent},
            measure=lambda agent=agent: runs.train(  # type: ignore[misc]
                config_of(agent), RUNS / f"eight-rooms__{agent}", watch=PerTask()
            ),
        )
        for agent in STEPS
    ]


def score(row: Row, task: str, points: slice = slice(None)) -> float:
    """Mean return of the episodes of some points over the solver's score, between 0 and 1."""
    kept = [point["tasks"][task] for point in row["points"][points]]
    episodes = [own["episodes"] for own in kept if own["return"] is not None]
    earned = [own["return"] for own in kept if own["return"] is not None]
    if not episodes:
        return 0.0
    return float(np.clip(np.average(earned, weights=episodes) / solver_scores()[task], 0, 1))


def describe(rows: Sequence[Row]) -> list[str]:
    """Places and stages of each task, and its score over the second half, of the steps that all had."""
    lines = []
    shared = min(row["steps"] for row in rows)
    for row in rows:
        num = sum(point["step"] < shared + row["steps"] // POINTS for point in row["points"])
        last = row["points"][num - 1]["tasks"]
        scores = {task: score(row, task, slice(num // 2, num)) for task in last}
        lines.append(
            f"{row['agent']}: capped mean {np.mean(list(scores.values())):.3f}, "
            f"places {sum(own['places'] for own in last.values())}; "
            + "; ".join(
                f"{task} {own['places']} places, {own['stages']} stages, {scores[task]:.2f}"
                for task, own in last.items()
            )
        )
    return lines


def plot(rows: Sequence[Row]) -> Any:
    """Places of every task above, scores below; one line per agent."""
    figure = new_figure(WIDTH, 7.0)
    panels = figure.subplots(4, 4, sharex=True)
    for row in rows:
        colour = colours_of(STEPS)[row["agent"]]
        steps = [point["step"] for point in row["points"]]
        for i, task in enumerate(row["points"][0]["tasks"]):
            top, column = 2 * (i // 4), i % 4
            above, below = panels[top, column], panels[top + 1, column]
            places = [point["tasks"][task]["places"] for point in row["points"]]
            scores = [score(row, task, slice(k, k + 1)) for k in range(len(steps))]
            above.plot(steps, places, color=colour, label=row["agent"])
            below.plot(steps, scores, color=colour)
            above.set_title(task.replace("_", " "), fontsize=9)
            below.set_ylim(-0.03, 1.03)
    for top in (0, 2):
        panels[top, 0].set_ylabel("places")
        panels[top + 1, 0].set_ylabel("score")
    for panel in panels[-1]:
        steps_below(panel)
    legend_beside(figure)
    return figure


FIGURE = Figure(
    name="vmpo_eight-rooms",
    paper="Fig. 19 (in small: Eight Rooms, all tasks at once)",
    claim="On V-MPO, RECODE is competitive with BYOL-Explore on all eight tasks at once.",
    laptop_cost="3 runs, 3 to 10 CPU-minutes each",
    paper_cost="6 runs on all tasks of DM-HARD-8",
    folder=FOLDER,
    jobs=jobs_of,
    plot=plot,
    describe=describe,
    images=IMAGES,
)
