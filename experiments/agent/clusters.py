"""The distribution of clusters over the Disco Maze as training goes on (Fig. 13), 11×11.

Each atom of the memory stands for the place whose embedding is nearest. Early on nearly all stand for the
start; the claim is that they come to cover the maze evenly. Evenness is exp(entropy) of the shares of
places over their number: 1 if all places have equally many, 1/49 if one has all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.agent.bonuses import jobs as bonus_jobs
from experiments.agent.maze_runs import FOLDER
from experiments.drawing import COLOURS, new_figure, steps_below
from experiments.figure import Figure
from experiments.jobs import Row, per_seed

NUM_MAPS = 6
MEASURES = {"atoms": "atoms", "counts": "their counts", "visits": "visits since the start"}


def evenness(numbers: Sequence[float]) -> float:
    """Returns the effective share of places: exp(entropy) / number.

    >>> evenness([2, 2, 0, 0])
    0.5
    """
    p = np.array(numbers, float)
    if p.sum() == 0:
        return 0.0
    p = p[p > 0] / p.sum()
    return round(float(np.exp(-(p * np.log(p)).sum()) / len(numbers)), 12)


def plot(rows: Sequence[Row]) -> Any:
    """Maps of the first seed over time, and evenness over steps of every seed."""
    figure = new_figure(14, 6)
    above, below = figure.subfigures(2, 1, height_ratios=[1, 1.1])
    snapshots = rows[0]["snapshots"]
    chosen = np.linspace(0, len(snapshots) - 1, min(NUM_MAPS, len(snapshots))).round().astype(int)
    for axes, index in zip(np.ravel(above.subplots(1, len(chosen))), chosen):
        image = np.full(rows[0]["map_shape"], np.nan)
        numbers = np.array(snapshots[index].get("atoms", [0] * rows[0]["num_places"]))
        for cell, number in zip(rows[0]["cells"], numbers):
            image[tuple(cell)] = number
        axes.set_facecolor("0.25")
        axes.imshow(image, cmap="viridis", vmin=0, vmax=max(1.0, float(np.percentile(numbers, 98))))
        axes.set(xticks=[], yticks=[], title=f"{snapshots[index]['step']:,} steps")
    above.suptitle(f"atoms per place, seed {rows[0]['seed']} (each map has its own scale)", fontsize=10)
    for axes, (name, label) in zip(below.subplots(1, len(MEASURES)), MEASURES.items()):
        for colour, row in zip(COLOURS, rows):
            points = [(s["step"], evenness(s[name])) for s in row["snapshots"] if name in s]
            axes.plot(*np.array(points).T, color=colour, label=f"seed {row['seed']}")
        steps_below(axes)
        axes.set(ylabel="evenness over places", title=label, ylim=(0, 1))
    figure.axes[-1].legend(frameon=False, fontsize=8)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    """Evenness of the first snapshot that has atoms and of the last."""
    lines = []
    for name, label in MEASURES.items():
        first = [next(evenness(s[name]) for s in row["snapshots"] if name in s) for row in rows]
        last = [evenness(row["snapshots"][-1][name]) for row in rows]
        lines.append(f"evenness of {label}: {per_seed(first)} at first, {per_seed(last)} at the end")
    with_atoms = [sum(n > 0 for n in row["snapshots"][-1]["atoms"]) for row in rows]
    total = rows[0]["num_places"]
    return [*lines, f"places with an atom at the end: {' / '.join(map(str, with_atoms))} of {total}"]


FIGURE = Figure(
    name="clusters",
    paper="Fig. 13",
    claim="As the agent explores, clusters come to cover the whole maze evenly.",
    laptop_cost="3 runs of 150,000 steps, shared with `bonuses`",
    paper_cost="1e8 steps in a maze of 21×21",
    folder=FOLDER,
    jobs=lambda: bonus_jobs(("RECODE-AP",)),
    plot=plot,
    describe=describe,
)
