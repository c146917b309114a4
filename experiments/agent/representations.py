"""RECODE on different representations (Figs. 7, 20, 22), the maze seen whole or through a window.

The transformer of CASM and CASnotM is half as wide as the paper's, as in `representations_probe`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from experiments.agent.coverage import describe_runs, draw_agreement, draw_coverage
from experiments.agent.maze_runs import FIRST_LAYOUT, FOLDER, job, maze_config
from experiments.drawing import WIDTH, legend_beside, new_figure
from experiments.figure import Figure
from experiments.jobs import SEEDS, Job, Row
from softcount.presets import LAPTOP
from softcount.representations.casm import CasmConfig
from softcount.representations.gated_transformer import GatedTransformerConfig

KINDS = ("AP", "BYOL", "RANDOM", "CASnotM", "CASM")
SMALL = replace(
    LAPTOP.representation,
    casm=CasmConfig(transformer=GatedTransformerConfig(width=64, num_heads=4, hidden_sizes=(128,))),
)
LABELS = {f"{prefix}RECODE-{kind}": kind for prefix in ("", "window-") for kind in KINDS}


def jobs() -> list[Job]:
    """Every representation, whole and through a window of 5×5, seeds outermost."""
    found = []
    maze = {"size": 11, "observation": "palette"}
    for seed in SEEDS:
        for prefix, options in (("", {}), ("window-", {"window": 5})):
            for kind in KINDS:
                config = maze_config(
                    f"MEME-RECODE-{kind}",
                    seed,
                    {
                        "env_options": {**maze, "layout": FIRST_LAYOUT + seed, **options},
                        "representation": SMALL if kind.startswith("CAS") else LAPTOP.representation,
                    },
                )
                found.append(job(f"{prefix}RECODE-{kind}", config))
    return found


def plot(rows: Sequence[Row]) -> Any:
    figure = new_figure(WIDTH, 7)
    panels = figure.subplots(2, 2)
    for (left, right), prefix, title in zip(panels, ("", "window-"), ("the whole maze", "a window of 5×5")):
        part = [row for row in rows if row["name"].startswith("window-") == bool(prefix)]
        if part:
            draw_coverage(left, part, LABELS)
            draw_agreement(right, part, LABELS)
        left.set_title(f"RECODE on each representation, seeing {title}", fontsize=10)
    legend_beside(figure, columns=3)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    lines = describe_runs(rows, LABELS)
    return [f"{row}: {line}" for row, line in zip(dict.fromkeys(row["name"] for row in rows), lines)]


FIGURE = Figure(
    name="representations",
    paper="Figs. 7, 20, 22",
    claim="Where little is seen CASM is ahead of AP and CASnotM; BYOL embeddings work, AP's work better.",
    laptop_cost="30 runs of 150,000 steps (3 shared with `bonuses`), 1 to 4 CPU-minutes each",
    paper_cost="8 tasks × 4 agents × 3 seeds, 1e10 frames; AP and BYOL: 8 games × 2 × 6 seeds, 1e9 frames",
    folder=FOLDER,
    jobs=jobs,
    plot=plot,
    describe=describe,
)
