"""Why RND on AP's embeddings fails (Fig. 21, its explanation): novelty or drift? On recorded walks.

RND's error on an embedding is large where the state is new, and also where the embedding of a known
state has moved. RECODE on the same embeddings, RNDonAP with AP frozen, with AP moving on, and RND on
pixels are asked what they would pay for every place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.drawing import WIDTH, colours_of, legend_beside, new_figure, steps_below
from experiments.figure import Figure
from experiments.jobs import RESULTS, Job, Row, per_seed
from experiments.memory.walk_streams import (
    HEAD_START,
    Mode,
    Stream,
    draw_courses,
    judge,
    make_stream,
    memory_config,
    replay,
    summarise,
    walk_jobs,
)
from softcount.memory import RecodeMemory

SETTINGS: dict[str, tuple[str, Mode]] = {
    "RECODE, AP frozen": ("ap", "frozen"),
    "RECODE, AP moving": ("ap", "moving"),
    "RNDonAP, AP frozen": ("rnd-on-ap", "frozen"),
    "RNDonAP, AP moving": ("rnd-on-ap", "moving"),
    "RND on pixels": ("rnd", "moving"),
}


def measure(name: str, seed: int) -> dict[str, Any]:
    """The course of the agreement of one bonus."""
    kind, mode = SETTINGS[name]
    stream = make_stream(seed, kind, mode)
    if kind == "ap":
        return replay(stream, RecodeMemory(memory_config(), seed=seed))
    return surprise_course(stream)


def surprise_course(stream: Stream) -> dict[str, Any]:
    """Judges errors like rewards: only their order over places and their ratios count."""
    assert stream.surprises is not None
    course = [
        judge(surprises.mean(axis=0), stream.visits_at(int(moment)))
        for surprises, moment in zip(stream.surprises, stream.moments)
        if moment > HEAD_START
    ]
    return summarise(course)


def jobs() -> list[Job]:
    return walk_jobs("name", SETTINGS, measure)


def plot(rows: Sequence[Row]) -> Any:
    """The course of the agreement, and how much more a rare place is paid."""
    figure = new_figure(WIDTH, 4.2)
    left, right = figure.subplots(1, 2, width_ratios=[1.2, 1])
    for i, (name, colour) in enumerate(colours_of(SETTINGS).items()):
        group = [row for row in rows if row["name"] == name]
        if not group:
            continue
        draw_courses(left, (row["course"] for row in group), colour, name)
        contrasts = [row["contrast"] for row in group if row["contrast"] is not None]
        right.plot([i] * len(contrasts), contrasts, "o", color=colour)
    left.set_ylabel("rank correlation with true-count bonus")
    steps_below(left, "steps")
    legend_beside(figure, columns=3)
    right.set_xticks(range(len(SETTINGS)), [_below(name) for name in SETTINGS], fontsize=8)
    right.set(ylabel="pay of rare over common places", yscale="log")
    return figure


def _below(name: str) -> str:
    """Breaks a name into short lines."""
    return name.replace(", ", "\n").replace(" on ", "\non ").replace("AP ", "AP\n")


def describe(rows: Sequence[Row]) -> list[str]:
    lines = []
    for name in SETTINGS:
        group = [row for row in rows if row["name"] == name]
        if not group:
            continue
        means = per_seed(row["agreement"] for row in group)
        contrasts = per_seed(row["contrast"] for row in group)
        lines.append(f"{name}: mean rank correlation {means}; pay of rare over common places {contrasts}")
    return lines


FIGURE = Figure(
    name="rnd_walks",
    paper="Fig. 21 (its explanation)",
    claim="RND on moving embeddings cannot tell drift from novelty; on frozen ones it does better.",
    laptop_cost="15 streams, about 2 CPU-minutes in all",
    paper_cost="see `rnd_on_ap`",
    folder=RESULTS / "rnd_walks",
    jobs=jobs,
    plot=plot,
    describe=describe,
)
