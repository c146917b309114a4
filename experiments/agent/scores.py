"""Scores of many runs as the paper aggregates them (Figs. 1, 5, 7, 17, 18, Table 5).

Reads the evaluations of every run that `softcount figure NAME --scale paper` trains. A run's score at a step
is that of its last evaluation until then. Of tasks and seeds come the mean human-normalised score, the same
capped, and the interquartile mean, each with its stratified bootstrap interval. Every agent must have
played the same tasks with all of its seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.drawing import WIDTH, colours_of, legend_beside, new_figure, steps_below
from experiments.figure import Figure
from experiments.jobs import RESULTS, Job, Row
from softcount import scores
from softcount.runs.folder import CONFIG
from softcount.runs.run import read_config, read_reports
from softcount.types import Array

SUITES: dict[str, Mapping[str, scores.Range]] = {"atari": scores.ATARI, "dm_hard_8": scores.DM_HARD_8}
NUM_POINTS = 40
MEASURES: dict[str, tuple[str, Callable[[Array], Array], Callable[[Array], float]]] = {
    "mean": ("human-normalised score", lambda x: x, scores.mean),
    "capped": ("capped human-normalised score", lambda x: np.clip(x, 0, 1), scores.mean),
    "iqm": ("interquartile mean", lambda x: x, scores.interquartile_mean),
}
"""Name of each aggregate: how it is called, what happens to a score first, how scores are put together."""


class Course(NamedTuple):
    """The evaluations of one run."""

    agent: str
    task: str
    seed: int
    steps: Array
    returns: Array

    def at(self, steps: Array) -> Array:
        """Returns the latest return known at each step; NaN before the first."""
        index = np.searchsorted(self.steps, steps, side="right") - 1
        return np.where(index >= 0, self.returns[np.maximum(index, 0)], np.nan)


def read_courses(folders: Sequence[Path]) -> list[Course]:
    """Returns the evaluations of every run below the folders, in the order of their paths."""
    runs = sorted(path.parent for folder in folders for path in folder.glob(f"**/{CONFIG}"))
    courses = []
    for run in runs:
        config = read_config(run)
        rows = [(row["step"], row["eval/return"]) for row in read_reports(run) if "eval/return" in row]
        if rows:
            steps, returns = np.array(rows, np.float64).T
            courses.append(Course(config.agent, config.env.split("/")[-1], config.seed, steps, returns))
    if not courses:
        raise ValueError(f"no evaluated runs below {', '.join(map(str, folders))}")
    return courses


def table(
    courses: Sequence[Course], agent: str, ranges: Mapping[str, scores.Range], step: float
) -> dict[str, list[float]]:
    """Returns the scores of an agent by task, one per seed, at a step; all tasks have the same seeds."""
    own = [course for course in courses if course.agent == agent]
    found = {
        task: {c.seed: float(c.at(np.array([step]))[0]) for c in own if c.task == task}
        for task in ranges
        if any(course.task == task for course in courses)
    }
    seeds = sorted({course.seed for course in own})
    missing = [
        f"{task} seed {seed}" for task, by_seed in found.items() for seed in seeds if seed not in by_seed
    ]
    if missing:
        raise ValueError(f"{agent} has no run of {', '.join(missing)}")
    return {task: [by_seed[seed] for seed in seeds] for task, by_seed in found.items()}


def aggregate(courses: Sequence[Course], ranges: Mapping[str, scores.Range]) -> dict[str, Any]:
    """Returns for every agent its scores by task at the end and the course of every aggregate."""
    unknown = {course.task for course in courses} - set(ranges)
    if unknown:
        raise ValueError(f"no human score is known for {', '.join(sorted(unknown))}")
    first = max(course.steps[0] for course in courses)
    last = min(course.steps[-1] for course in courses)
    if last < first:
        raise ValueError(
            f"the shortest run ends at step {last:,.0f}, before another's first evaluation at {first:,.0f}"
        )
    steps = np.unique(np.linspace(first, last, NUM_POINTS).round())
    found: dict[str, Any] = {"steps": steps.tolist(), "agents": {}}
    for agent in dict.fromkeys(course.agent for course in courses):
        tables = [table(courses, agent, ranges, step) for step in steps]
        normalised = [
            np.array([[scores.human_normalised(x, task, ranges) for x in row] for task, row in one.items()]).T
            for one in tables
        ]
        found["agents"][agent] = {
            "final": tables[-1],
            **{
                name: [list(scores.with_interval(prepare(x), put_together)) for x in normalised]
                for name, (_, prepare, put_together) in MEASURES.items()
            },
        }
    return found


def plot(rows: Sequence[Row]) -> Any:
    """Draws each aggregate over steps with its interval as a band."""
    (found,) = rows
    figure = new_figure(WIDTH, 3.6)
    colours = colours_of(found["agents"])
    for axes, (name, (title, *_)) in zip(figure.subplots(1, len(MEASURES)), MEASURES.items()):
        for agent, own in found["agents"].items():
            colour = colours[agent]
            value, low, high = np.array(own[name]).T
            axes.plot(found["steps"], value, color=colour, label=agent)
            axes.fill_between(found["steps"], low, high, color=colour, alpha=0.2, linewidth=0)
        axes.set_title(title, fontsize=10)
        steps_below(axes)
    legend_beside(figure)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    """Says what every agent ends with: aggregates with intervals, then its tasks."""
    (found,) = rows
    lines = []
    for agent, own in found["agents"].items():
        ends = {name: scores.Interval(*own[name][-1]) for name in MEASURES}
        shown = "; ".join(f"{name} {x.value:.2f} [{x.low:.2f}, {x.high:.2f}]" for name, x in ends.items())
        lines.append(f"{agent}: {shown}")
        lines += [
            f"    {task}: {np.mean(row):,.1f} ± {np.std(row):,.1f}" for task, row in own["final"].items()
        ]
    return lines


def measure(suite: str, folders: Sequence[Path]) -> dict[str, Any]:
    """Aggregates the runs of a suite that were trained here."""
    try:
        return aggregate(read_courses(folders), SUITES[suite])
    except ValueError as error:
        raise ValueError(f"{error}; `softcount figure scores_{suite} --scale paper` trains them") from error


def jobs(suite: str, *folders: str) -> list[Job]:
    """One job: all runs together."""
    found = [Path("runs/paper") / folder for folder in folders]
    return [Job(key=f"scores_{suite}", seed=0, measure=partial(measure, suite, found))]


ATARI = Figure(
    name="scores_atari",
    paper="Fig. 17 (and the scores of Fig. 4)",
    claim="Over eight games RECODE is above NGU, capped and not.",
    laptop_cost="not possible: needs the paper's runs",
    paper_cost="8 games × 4 agents × 6 seeds, 1e9 frames each",
    folder=RESULTS,
    jobs=partial(jobs, "atari", "atari", "atari_baselines"),
    plot=plot,
    describe=describe,
)

DM_HARD_8 = Figure(
    name="scores_dm_hard_8",
    paper="Figs. 1, 5, 7, 18 and Table 5",
    claim="RECODE with CASM is above RECODE with AP, and both above NGU, over eight tasks.",
    laptop_cost="not possible: needs the paper's runs and its servers",
    paper_cost="8 tasks × 4 agents × 3 seeds, 1e10 frames each",
    folder=RESULTS,
    jobs=partial(jobs, "dm_hard_8", "dm_hard_8"),
    plot=plot,
    describe=describe,
)
