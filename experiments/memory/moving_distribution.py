"""The memory following a moving 2-D distribution: short and long memories side by side.

At each time step 64 embeddings come from three blobs that circle slowly. Two memories see
them all; they differ in the discount γ alone (§3, "Adapting to non-stationarity"; the
appendix's toy on density estimation). The one that forgets keeps its counts where the data
are now; the one that does not remembers the whole ring. Atoms stay behind in both: it is the
counts that forget, and atoms without counts are the first to make room.

Maps are of the first seed, distances of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.drawing import COLOURS, new_figure
from experiments.figure import Figure
from experiments.jobs import SEEDS, Job, Row, per_seed
from softcount.memory import RecodeConfig, RecodeMemory
from softcount.types import Array

NUM_STEPS = 400
MOMENTS = (20, 100, 200, 300, 400)
DISCOUNTS = {"short memory, γ = 0.9": 0.9, "long memory, γ = 0.999": 0.999}


def blobs(t: int, num_points: int, rng: np.random.Generator) -> Array:
    """Draws points of time step t: three blobs on a circle of radius 3, two thirds of a turn in all."""
    angles = 4.0 * np.pi / 3.0 * t / NUM_STEPS + np.array([0.0, 0.5, 1.0])
    centres = 3.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    which = rng.integers(3, size=num_points)
    return (centres[which] + 0.35 * rng.standard_normal((num_points, 2))).astype(np.float32)


def measure(seed: int) -> dict[str, Any]:
    """Feeds the stream to both memories; returns the moments, and how far each mass trailed at every step."""
    rng = np.random.default_rng(seed)
    memories = {
        name: RecodeMemory(
            RecodeConfig(size=250, dim=2, count_discount=discount, insertion_probability=0.2, d2_step=1e-3),
            seed=seed,
        )
        for name, discount in DISCOUNTS.items()
    }
    found: dict[str, Any] = {name: {"atoms": [], "counts": [], "trail": []} for name in memories}
    data = []
    for t in range(1, NUM_STEPS + 1):
        points = blobs(t, 64, rng)
        for name, memory in memories.items():
            memory.observe(points)
            found[name]["trail"].append(round(distance_of_means(memory, points), 4))
            if t in MOMENTS:
                found[name]["atoms"].append(memory.atoms.astype(np.float64).round(3).tolist())
                found[name]["counts"].append(memory.counts.round(4).tolist())
        if t in MOMENTS:
            data.append(points.astype(np.float64).round(3).tolist())
    return {"memories": found, "data": data}


def distance_of_means(memory: RecodeMemory, points: Array) -> float:
    """Returns how far the memory's centre of mass lies from that of the data."""
    counts = memory.counts
    centre = counts @ memory.atoms / counts.sum()
    return float(np.linalg.norm(centre - points.mean(axis=0)))


def jobs() -> list[Job]:
    return [Job(key=f"seed{seed}", seed=seed, measure=partial(measure, seed)) for seed in SEEDS]


def plot(rows: Sequence[Row]) -> Any:
    """Draws a row of moments for each memory, and the distances over time of every seed."""
    from matplotlib.colors import LogNorm

    figure = new_figure(14, 8.4)
    grid = figure.add_gridspec(3, len(MOMENTS), height_ratios=[3, 3, 1.7])
    panels, data = [], [np.array(points) for points in rows[0]["data"]]
    for i, (name, record) in enumerate(rows[0]["memories"].items()):
        for j, moment in enumerate(MOMENTS):
            panel = figure.add_subplot(grid[i, j])
            panels.append(panel)
            panel.plot(*data[j].T, "x", color=COLOURS[1], markersize=4, alpha=0.7, zorder=3, rasterized=True)
            atoms, counts = np.array(record["atoms"][j]), np.array(record["counts"][j])
            dots = panel.scatter(
                atoms[:, 0], atoms[:, 1], s=6 + 5 * np.sqrt(counts), c=np.maximum(counts, 1e-3),
                cmap="viridis_r", norm=LogNorm(1e-3, 300), linewidths=0, rasterized=True,
            )  # fmt: skip
            panel.set(xlim=(-4.5, 4.5), ylim=(-4.5, 4.5), aspect="equal", xticks=[], yticks=[])
            if i == 0:
                panel.set_title(f"time step {moment}")
            if j == 0:
                panel.set_ylabel(name)
    figure.colorbar(dots, ax=panels, label="count (at least 0.001)", shrink=0.7)
    below = figure.add_subplot(grid[2, :])
    for name, colour in zip(DISCOUNTS, ("#33638d", "#e09f3e"), strict=True):
        for i, row in enumerate(rows):
            trail = row["memories"][name]["trail"]
            below.plot(np.arange(1, len(trail) + 1), trail, color=colour, label=name if i == 0 else None)
    below.set(xlabel="time step", ylabel="distance of means", xlim=(0, NUM_STEPS), ylim=(0, None))
    below.legend(frameon=False)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    """How far each memory's centre of mass lies from that of the data."""
    return [
        f"{name}: distance of means over the last 100 steps "
        f"{per_seed(np.mean(row['memories'][name]['trail'][-100:]) for row in rows)}"
        for name in DISCOUNTS
    ]


FIGURE = Figure(
    name="moving_distribution",
    paper="Fig. 10 (the same claim, moving blobs)",
    claim="A memory that forgets keeps its counts where the data are now.",
    laptop_cost="seconds",
    paper_cost="the same",
    folder=Path("results/memory/moving_distribution"),
    jobs=jobs,
    plot=plot,
    describe=describe,
    images=Path("docs/images"),
)
