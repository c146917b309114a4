"""How much the memory's knobs matter for counting (what the paper lacks), on recorded walks.

One knob at a time, AP learned on the way, with a head start and without, three seeds. Measured: the rank
correlation of what is paid with the true-count bonus, mean over the walk, and how much more a rare
place is paid than a common one. The last panel is the rule of removal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.agent.knobs import SYMBOLS
from experiments.drawing import COLOURS, WIDTH, legend_beside, new_figure
from experiments.figure import Figure
from experiments.jobs import RESULTS, Job, Row
from experiments.memory.walk_streams import Mode, make_stream, memory_config, replay, walk_jobs
from softcount.memory import RecodeMemory

SWEEPS: dict[str, tuple[Any, ...]] = {
    "neighbours": (1, 3, 5, 10, 20, 40, 80),
    "far_tolerance": (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6),
    "insertion_probability": (0.005, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0),
    "count_discount": (0.9, 0.99, 0.999, 0.9999, 1.0),
    "kernel_epsilon": (1e-4, 1e-3, 1e-2, 1e-1, 1.0),
    "size": (50, 100, 200, 400, 800, 1600, 3200),
    "removal": ("inverse_square", "inverse", "smallest"),
}
NAMES = SYMBOLS | {"removal": "removal"}
RULES = {"inverse_square": "1/c²", "inverse": "1/c", "smallest": "smallest"}
MODES: dict[Mode, str] = {
    "settling": "embedding has a head start",
    "cold": "memory filled before it has learned",
}


def measure(mode: Mode, seed: int) -> dict[str, Any]:
    """All memories on one stream."""
    stream = make_stream(seed, "ap", mode)
    found = []
    for knob, values in SWEEPS.items():
        for value in values:
            fields = {knob: value} | ({"warmup_atoms": value} if knob == "size" else {})
            result = replay(stream, RecodeMemory(memory_config(**fields), seed=seed))
            found.append({"knob": knob, "value": value, **result})
    return {"results": found}


def jobs() -> list[Job]:
    return walk_jobs("mode", MODES, measure)


def values_of(rows: Sequence[Row], mode: str, knob: str, field: str) -> dict[Any, list[float]]:
    """Collects a measure by value of a knob, a number per seed."""
    found: dict[Any, list[float]] = {value: [] for value in SWEEPS[knob]}
    for row in rows:
        for result in row["results"] if row["mode"] == mode else ():
            if result["knob"] == knob and result[field] is not None:
                found[result["value"]].append(result[field])
    return found


def plot(rows: Sequence[Row]) -> Any:
    """Both measures by value of each knob, a line of panels per knob, one dot per seed."""
    figure = new_figure(WIDTH, 1.6 * len(SWEEPS) + 0.8)
    panels = figure.subplots(len(SWEEPS), 2, sharey="col")
    preset = memory_config()
    for line, knob in enumerate(SWEEPS):
        for axes, field in zip(panels[line], ("agreement", "contrast"), strict=True):
            for colour, mode in zip(COLOURS, MODES):
                values = values_of(rows, mode, knob, field)
                means = [np.mean(x) if x else np.nan for x in values.values()]
                axes.plot(range(len(values)), means, color=colour, label=MODES[mode])
                for i, seeds in enumerate(values.values()):
                    axes.plot([i] * len(seeds), seeds, ".", color=colour, alpha=0.6)
            axes.axvline(SWEEPS[knob].index(getattr(preset, knob)), color="0.8", zorder=0)
            axes.set_xticks(
                range(len(SWEEPS[knob])), [RULES.get(v, f"{v}") for v in SWEEPS[knob]], fontsize=9
            )
        panels[line, 0].set_ylabel(NAMES[knob], fontsize=11)
        panels[line, 1].set_yscale("log")
    panels[0, 0].set_title("rank correlation with true-count bonus", fontsize=10)
    panels[0, 1].set_title("pay of rare over common places", fontsize=10)
    legend_beside(figure, columns=2)
    figure.supxlabel("value of the knob (grey line: the preset), one dot per seed", fontsize=10)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    """Means over seeds by value."""
    lines = []
    for mode in MODES:
        for knob in SWEEPS:
            found = values_of(rows, mode, knob, "agreement")
            shown = ", ".join(f"{value}: {np.mean(x):.2f}" for value, x in found.items() if x)
            lines += [f"{mode}, {NAMES[knob]}: {shown}"] if shown else []
    return lines


FIGURE = Figure(
    name="knobs_walks",
    paper="not in the paper",
    claim="Counting does not hang on one value of k, κ, η, γ, ε or |M|, nor on the rule of removal.",
    laptop_cost="6 streams × 41 memories, about 4 CPU-minutes in all",
    paper_cost="not planned",
    folder=RESULTS / "knobs_walks",
    jobs=jobs,
    plot=plot,
    describe=describe,
)
