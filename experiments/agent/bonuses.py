"""The paper's bonuses against each other on the same agent (Fig. 4; RNDonAP: Fig. 21), in small mazes.

MEME with each bonus of the paper, with true counts (the limit of counting) and with none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.agent.coverage import describe_runs, draw_runs
from experiments.agent.maze_runs import FOLDER, job, maze_config
from experiments.figure import Figure
from experiments.jobs import SEEDS, Job, Row

AGENTS = ("RECODE-AP", "NGU-AP", "RND", "EMM-AP", "RNDonAP", "COUNT", "none")
LABELS = {"COUNT": "true counts", "none": "no bonus"}


def jobs(agents: Sequence[str] = AGENTS) -> list[Job]:
    """Every bonus with every seed, seeds outermost."""
    return [
        job(agent, maze_config("MEME" if agent == "none" else f"MEME-{agent}", seed))
        for seed in SEEDS
        for agent in agents
    ]


def plot(rows: Sequence[Row]) -> Any:
    return draw_runs(rows, LABELS, "11×11 Disco Maze, MEME with different bonuses")


def describe(rows: Sequence[Row]) -> list[str]:
    return describe_runs(rows, LABELS)


FIGURE = Figure(
    name="bonuses",
    paper="Fig. 4",
    claim="With the same agent and representation, RECODE explores more than NGU, RND and episodic memory.",
    laptop_cost="21 runs of 150,000 steps, about 2 CPU-minutes each",
    paper_cost="8 games × 4 agents × 6 seeds, 1e9 frames each",
    folder=FOLDER,
    jobs=jobs,
    plot=plot,
    describe=describe,
)

RND_ON_AP = Figure(
    name="rnd_on_ap",
    paper="Fig. 21",
    claim="RND on AP's embeddings explores less than RECODE on them: drift looks like novelty to it.",
    laptop_cost="12 runs of 150,000 steps, shared with `bonuses`",
    paper_cost="8 games × 5 agents × 6 seeds, 1e9 frames each",
    folder=FOLDER,
    jobs=lambda: jobs(("RECODE-AP", "RNDonAP", "RND", "none")),
    plot=plot,
    describe=describe,
)
