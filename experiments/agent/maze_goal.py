"""Finds the goal of Random Disco Mazes with several agents, layouts and seeds.

Each run has the preset of the maze's size, on one core. It ends when its last two evaluations reached the
goal in nine of ten episodes (held-out mazes: 500,000 steps after two in a row first did). Agents that are not
expected to do so end when 500,000 steps have shown no new place and the goal was never reached. Kept are when
each place was first seen and how deep in the maze it lies, when the goal was first reached, the evaluations
on the way and how the bonus compared with true counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from experiments import runs
from experiments.drawing import WIDTH, colours_of, legend_beside, lighter, new_figure, steps_below
from experiments.figure import Figure
from experiments.jobs import Job, Row, by
from softcount.config import RunConfig
from softcount.presets import LAPTOP, LAPTOP_21, suited
from softcount.runs.run import Run

RESULTS, RUNS, IMAGES = Path("results/meme"), Path("runs/maze_goal"), Path("docs/images")
PRESET_OF = {11: LAPTOP, 21: LAPTOP_21}
STALLING = ("MEME", "MEME-RND", "MEME-NGU-AP", "MEME-EMM-AP", "MEME-RNDonAP")
SOLVED = 0.9
"""Share of episodes that reach the goal, in two evaluations in a row."""


def maze_config(agent: str, size: int, layout: int, seed: int, steps: int) -> RunConfig:
    """Returns the preset of a maze's size for an agent."""
    preset = suited(PRESET_OF[size], agent)
    options = {**preset.env_options, "layout": layout}
    return replace(preset, env_options=options, seed=seed, steps=steps, overlap=False)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """Says when a run has shown what it can; sent to the process of the run."""

    beyond: int = 0
    """Steps to go on for after it was first solved."""
    stalled: int | None = None
    """Steps without a new place that are enough, if the goal was never reached."""

    def __call__(self, answers: Sequence[Row]) -> bool:
        return is_solved(answers, self.beyond) or (
            self.stalled is not None and is_stalled(answers, self.stalled)
        )


def is_solved(answers: Sequence[Row], beyond: int = 0) -> bool:
    """Says whether the last two evaluations reached the goal in nine of ten episodes.

    With `beyond`, whether two evaluations in a row did so at least that many steps ago.
    """
    rows = [row for row in answers if row["evaluation"] is not None]
    pairs = [
        after["step"]
        for before, after in pairwise(rows)
        if min(before["evaluation"][0], after["evaluation"][0]) >= SOLVED
    ]
    if not pairs:
        return False
    last = rows[-1]["step"]
    return bool(last - pairs[0] >= beyond if beyond else pairs[-1] == last)


def is_stalled(answers: Sequence[Row], steps: int) -> bool:
    """Says whether this many steps have shown no new place, and no episode ever reached the goal."""
    if any(row["success"] for row in answers):
        return False
    latest = next(row["step"] for row in answers if row["places"] == answers[-1]["places"])
    return bool(answers[-1]["step"] - latest >= steps)


