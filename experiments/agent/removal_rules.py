"""Which atom makes room, and what that does to exploration (Fig. 9), in small mazes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.agent.coverage import describe_runs, draw_runs
from experiments.agent.maze_runs import FOLDER, job, maze_config
from experiments.figure import Figure
from experiments.jobs import SEEDS, Job, Row
from softcount.memory.config import Removal

RULES: dict[str, Removal] = {
    "RECODE-AP": "inverse_square",
    "removal-inverse": "inverse",
    "removal-smallest": "smallest",
}
LABELS = {
    "RECODE-AP": "1/c² (the paper's)",
    "removal-inverse": "1/c",
    "removal-smallest": "smallest count",
}


def jobs() -> list[Job]:
    """Every rule with every seed; the paper's choice is the plain agent."""
    return [
        job(name, maze_config("MEME-RECODE-AP", seed, {"recode.memory.removal": removal}))
        for seed in SEEDS
        for name, removal in RULES.items()
    ]


def plot(rows: Sequence[Row]) -> Any:
    return draw_runs(rows, LABELS, "11×11 Disco Maze, three rules of removal")


def describe(rows: Sequence[Row]) -> list[str]:
    return describe_runs(rows, LABELS)


FIGURE = Figure(
    name="removal_rules",
    paper="Fig. 9",
    claim="All three rules of removal give a viable agent; 1/c² is the most robust.",
    laptop_cost="9 runs of 150,000 steps (3 shared with `bonuses`), about 2 CPU-minutes each",
    paper_cost="8 games × 3 rules × 6 seeds, 1e9 frames each",
    folder=FOLDER,
    jobs=jobs,
    plot=plot,
    describe=describe,
)
