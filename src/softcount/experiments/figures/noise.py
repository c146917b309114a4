"""Robustness to observation noise (Fig. 6): a maze whose picture carries a panel of white noise.

Who takes prediction error for novelty (RND, and NGU through it) never gets used to the panel; AP's
embeddings drop it. The policy sees the noise too, which makes learning harder for everybody: true
counts show by how much. 200,000 steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from softcount.experiments.figures.agent_runs import FIRST_LAYOUT, FOLDER, job, maze_config
from softcount.experiments.figures.coverage import describe_runs, draw_runs
from softcount.experiments.figures.figure import Figure
from softcount.experiments.figures.jobs import SEEDS, Job, Row

AGENTS = ("RECODE-AP", "NGU-AP", "RND", "COUNT")
LABELS = {f"noise-{agent}": agent for agent in AGENTS} | {"noise-COUNT": "true counts"}


def jobs() -> list[Job]:
    """Every bonus with every seed, seeds outermost."""
    return [
        job(
            f"noise-{agent}",
            maze_config(
                f"MEME-{agent}",
                seed,
                env="noisy-disco-maze",
                env_options={"size": 11, "layout": FIRST_LAYOUT + seed},
                steps=200_000,
            ),
        )
        for seed in SEEDS
        for agent in AGENTS
    ]


def plot(rows: Sequence[Row]) -> Any:
    return draw_runs(rows, LABELS, "11×11 Disco Maze with a panel of white noise")


def describe(rows: Sequence[Row]) -> list[str]:
    return describe_runs(rows, LABELS)


FIGURE = Figure(
    name="noise",
    paper="Fig. 6",
    claim="Noise in the observation hurts NGU (through RND), RECODE hardly.",
    laptop_cost="12 runs of 200,000 steps, about 5 CPU-minutes each",
    paper_cost="noisy Montezuma's Revenge, 2 agents × 6 seeds, 1e9 frames each",
    folder=FOLDER,
    jobs=jobs,
    plot=plot,
    describe=describe,
)
