"""The removal-strategy toy (Fig. 8): where atoms and counts end up after the data have stopped moving.

At time t come 64 points, uniform in the square of side min(100, t) with a corner at the origin. From
t = 100 on nothing changes, so atoms and counts should become uniform. The caption gives γ = 0.9999 and
nothing else. With 64 atoms and η = 0.5, two bandwidths are run with both units of the discount, so that
each can be told from the other:

    narrow   k = 5, d²_ema with step 1e-3              per point: Algorithm 1 to the letter
    wide     k = 20, step 1e-4, the package's defaults  per 64 points: one time step, the package's default

Measured: the mean coordinate of the atoms (uniform: 50), the share of atoms in the quarter at the
origin (uniform: 1/4), and the coefficient of variation of the counts (uniform: 0).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments.drawing import COLOURS, new_figure
from experiments.figure import Figure
from experiments.jobs import RESULTS, SEEDS, Job, Row
from experiments.memory.streams import removal_toy
from softcount.memory import RecodeConfig, RecodeMemory
from softcount.memory.config import Removal

RULES: dict[Removal, str] = {"inverse_square": "1/c²", "inverse": "1/c", "smallest": "smallest c"}
NARROW = {"neighbours": 5, "d2_step": 1e-3}
READINGS: dict[str, dict[str, Any]] = {
    "letter": {"embeddings_per_step": 1, **NARROW},
    "narrow": {"embeddings_per_step": 64, **NARROW},
    "wide-letter": {"embeddings_per_step": 1},
    "defaults": {"embeddings_per_step": 64},
}
TITLES = {
    "letter": "a discount per point, k = 5",
    "narrow": "a discount per time step, k = 5",
    "wide-letter": "a discount per point, k = 20",
    "defaults": "a discount per time step, k = 20",
}
MOMENTS = (50, 100, 300, 1000, 3000)
EVERY = 20


def measure(removal: Removal, reading: str, seed: int, moments: Sequence[int] = MOMENTS) -> dict[str, Any]:
    """Feeds the toy to one memory; returns its course, and atoms and counts at the moments."""
    config = RecodeConfig(
        size=64,
        dim=2,
        warmup_atoms=64,
        count_discount=0.9999,
        insertion_probability=0.5,
        removal=removal,
        **READINGS[reading],
    )
    memory = RecodeMemory(config, seed=seed)
    course, states = [], []
    for t, points in enumerate(itertools.islice(removal_toy(seed + 100), moments[-1]), start=1):
        memory.observe(points)
        if t % EVERY == 0:
            course.append([t, *describe_atoms(memory)])
        if t in moments:
            atoms, counts = memory.atoms.round(2).tolist(), memory.counts.round(4).tolist()
            states.append({"t": t, "atoms": atoms, "counts": counts})
    return {"course": course, "states": states if seed == 0 else []}


def describe_atoms(memory: RecodeMemory) -> tuple[float, float, float]:
    """Returns the mean coordinate, the share in the corner's quarter and the counts' variation."""
    atoms, counts = memory.atoms, memory.counts
    in_corner = float((atoms < 50).all(axis=1).mean())
    return float(atoms.mean()), in_corner, float(counts.std() / counts.mean())


def jobs() -> list[Job]:
    """Every rule in every reading with every seed."""
    return [
        Job(
            key=f"{reading}-{removal}-seed{seed}",
            seed=seed,
            settings={"reading": reading, "removal": removal, "points": 64 * MOMENTS[-1]},
            measure=partial(measure, removal, reading, seed),
        )
        for seed in SEEDS
        for reading in READINGS
        for removal in RULES
    ]


def plot(rows: Sequence[Row]) -> Any:
    """Atoms over time in the reading to the letter, and the course of all three measures in every one."""
    figure = new_figure(13, 18)
    heights = [3.0] * len(RULES) + [2.4] * len(READINGS)
    grid = figure.add_gridspec(len(heights), len(MOMENTS) * 3, height_ratios=heights)
    for i, removal in enumerate(RULES):
        shown = [r for r in rows if r["states"] and (r["reading"], r["removal"]) == ("letter", removal)]
        for j, state in enumerate(shown[0]["states"] if shown else []):
            axes = figure.add_subplot(grid[i, 3 * j : 3 * j + 3])
            atoms, counts = np.array(state["atoms"]), np.array(state["counts"])
            axes.scatter(
                *atoms.T, s=1 + 1500 * counts / counts.sum(), color=COLOURS[i], alpha=0.7, linewidths=0
            )
            axes.set(xlim=(0, 100), ylim=(0, 100), aspect="equal", xticks=[], yticks=[])
            if i == 0:
                axes.set_title(f"t = {state['t']}", fontsize=10)
            if j == 0:
                axes.set_ylabel(RULES[removal])
    names = ("mean coordinate of atoms", "share of atoms in the corner", "variation of counts")
    for row, reading in enumerate(READINGS):
        for column, (name, target) in enumerate(zip(names, (50, 0.25, 0))):
            axes = figure.add_subplot(grid[3 + row, 5 * column : 5 * column + 5])
            for colour, removal in zip(COLOURS, RULES):
                _draw_course(axes, rows, reading, removal, column, colour)
            axes.axhline(target, color="0.5", linestyle=":", linewidth=1)
            axes.set(xscale="log", xlabel="t", ylabel=name, title=TITLES[reading])
    figure.axes[-3 * len(READINGS)].legend(frameon=False, fontsize=8)
    return figure


def _draw_course(
    axes: Any, rows: Sequence[Row], reading: str, removal: Removal, column: int, colour: str
) -> None:
    group = [r for r in rows if (r["reading"], r["removal"]) == (reading, removal)]
    if not group:
        return
    courses = np.array([row["course"] for row in group])
    for course in courses:
        axes.plot(course[:, 0], course[:, 1 + column], color=colour, linewidth=0.7, alpha=0.5)
    mean = courses.mean(axis=0)
    axes.plot(mean[:, 0], mean[:, 1 + column], color=colour, linewidth=2, label=RULES[removal])


def describe(rows: Sequence[Row]) -> list[str]:
    """The three measures at the end, mean over seeds and over the last tenth of the run."""
    lines = []
    for reading in READINGS:
        for removal, label in RULES.items():
            group = [r for r in rows if (r["reading"], r["removal"]) == (reading, removal)]
            ends = [np.array(r["course"])[-len(r["course"]) // 10 :, 1:].mean(axis=0) for r in group]
            values = "; ".join(
                f"{name} {' / '.join(f'{end[i]:.{digits}f}' for end in ends)}"
                for i, (name, digits) in enumerate(
                    (("mean coordinate", 1), ("in corner", 2), ("variation", 2))
                )
            )
            lines.append(f"{reading}, {label}: {values}")
    return lines


FIGURE = Figure(
    name="removal_toy",
    paper="Fig. 8",
    claim="Removing the smallest count leaves atoms in the corner; only 1/c² evens out atoms and counts.",
    laptop_cost="36 memories, seconds in all",
    paper_cost="the same",
    folder=RESULTS / "removal_toy",
    jobs=jobs,
    plot=plot,
    describe=describe,
)
