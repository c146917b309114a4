"""How much the memory's knobs matter for exploration (what the paper lacks), in small mazes.

One knob at a time below and above the preset's value. The same on recorded walks, with more values and
much cheaper, is in `knobs_walks.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.agent.coverage import area, describe_runs
from experiments.agent.maze_runs import FOLDER, job, maze_config
from experiments.drawing import new_figure
from experiments.figure import Figure
from experiments.jobs import SEEDS, Job, Row, by
from softcount.presets import LAPTOP

KNOBS: dict[str, tuple[Any, ...]] = {
    "neighbours": (3, 30),
    "far_tolerance": (0.05, 0.8),
    "insertion_probability": (0.01, 0.3),
    "count_discount": (0.999, 0.99999),
    "kernel_epsilon": (0.001, 1.0),
    "size": (150, 1200),
}
SYMBOLS = {
    "neighbours": "k",
    "far_tolerance": "κ",
    "insertion_probability": "η",
    "count_discount": "γ",
    "kernel_epsilon": "ε",
    "size": "|M|",
}


def jobs() -> list[Job]:
    """The plain agent, then one knob turned at a time; seeds outermost."""
    found = []
    for seed in SEEDS:
        found.append(job("RECODE-AP", maze_config("MEME-RECODE-AP", seed)))
        for knob, values in KNOBS.items():
            for value in values:
                turned = {f"recode.memory.{knob}": value}
                if knob == "size":
                    turned["recode.memory.warmup_atoms"] = value
                found.append(job(f"{knob}-{value}", maze_config("MEME-RECODE-AP", seed, turned)))
    return found


def plot(rows: Sequence[Row]) -> Any:
    figure = new_figure(11, 3.2)
    groups = by(rows, "name")
    for axes, knob in zip(figure.subplots(1, len(KNOBS), sharey=True), KNOBS):
        preset = getattr(LAPTOP.recode.memory, knob)
        names = {value: f"{knob}-{value}" for value in KNOBS[knob]} | {preset: "RECODE-AP"}
        for i, value in enumerate(sorted(names)):
            areas = [area(row) for row in groups.get(names[value], [])]
            axes.plot([i] * len(areas), areas, "o", color="#d1495b" if value == preset else "#1b6ca8")
        axes.set_xticks(range(len(names)), [f"{value:g}" for value in sorted(names)], fontsize=8)
        axes.set(xlabel=SYMBOLS[knob], ylim=(0, 1), xlim=(-0.5, len(names) - 0.5))
    figure.axes[0].set_ylabel("mean coverage over the run")
    figure.suptitle("One knob of the memory at a time (red: the preset), one dot per seed", fontsize=10)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    return describe_runs(rows, {})


FIGURE = Figure(
    name="knobs",
    paper="not in the paper",
    claim="Exploration does not hang on one value of k, κ, η, γ, ε or |M|.",
    laptop_cost="39 runs of 150,000 steps (3 shared with `bonuses`), about 2 CPU-minutes each",
    paper_cost="not planned",
    folder=FOLDER,
    jobs=jobs,
    plot=plot,
    describe=describe,
)
