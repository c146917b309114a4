"""Robustness to observation noise (Fig. 6): a maze whose picture carries a panel of white noise.

Who takes prediction error for novelty (RND, and NGU through it) never gets used to the panel; AP's
embeddings drop it. The policy sees the noise too, which makes learning harder for everybody. The same
agents in the same mazes without the panel, also in colours rather than palette entries, tell how much of a
result is the noise's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from experiments.agent.coverage import area, describe_runs, draw_coverage
from experiments.agent.maze_runs import FIRST_LAYOUT, FOLDER, job, maze_config
from experiments.drawing import WIDTH, legend_beside, new_figure
from experiments.figure import Figure
from experiments.jobs import SEEDS, Job, Row, by, per_seed

AGENTS = ("RECODE-AP", "NGU-AP", "RND")
ENVS = {"colours": "disco-maze", "noise": "noisy-disco-maze"}
TITLES = {"colours": "without noise", "noise": "with a panel of white noise"}
LABELS = {f"{name}-{agent}": agent for name in ENVS for agent in AGENTS}


def jobs() -> list[Job]:
    """Every bonus with and without the panel, seeds outermost."""
    return [
        job(
            f"{name}-{agent}",
            maze_config(
                f"MEME-{agent}",
                seed,
                {
                    "env": env,
                    "env_options": {"size": 11, "layout": FIRST_LAYOUT + seed, "observation": "rgb"},
                },
            ),
        )
        for seed in SEEDS
        for name, env in ENVS.items()
        for agent in AGENTS
    ]


def plot(rows: Sequence[Row]) -> Any:
    """Coverage over steps, without and with the panel."""
    figure = new_figure(WIDTH, 4.2)
    for axes, name in zip(figure.subplots(1, 2, sharey=True), ENVS):
        part = [row for row in rows if row["name"].startswith(f"{name}-")]
        if part:
            draw_coverage(axes, part, LABELS)
        axes.set_title(f"11×11 Disco Maze {TITLES[name]}", fontsize=10)
    legend_beside(figure)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    """The usual numbers of both, and how much of the coverage is left with noise."""
    lines = describe_runs(
        rows, {name: f"{label}, {TITLES[name.split('-')[0]]}" for name, label in LABELS.items()}
    )
    groups = by(rows, "name")
    for agent in AGENTS:
        pairs = [
            area(noisy) / area(clear)
            for noisy in groups.get(f"noise-{agent}", [])
            for clear in groups.get(f"colours-{agent}", [])
            if clear["seed"] == noisy["seed"]
        ]
        lines += [f"{agent}: area with noise over area without {per_seed(pairs)}"] if pairs else []
    return lines


FIGURE = Figure(
    name="noise",
    paper="Fig. 6",
    claim="Noise in the observation hurts NGU (through RND), RECODE hardly.",
    laptop_cost="18 runs of 150,000 steps, about 3 CPU-minutes each",
    paper_cost="noisy Montezuma's Revenge, 2 agents × 6 seeds, 1e9 frames each",
    folder=FOLDER,
    jobs=jobs,
    plot=plot,
    describe=describe,
)