class Maze(runs.Watch):
    """Asks for places, successes and evaluations at every report."""

    def ask(self, run: Run, metrics: Mapping[str, float]) -> Row:
        is_evaluated = "eval/return" in metrics
        return {
            "places": int(metrics["coverage/places"]),
            "success": metrics.get("charts/success_rate"),
            "evaluation": [metrics["eval/success_rate"], metrics["eval/length"]] if is_evaluated else None,
            "truth": {name[6:]: x for name, x in metrics.items() if name.startswith("truth/")},
        }

    def say(self, answer: Row) -> str:
        reached = "" if answer["evaluation"] is None else f", evaluation {answer['evaluation'][0]:.0%}"
        return f"{answer['places']} places{reached}"

    def sum_up(self, run: Run, answers: Sequence[Row]) -> Row:
        """Returns discoveries (of each place: step and distance from the start) and the courses."""
        maze: Any = run.loop.roles.actor.env
        assert run.loop.coverage is not None
        seen = run.loop.coverage.state_dict()
        cells = [maze.cell_of(place) for place in seen["places"].tolist()]
        first_seen = dict(zip(cells, seen["first_seen"].tolist(), strict=True))
        discoveries = sorted((step, int(maze.distances[cell])) for cell, step in first_seen.items())
        evaluated = [row for row in answers if row["evaluation"] is not None]
        return {
            "agent": run.config.agent,
            "env_options": run.config.env_options,
            "num_places": maze.num_places,
            "places": len(cells),
            "discoveries": discoveries,
            "goal_distance": int(maze.distances[maze.goal]),
            "depth": max(distance for _, distance in discoveries),
            "first_goal": first_seen.get(tuple(maze.goal)),
            "evaluations": [[row["step"], *row["evaluation"]] for row in evaluated],
            "coverage": [[row["step"], row["places"]] for row in answers],
            "success": [[row["step"], row["success"]] for row in answers],  # of the actors' episodes
            "truth": [{"step": row["step"], **row["truth"]} for row in evaluated],
        }


def jobs_of(
    folder: str,
    agents: Sequence[str],
    size: int,
    layouts: Sequence[int],
    seeds: Sequence[int],
    steps: int,
    ended: Ended,
) -> list[Job]:
    """Every agent in every layout with every seed, seeds outermost."""
    return [
        _job(RUNS / folder, maze_config(agent, size, layout, seed, steps), ended)
        for seed in seeds
        for layout in layouts
        for agent in agents
    ]


def _job(folder: Path, config: RunConfig, ended: Ended) -> Job:
    options = config.env_options
    key = f"{config.agent}__size{options['size']}__layout{options['layout']}__seed{config.seed}"
    return Job(
        key=key,
        seed=config.seed,
        measure=lambda: runs.train(config, folder / key, watch=Maze(), until=ended),
    )


def jobs_11() -> list[Job]:
    with_bonus = jobs_of("11", ("MEME-RECODE-AP",), 11, (0, 1, 2), (0, 1), 1_000_000, Ended())
    return with_bonus + jobs_of("11", ("MEME",), 11, (0, 1, 2), (0,), 1_000_000, Ended())


def jobs_21() -> list[Job]:
    layouts = (0, 1, 2)
    stalled = Ended(stalled=500_000)
    return [
        *jobs_of("21", ("MEME-RECODE-AP",), 21, layouts, (0, 1), 5_000_000, Ended()),
        *jobs_of("21", ("MEME-COUNT",), 21, layouts, (0,), 5_000_000, Ended()),
        *jobs_of("21", STALLING, 21, layouts, (0,), 2_000_000, stalled),
    ]


def jobs_held_out() -> list[Job]:
    ended = Ended(beyond=500_000)
    return jobs_of("held_out", ("MEME-RECODE-AP",), 21, (10, 11, 12), (0,), 5_000_000, ended)


def plot(rows: Sequence[Row]) -> Any:
    """Draws coverage and depth over steps, a line per run, and below every evaluation of every run."""
    lines = max(len(rows), 4)
    figure = new_figure(WIDTH, 4.4 + 0.24 * lines)
    above, below = figure.subfigures(2, 1, height_ratios=[3.6, 0.8 + 0.24 * lines])
    coverage, depth = above.subplots(1, 2)
    colours = colours_of(row["agent"] for row in rows)
    numbers = {agent: len(group) for agent, group in by(rows, "agent").items()}
    for row in rows:
        number = numbers[row["agent"]]
        label = f"{row['agent']} ({number} run{'s' * (number > 1)})"
        style: dict[str, Any] = {"color": colours[row["agent"]], "alpha": 0.8, "linewidth": 1.2}
        steps, distances = np.array([*row["discoveries"], (row["steps"], 0)]).T
        found = np.arange(1, len(steps) + 1)
        found[-1] -= 1  # the end of the run discovers nothing
        coverage.step(steps, found / row["num_places"], where="post", label=label, **style)
        share = np.maximum.accumulate(distances) / row["goal_distance"]
        depth.step(steps, share, where="post", **style)
        if row["first_goal"]:
            depth.plot(row["first_goal"], 1.0, marker="*", color=colours[row["agent"]], markersize=10)
    coverage.set(ylabel="share of places", title="places visited")
    depth.set(ylabel="share of the way to the goal", title="deepest place (stars: the goal)")
    for axes in (coverage, depth):
        axes.set_ylim(-0.03, 1.05)
        steps_below(axes)
    legend_beside(above)
    _draw_evaluations(below.subplots(), rows, colours)
    return figure


