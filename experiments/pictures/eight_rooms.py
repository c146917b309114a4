"""What the scripted solvers and random actions reach in Eight Rooms.

The reference and the floor of every score there.

Solvers play 200 seeds of every task and size. Random is uniform over the 38 actions of the table, each kept
for four steps on average. No frame is drawn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.drawing import COLOURS, new_figure
from experiments.figure import Figure
from experiments.jobs import Job, Row, by
from softcount.envs.eight_rooms import core
from softcount.envs.eight_rooms.levels import VARIANTS, Variant, generate
from softcount.envs.eight_rooms.playing import ACTION_REPEAT, play_solver, random_actions
from softcount.envs.eight_rooms.tasks import TASKS
from softcount.envs.nine_actions import ACTIONS, action_table

COPIES = 256
FOLDER = Path("results/eight_rooms")


def solve(task: str, variant: Variant, num: int) -> dict[str, Any]:
    """Lets the solver play `num` seeds."""
    episodes = play_solver(task, variant, range(num))
    solved = [episode for episode in episodes if episode.is_solved]
    return {
        "episodes": num,
        "solved": len(solved),
        "mean_score": float(np.mean([episode.score for episode in episodes])),
        "mean_highest_score": float(np.mean([episode.highest for episode in episodes])),
        "median_steps_of_solved": float(np.median([episode.steps for episode in solved])) if solved else None,
        "failed_seeds": [episode.seed for episode in episodes if not episode.is_solved],
        "all": [asdict(episode) for episode in episodes],
    }


def play_randomly(task: str, variant: Variant, num: int) -> dict[str, Any]:
    """Plays `num` episodes at random."""
    table = np.array([[entry.get(name, 0.0) for name in ACTIONS] for entry in action_table()], np.float32)
    rng, limit = np.random.default_rng(0), TASKS[task].limit(variant)
    copies = min(COPIES, num)
    batch = core.Batch(copies, 8, 6)
    states = batch.states
    elapsed, has_held, has_opened = (np.zeros(copies, np.int64) for _ in range(3))
    chosen = rng.integers(len(table), size=copies)
    repeats = np.full(copies, ACTION_REPEAT, np.int32)
    begun, done = 0, list[list[float]]()

    def begin(slot: int) -> None:
        nonlocal begun
        level = generate(task, variant, np.random.default_rng(np.random.SeedSequence((1, begun))))
        batch.load(slot, level.state)
        elapsed[slot] = has_held[slot] = has_opened[slot] = 0
        begun += 1

    for slot in range(copies):
        begin(slot)
    while len(done) < num:
        chosen = random_actions(rng, chosen, len(table))
        batch.step_blindly(table[chosen], repeats)
        elapsed += 1
        has_held |= states["agent"]["held"] >= 0
        has_opened |= states["sensors"]["is_on"].any(1)
        for slot in np.flatnonzero((states["is_over"] > 0) | (elapsed >= limit)).tolist():
            one = (states["is_over"], states["score"], has_held, has_opened, elapsed)
            if repeats[slot]:
                done.append([float(column[slot]) for column in one])
            if begun < num:
                begin(slot)
            else:
                repeats[slot] = 0
    solved, score, held, opened, steps = np.array(done).T
    return {
        "episodes": len(done),
        "solved": int(solved.sum()),
        "mean_score": float(score.mean()),
        "held_something": float(held.mean()),
        "a_sensor_was_on": float(opened.mean()),
        "steps": int(steps.sum()),
    }


EXPERIMENTS: dict[str, tuple[Callable[[str, Variant, int], dict[str, Any]], int]] = {
    "solver": (solve, 200),
    "random": (play_randomly, 6000),
}


def jobs(who: str) -> list[Job]:
    """Every task in every size, the smallest first."""
    return [_job(who, task, variant) for variant in VARIANTS for task in TASKS]


def _job(who: str, task: str, variant: Variant) -> Job:
    play, num = EXPERIMENTS[who]
    return Job(
        key=_key(who, task, variant),
        seed=0,
        settings={"suite": f"eight-rooms {core.version()}", "who": who, "task": task, "variant": variant},
        measure=partial(play, task, variant, num),
    )


def _key(who: str, task: str, variant: str) -> str:
    return f"{who}__{task}__{variant}"


def earlier(who: str) -> Mapping[str, Row]:
    """Rows of the file that held all tasks."""
    path = FOLDER / f"{who}.json"
    runs = json.loads(path.read_text())["runs"] if path.exists() else {}
    named = {tuple(name.split()): run for name, run in runs.items()}
    return {
        _key(who, task, variant): {"task": task, "variant": variant, **run}
        for (task, variant), run in named.items()
    }


def plot(rows: Sequence[Row]) -> Any:
    """Draws the share of episodes that were solved, for every task and size."""
    figure = new_figure(9, 3.4)
    axes = figure.subplots()
    for i, (colour, (variant, own)) in enumerate(zip(COLOURS, by(rows, "variant").items())):
        places = [list(TASKS).index(row["task"]) + 0.27 * (i - 1) for row in own]
        axes.bar(places, [row["solved"] / row["episodes"] for row in own], 0.25, color=colour, label=variant)
    axes.set_xticks(range(len(TASKS)), [name.replace("_", "\n") for name in TASKS], fontsize=8)
    axes.set_ylabel("share of episodes solved")
    figure.legend(loc="outside upper right", ncols=len(VARIANTS), frameon=False, fontsize=8)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    return [
        f"{row['task']}, {row['variant']}: solved {row['solved']} of {row['episodes']}, "
        f"mean score {row['mean_score']:.2f}"
        for row in rows
    ]


def _figure_of(who: str, claim: str, cost: str) -> Figure:
    return Figure(
        name=f"eight_rooms_{who}",
        paper="not in the paper (our tasks in place of DM-HARD-8)",
        claim=claim,
        laptop_cost=cost,
        paper_cost="not in the paper",
        folder=FOLDER / who,
        jobs=partial(jobs, who),
        plot=plot,
        describe=describe,
        earlier=partial(earlier, who),
    )


FIGURES = (
    _figure_of("solver", "Every task can be solved, in every size.", "24 jobs of 200 episodes, minutes each"),
    _figure_of("random", "Chance solves hardly anything.", "24 jobs of 6,000 episodes, minutes each"),
)
