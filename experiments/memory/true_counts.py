"""Soft counts against true visits (§3: N(e) approximates the visits of a state), on recorded walks.

At the end of the walks every place is drawn four times and scored. From the mean reward r follows
the soft count N = (1/r − n₀)². A memory that counts orders places as their true visits do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.drawing import COLOURS, WIDTH, legend_beside, new_figure, steps_below
from experiments.figure import Figure
from experiments.jobs import RESULTS, Job, Row, per_seed
from experiments.memory.walk_streams import (
    Mode,
    make_stream,
    memory_config,
    replay,
    steps_of,
    walk_jobs,
)
from softcount.memory import RecodeMemory

SETTINGS: dict[str, tuple[str, Mode]] = {
    "AP, learned before": ("ap", "frozen"),
    "AP, learned on the way": ("ap", "settling"),
    "random embedding": ("random", "frozen"),
}


def measure(name: str, seed: int) -> dict[str, Any]:
    """One memory on one stream: the course of its agreement, and scores and visits at the end."""
    kind, mode = SETTINGS[name]
    memory = RecodeMemory(memory_config(), seed=seed)
    return replay(make_stream(seed, kind, mode), memory, keep=True)


def soft_counts(scores: Sequence[float]) -> Any:
    """Returns N from rewards: r = 1 / (√N + n₀)."""
    return np.maximum(1 / np.array(scores) - memory_config().reward_constant, 0) ** 2


def jobs() -> list[Job]:
    return walk_jobs("name", SETTINGS, measure)


def plot(rows: Sequence[Row]) -> Any:
    """A dot a place, by embedding; and how the agreement grew."""
    figure = new_figure(WIDTH, 6.4)
    panels = list(figure.subplots(2, 2).flat)
    for colour, axes, name in zip(COLOURS, panels, SETTINGS):
        for row in (row for row in rows if row["name"] == name):
            axes.plot(np.array(row["visits"]) + 1, soft_counts(row["scores"]), ".", color=colour, alpha=0.6)
            panels[3].plot(steps_of(row["course"]), row["course"], color=colour,
                           label=name)  # fmt: skip
        axes.set(xscale="log", yscale="log", xlabel="true visits + 1", ylabel="soft count N")
        axes.set_title(name, fontsize=10)
    panels[3].set_ylabel("rank correlation with true visits")
    steps_below(panels[3], "steps")
    legend_beside(figure)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    lines = []
    for name in SETTINGS:
        group = [row for row in rows if row["name"] == name]
        if not group:
            continue
        ends = per_seed(row["course"][-1] for row in group)
        contrasts = per_seed((row["contrast"] for row in group), 1)
        lines.append(
            f"{name}: rank correlation at the end {ends}; pay of rare over common places {contrasts}"
        )
    return lines


FIGURE = Figure(
    name="true_counts",
    paper="§3, Eq. 2 (no figure)",
    claim="The soft count of a place follows its true number of visits.",
    laptop_cost="9 memories on recorded walks, about 1 CPU-minute in all",
    paper_cost="not possible: Atari has no true counts of what matters",
    folder=RESULTS / "true_counts",
    jobs=jobs,
    plot=plot,
    describe=describe,
)
