"""Forgetting on and off while the embedding is learned (Fig. 11), in small mazes.

The preset's embedding is made to settle (LayerNorm, a slow copy, a rate that falls). So there are two
pairs: that one, and one that keeps moving: the latest parameters embed, at a constant rate. What
happens with frozen embeddings (Fig. 12) is in `frozen.py`, on recorded walks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.agent.coverage import describe_runs, draw_runs
from experiments.agent.maze_runs import FOLDER, job, maze_config
from experiments.figure import Figure
from experiments.jobs import SEEDS, Job, Row

FOREVER = {"recode.memory.count_discount": 1.0}
MOVING = {"trainer.schedule": "constant", "trainer.acting": "latest"}
SETTINGS: dict[str, dict[str, Any]] = {
    "RECODE-AP": {},
    "discount-off": FOREVER,
    "moving-discount-on": MOVING,
    "moving-discount-off": {**MOVING, **FOREVER},
}
LABELS = {
    "RECODE-AP": "γ = 0.9999, embedding settles",
    "discount-off": "γ = 1, embedding settles",
    "moving-discount-on": "γ = 0.9999, embedding keeps moving",
    "moving-discount-off": "γ = 1, embedding keeps moving",
}


def jobs() -> list[Job]:
    """Every setting with every seed, seeds outermost."""
    return [
        job(name, maze_config("MEME-RECODE-AP", seed, fields))
        for seed in SEEDS
        for name, fields in SETTINGS.items()
    ]


def plot(rows: Sequence[Row]) -> Any:
    return draw_runs(rows, LABELS, "11×11 Disco Maze, with and without forgetting")


def describe(rows: Sequence[Row]) -> list[str]:
    return describe_runs(rows, LABELS)


FIGURE = Figure(
    name="discount",
    paper="Fig. 11",
    claim="Without discount of the counts exploration is worse while the embedding is learned.",
    laptop_cost="12 runs of 150,000 steps (3 shared with `bonuses`), about 2 CPU-minutes each",
    paper_cost="8 games × 2 discounts × 6 seeds, 1e9 frames each",
    folder=FOLDER,
    jobs=jobs,
    plot=plot,
    describe=describe,
)
