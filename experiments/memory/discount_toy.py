"""The discount toy (Fig. 10): the counts follow the last distribution or all of history.

For t = 0 … 100 come 64 points uniform in the square of side 1 + √t. Measured at the end, with 100 atoms:
the centre of the counts' mass, which is 5.5 for the last square and 3.82 for all 101 together, and the
share of the mass in the square of side 5.5 at the origin: 0.25 for the last, 0.57 for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments.drawing import COLOURS, WIDTH, legend_beside, new_figure
from experiments.figure import Figure
from experiments.jobs import RESULTS, SEEDS, Job, Row, per_seed
from experiments.memory.streams import discount_toy
from softcount.memory import RecodeConfig, RecodeMemory

DISCOUNTS = (0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1.0)
SIDES = 1 + np.sqrt(np.arange(101))
LAST = (5.5, 0.25)
ALL = (float(SIDES.mean() / 2), float((np.minimum(5.5 / SIDES, 1) ** 2).mean()))
"""Centre and mass in the corner, of the last square and of all."""


def measure(discount: float, seed: int) -> dict[str, Any]:
    """Feeds the toy to one memory; returns its atoms, its counts and where their mass is."""
    config = RecodeConfig(
        size=100,
        dim=2,
        neighbours=5,
        warmup_atoms=20,
        count_discount=discount,
        insertion_probability=0.3,
        d2_step=1e-3,
    )
    memory = RecodeMemory(config, seed=seed)
    for points in discount_toy(seed=seed + 100):
        memory.observe(points)
    atoms, counts = memory.atoms, memory.counts
    return {
        "centre": float((counts @ atoms / counts.sum()).mean()),
        "mass_in_corner": float(counts[(atoms < 5.5).all(axis=1)].sum() / counts.sum()),
        "atoms": atoms.round(3).tolist(),
        "counts": counts.round(5).tolist(),
    }


def jobs() -> list[Job]:
    """Every discount with every seed."""
    return [
        Job(
            key=f"discount{discount}-seed{seed}",
            seed=seed,
            settings={"discount": discount, "points": 64 * 101},
            measure=partial(measure, discount, seed),
        )
        for seed in SEEDS
        for discount in DISCOUNTS
    ]


def plot(rows: Sequence[Row]) -> Any:
    """Atoms of seed 0 by discount, and where the mass is, of every seed."""
    figure = new_figure(WIDTH, 4.8)
    above, below = figure.subfigures(2, 1, height_ratios=[1, 2.2])
    first = {row["discount"]: row for row in rows if row["seed"] == 0}
    squares = above.subplots(1, len(first), squeeze=False)[0]
    for axes, (discount, row) in zip(squares, first.items(), strict=True):
        counts = np.array(row["counts"])
        axes.scatter(*np.array(row["atoms"]).T, s=400 * counts / counts.sum(), color=COLOURS[0], alpha=0.7,
                     linewidths=0)  # fmt: skip
        axes.set(xlim=(0, 11), ylim=(0, 11), aspect="equal", xticks=[], yticks=[])
        axes.set_title(f"γ = {discount}", fontsize=10)
    measures = {"centre": "centre of mass", "mass_in_corner": "mass in the corner"}
    panels = below.subplots(1, len(measures))
    for column, (axes, (name, label)) in enumerate(zip(panels, measures.items(), strict=True)):
        for row in rows:
            axes.plot(DISCOUNTS.index(row["discount"]), row[name], "o", color=COLOURS[0], alpha=0.6)
        axes.axhline(LAST[column], color=COLOURS[2], linestyle="--", label="the last square")
        axes.axhline(ALL[column], color=COLOURS[1], linestyle="--", label="all squares together")
        axes.set_xticks(range(len(DISCOUNTS)), [f"{discount:g}" for discount in DISCOUNTS])
        axes.set(xlabel="γ (one dot per seed)", ylabel=label)
    legend_beside(below)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    """Where the mass is, by discount."""
    lines = [f"last square: centre {LAST[0]}, in corner {LAST[1]}; all: {ALL[0]:.2f}, {ALL[1]:.2f}"]
    for discount in DISCOUNTS:
        group = [row for row in rows if row["discount"] == discount]
        centres = per_seed(row["centre"] for row in group)
        masses = per_seed(row["mass_in_corner"] for row in group)
        lines.append(f"γ = {discount}: centre {centres}; mass in corner {masses}")
    return lines


FIGURE = Figure(
    name="discount_toy",
    paper="Fig. 10",
    claim="A small discount follows the last distribution, a large one keeps all of history.",
    laptop_cost="21 memories, seconds in all",
    paper_cost="the same",
    folder=RESULTS / "discount_toy",
    jobs=jobs,
    plot=plot,
    describe=describe,
)
