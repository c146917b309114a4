"""RECODE's counts on different representations (Figs. 7, 20, 22), on recorded walks.

Each representation learns on the way from the same walks, the maze seen whole or through a window of
5×5; then RECODE counts with it. CASM and CASnotM with a transformer half as wide as the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from experiments.agent.representations import SMALL
from experiments.drawing import COLOURS, new_figure
from experiments.figure import Figure
from experiments.jobs import RESULTS, SEEDS, Job, Row, per_seed
from experiments.memory.walk_streams import draw_courses, make_stream, memory_config, replay
from softcount.memory import RecodeMemory

KINDS = {"ap": "AP", "casm": "CASM", "casnotm": "CASnotM", "byol": "BYOL", "random": "random"}
VIEWS: dict[str, int | None] = {"whole": None, "window": 5}


def measure(kind: str, view: str, seed: int) -> dict[str, Any]:
    """One representation, one memory."""
    stream = make_stream(seed, kind, "settling", VIEWS[view], SMALL)
    found = replay(stream, RecodeMemory(memory_config(), seed=seed))
    return {**found, "accuracy": stream.accuracy}


def jobs() -> list[Job]:
    return [
        Job(
            key=f"{view}-{kind}-seed{seed}",
            seed=seed,
            settings={"kind": kind, "view": view, "steps": 96_000},
            measure=partial(measure, kind, view, seed),
        )
        for seed in SEEDS
        for view in VIEWS
        for kind in KINDS
    ]


def plot(rows: Sequence[Row]) -> Any:
    """The course of the agreement by representation."""
    figure = new_figure(11, 4)
    titles = {"whole": "seeing the whole maze", "window": "seeing a window of 5×5"}
    for axes, view in zip(figure.subplots(1, 2, sharey=True), VIEWS):
        for colour, (kind, label) in zip(COLOURS, KINDS.items()):
            group = [row["course"] for row in rows if (row["kind"], row["view"]) == (kind, view)]
            draw_courses(axes, group, colour, label)
        axes.set(xlabel="steps", title=titles[view], ylim=(-1, 1))
    figure.axes[0].set_ylabel("rank correlation with true-count bonus")
    figure.axes[0].legend(frameon=False, fontsize=8)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    lines = []
    for view in VIEWS:
        for kind, label in KINDS.items():
            group = [row for row in rows if (row["kind"], row["view"]) == (kind, view)]
            if not group:
                continue
            means = per_seed(row["agreement"] for row in group)
            ends = per_seed(row["course"][-1] for row in group)
            lines.append(f"{view}, {label}: rank correlation {means}; at the end {ends}")
    return lines


FIGURE = Figure(
    name="representation_walks",
    paper="Figs. 7, 20, 22",
    claim="Counts on AP, CASM and BYOL follow true visits, counts on random embeddings do not.",
    laptop_cost="30 streams, about 10 CPU-minutes in all",
    paper_cost="see `representations`",
    folder=RESULTS / "representation_walks",
    jobs=jobs,
    plot=plot,
    describe=describe,
)
