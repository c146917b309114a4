"""The memory following a moving 2-D distribution: short and long memories side by side.

At each time step 64 embeddings come from three blobs that circle slowly. Two memories see
them all; they differ in the discount γ alone (§3, "Adapting to non-stationarity"; the
appendix's toy on density estimation). The one that forgets keeps its counts where the data
are now; the one that does not remembers the whole ring. Atoms stay behind in both: it is the
counts that forget, and atoms without counts are the first to make room.

    python -m experiments.memory.moving_distribution

Maps are of the first seed, distances of all; they are left in results/memory/moving_distribution.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.jobs import new_figure, per_seed, save_picture
from softcount import store
from softcount.measure.machine import machine
from softcount.memory import RecodeConfig, RecodeMemory
from softcount.types import Array

NUM_STEPS = 400
MOMENTS = (20, 100, 200, 300, 400)
DISCOUNTS = {"short memory, γ = 0.9": 0.9, "long memory, γ = 0.999": 0.999}


@dataclass
class Record:
    """What one memory was like at the chosen moments, and how far its mass trailed at every step."""

    atoms: list[Array]
    counts: list[Array]
    trail: list[float]


def blobs(t: int, num_points: int, rng: np.random.Generator) -> Array:
    """Draws points of time step t: three blobs on a circle of radius 3, two thirds of a turn in all."""
    angles = 4.0 * np.pi / 3.0 * t / NUM_STEPS + np.array([0.0, 0.5, 1.0])
    centres = 3.0 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    which = rng.integers(3, size=num_points)
    return (centres[which] + 0.35 * rng.standard_normal((num_points, 2))).astype(np.float32)


def run(seed: int = 0) -> tuple[dict[str, Record], list[Array]]:
    """Feeds the stream to both memories; returns their records and the data of the moments."""
    rng = np.random.default_rng(seed)
    memories = {
        name: RecodeMemory(
            RecodeConfig(size=250, dim=2, count_discount=discount, insertion_probability=0.2, d2_step=1e-3),
            seed=seed,
        )
        for name, discount in DISCOUNTS.items()
    }
    records = {name: Record([], [], []) for name in memories}
    data = []
    for t in range(1, NUM_STEPS + 1):
        points = blobs(t, 64, rng)
        for name, memory in memories.items():
            memory.observe(points)
            records[name].trail.append(distance_of_means(memory, points))
            if t in MOMENTS:
                records[name].atoms.append(memory.atoms)
                records[name].counts.append(memory.counts)
        if t in MOMENTS:
            data.append(points)
        if t % 20 == 0 and sys.stderr.isatty():
            print(f"\r  time step {t} of {NUM_STEPS}", end="\n" if t == NUM_STEPS else "", file=sys.stderr)
    return records, data


def distance_of_means(memory: RecodeMemory, points: Array) -> float:
    """Returns how far the memory's centre of mass lies from that of the data."""
    counts = memory.counts
    centre = counts @ memory.atoms / counts.sum()
    return float(np.linalg.norm(centre - points.mean(axis=0)))


def draw(records: dict[str, Record], data: list[Array], trails: Mapping[str, Sequence[Any]]) -> Any:
    """Returns the figure: a row of moments for each memory, and the distances over time of every seed."""
    figure = new_figure(14, 8.4)
    from matplotlib.colors import LogNorm

    grid = figure.add_gridspec(3, len(MOMENTS), height_ratios=[3, 3, 1.7])
    rows = []
    for i, (name, record) in enumerate(records.items()):
        for j, moment in enumerate(MOMENTS):
            panel = figure.add_subplot(grid[i, j])
            rows.append(panel)
            panel.plot(*data[j].T, "x", color="#d1495b", markersize=4, alpha=0.7, zorder=3, rasterized=True)
            atoms, counts = record.atoms[j], record.counts[j]
            dots = panel.scatter(
                atoms[:, 0], atoms[:, 1], s=6 + 5 * np.sqrt(counts), c=np.maximum(counts, 1e-3),
                cmap="viridis_r", norm=LogNorm(1e-3, 300), linewidths=0, rasterized=True,
            )  # fmt: skip
            panel.set(xlim=(-4.5, 4.5), ylim=(-4.5, 4.5), aspect="equal", xticks=[], yticks=[])
            if i == 0:
                panel.set_title(f"time step {moment}")
            if j == 0:
                panel.set_ylabel(name)
    figure.colorbar(dots, ax=rows, label="count (at least 0.001)", shrink=0.7)
    below = figure.add_subplot(grid[2, :])
    for (name, lines), colour in zip(trails.items(), ("#33638d", "#e09f3e"), strict=True):
        for i, trail in enumerate(lines):
            below.plot(np.arange(1, NUM_STEPS + 1), trail, color=colour, label=name if i == 0 else None)
    below.set(xlabel="time step", ylabel="distance of means", xlim=(0, NUM_STEPS), ylim=(0, None))
    below.legend(frameon=False)
    return figure


def main(arguments: list[str] | None = None) -> None:
    """Runs both memories, saves distances and picture and says what is to be seen."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/memory"), help="folder of the numbers")
    parser.add_argument("--images", type=Path, default=Path("docs/images"), help="folder of the picture")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    print(f"Two memories watch three blobs circle: {NUM_STEPS} time steps of 64 embeddings.")
    runs = [run(seed) for seed in options.seeds]
    trails = {name: [np.round(records[name].trail, 4).tolist() for records, _ in runs] for name in DISCOUNTS}
    seconds = round(time.perf_counter() - start, 1)
    content = {"seeds": options.seeds, "seconds": seconds, "machine": machine(), "trails": trails}
    options.out.mkdir(parents=True, exist_ok=True)
    store.write_atomically(options.out / "moving_distribution.json", (json.dumps(content) + "\n").encode())
    picture, _ = save_picture(draw(*runs[0], trails), "moving_distribution", options.images)
    print("Distance between the memory's centre of mass and that of the data, mean of the last 100 steps:")
    for name, lines in trails.items():
        print(f"  {name:24} {per_seed(np.mean(trail[-100:]) for trail in lines)}")
    print(
        "The short memory keeps its counts under the blobs (red crosses), the long one along all their way.\n"
        f"Saved {picture} in {time.perf_counter() - start:.1f} s."
    )


if __name__ == "__main__":
    main()