def _draw_evaluations(axes: Any, rows: Sequence[Row], colours: dict[str, str]) -> None:
    """Draws a line of dots for each run: filled by the share of episodes that reached the goal."""
    for i, row in enumerate(rows):
        colour = colours[row["agent"]]
        axes.plot([0, row["steps"]], [i, i], color=colour, linewidth=0.8, alpha=0.5)
        for step, success, _ in row["evaluations"]:
            filled = lighter(colour, 1 - success)
            axes.plot(step, i, "o", markerfacecolor=filled, markeredgecolor=colour, markersize=6)
    names = [f"{r['agent']}, layout {r['env_options']['layout']}, seed {r['seed']}" for r in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_title(
        "evaluations of each run, filled by the share of episodes that reach the goal", fontsize=10
    )
    steps_below(axes)


def describe(rows: Sequence[Row]) -> list[str]:
    """A line per run: places, depth, when the goal was first reached and the last evaluation."""
    lines = []
    for row in rows:
        goal = f"goal at {row['first_goal']:,}" if row["first_goal"] else "goal not reached"
        last = f", last evaluation {row['evaluations'][-1][1]:.0%}" if row["evaluations"] else ""
        lines.append(
            f"{row['agent']}, layout {row['env_options']['layout']}, seed {row['seed']}: {row['places']} of "
            f"{row['num_places']} places, depth {row['depth']} of {row['goal_distance']}, {goal}{last}; "
            f"{row['steps']:,} steps, {row['seconds'] / 60:.0f} min"
        )
    return lines


MAZE_11 = Figure(
    name="maze_11",
    paper="Fig. 13 (the goal of the Disco Maze)",
    claim="With RECODE's bonus MEME finds the goal, without any it stays near the start.",
    laptop_cost="6 runs of about 3 CPU-minutes, and 3 without bonus of about 10",
    paper_cost="1e8 steps in a maze of 21×21",
    folder=RESULTS / "maze_11",
    jobs=jobs_11,
    plot=plot,
    describe=describe,
    images=IMAGES,
)

MAZE_21 = Figure(
    name="maze_21",
    paper="Fig. 13 (the goal of the Disco Maze), at the paper's size",
    claim="MEME-RECODE-AP finds the goal of the 21×21 maze; without bonus, or with RND, it is not found.",
    laptop_cost="24 runs, 10 to 40 CPU-minutes each",
    paper_cost="1e8 steps",
    folder=RESULTS / "maze_21",
    jobs=jobs_21,
    plot=plot,
    describe=describe,
    images=IMAGES,
)

HELD_OUT = Figure(
    name="maze_21_held_out",
    paper="Fig. 13 (the goal of the Disco Maze), layouts that no setting was chosen on",
    claim="The settings for 21×21 mazes work in mazes that they were not chosen on.",
    laptop_cost="3 runs, about 20 CPU-minutes each",
    paper_cost="1e8 steps",
    folder=RESULTS / "maze_21_held_out",
    jobs=jobs_held_out,
    plot=plot,
    describe=describe,
    images=IMAGES,
)
