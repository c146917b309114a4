"""Pre-trained against concurrently trained embeddings, with and without discount (Fig. 12), on walks.

Three ways to get an embedding: learned before on other walks and frozen; learned on the way and
settling (the laptop preset: a slow copy, a falling rate); learned on the way and moving on (latest
parameters, constant rate). Measured as in `knobs_walks`. `cold` is the settling one with a memory that is
filled before the embedding has learned anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.drawing import COLOURS, WIDTH, legend_beside, new_figure, steps_below
from experiments.figure import Figure
from experiments.jobs import RESULTS, Job, Row
from experiments.memory.walk_streams import (
    Mode,
    describe_courses,
    draw_courses,
    make_stream,
    memory_config,
    replay,
    walk_jobs,
)
from softcount.memory import RecodeMemory

MODES: tuple[Mode, ...] = ("frozen", "settling", "moving", "cold")
DISCOUNTS = (0.99, 0.999, 0.9999, 1.0)


def measure(mode: Mode, seed: int) -> dict[str, Any]:
    """All discounts on one stream."""
    stream = make_stream(seed, "ap", mode)
    results = [
        {"discount": d, **replay(stream, RecodeMemory(memory_config(count_discount=d), seed=seed))}
        for d in DISCOUNTS
    ]
    return {"results": results}


def jobs() -> list[Job]:
    return walk_jobs("mode", MODES, measure)


def plot(rows: Sequence[Row]) -> Any:
    """The course of the agreement, thin lines seeds and thick ones their means."""
    figure = new_figure(WIDTH, 6)
    for axes, mode in zip(figure.subplots(2, 2, sharey="row").flat, MODES):
        group = [row for row in rows if row["mode"] == mode]
        for colour, discount in zip(COLOURS, DISCOUNTS):
            found = [r["course"] for row in group for r in row["results"] if r["discount"] == discount]
            draw_courses(axes, found, colour, f"γ = {discount}")
        axes.set_title(f"embedding {mode}", fontsize=10)
        steps_below(axes, "steps")
    figure.supylabel("rank correlation with true-count bonus", fontsize=10)
    legend_beside(figure)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    lines = []
    for mode in MODES:
        for discount in DISCOUNTS:
            found = [
                r for row in rows if row["mode"] == mode for r in row["results"] if r["discount"] == discount
            ]
            lines += describe_courses(f"{mode}, γ = {discount}", found)
    return lines


FIGURE = Figure(
    name="frozen",
    paper="Fig. 12",
    claim="With frozen pre-trained embeddings counting works without discount too.",
    laptop_cost="12 streams × 4 memories, about 2 CPU-minutes in all",
    paper_cost="Montezuma's Revenge, 2 frozen settings × 6 seeds beside RECODE-AP's runs, 1e9 frames each",
    folder=RESULTS / "frozen",
    jobs=jobs,
    plot=plot,
    describe=describe,
)
