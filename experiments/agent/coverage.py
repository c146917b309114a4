"""Drawing and counting what training runs left: coverage over steps, and what their bonus is worth.

    coverage      share of the places visited so far
    area          its mean over the run: early discoveries count more
    agreement     that of `measure.scored_places` at one moment
    contrast      the same, median over the moments of the first half of the run that have new and known
                  places (later known places are paid less and less, and who covers a maze soon has no
                  such moments)

Thin lines are seeds, thick ones their means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from experiments.drawing import WIDTH, colours_of, draw_seeds, legend_beside, new_figure, steps_below
from experiments.jobs import Row, by, per_seed
from softcount.measure import scored_places
from softcount.types import Array


def agreement(snapshot: Mapping[str, Any]) -> float | None:
    """Returns how well the bonus orders places by their true visits; None where it scores no places."""
    if "scores" not in snapshot:
        return None
    return scored_places.agreement(snapshot["scores"], snapshot["visits"])


def contrast(row: Row) -> float | None:
    """Returns how many times as much new places are paid as known ones; None where no places are scored."""
    early = (snapshot for snapshot in row["snapshots"] if snapshot["step"] <= row["steps"] / 2)
    paid = (s for s in early if any(s.get("scores", [])))
    found = (scored_places.contrast(s["scores"], s["visits"]) for s in paid)
    ratios = [ratio for ratio in found if ratio is not None]
    return float(np.median(ratios)) if ratios else None


def coverage_at(row: Row, steps: Array) -> Array:
    """Returns the share of places first seen by each of these steps."""
    seen = np.sort([first for first in row["first_seen"] if first > 0])
    return np.asarray(np.searchsorted(seen, steps, side="right") / row["num_places"])


def area(row: Row) -> float:
    """Returns the mean coverage over the run."""
    return float(coverage_at(row, np.linspace(0, row["steps"], 1001)[1:]).mean())


def draw_coverage(axes: Any, rows: Sequence[Row], labels: Mapping[str, str]) -> None:
    """Draws coverage over steps."""
    colours = colours_of(by(rows, "name"))
    for name, group in by(rows, "name").items():
        steps = np.linspace(0, max(row["steps"] for row in group), 301)
        curves = np.array([coverage_at(row, steps) for row in group])
        draw_seeds(axes, steps, curves, colours[name], _label(name, labels, group))
    steps_below(axes)
    axes.set(ylabel="share of places visited", ylim=(0, 1.02))


def draw_agreement(axes: Any, rows: Sequence[Row], labels: Mapping[str, str]) -> None:
    """Draws the rank correlation of the bonus with the true-count bonus over steps."""
    colours = colours_of(by(rows, "name"))
    for name, group in by(rows, "name").items():
        colour, curves = colours[name], []
        for row in group:
            points = [(s["step"], agreement(s)) for s in row["snapshots"] if agreement(s) is not None]
            if points:
                curves.append(np.array(points, float).T)
                axes.plot(*curves[-1], color=colour, linewidth=0.7, alpha=0.5)
        if curves and len({len(curve[0]) for curve in curves}) == 1:
            mean = np.mean(curves, axis=0)
            axes.plot(*mean, color=colour, linewidth=2, label=_label(name, labels, group))
    if axes.get_ylim()[0] < 0:
        axes.axhline(0, color="0.7", linewidth=0.8)
    steps_below(axes)
    axes.set_ylabel("rank correlation with 1/√N")
    axes.set_ylim(top=1.02)


def draw_runs(rows: Sequence[Row], labels: Mapping[str, str], title: str) -> Any:
    """Returns the usual picture: coverage beside agreement."""
    figure = new_figure(WIDTH, 4.2)
    left, right = figure.subplots(1, 2)
    draw_coverage(left, rows, labels)
    draw_agreement(right, rows, labels)
    left.set_title(title, fontsize=10)
    right.set_title("does the bonus order places by true visits?", fontsize=10)
    legend_beside(figure, columns=3)
    return figure


def describe_runs(rows: Sequence[Row], labels: Mapping[str, str]) -> list[str]:
    """One line per setting, seeds side by side: places at the end, area, first goal, agreement, contrast."""
    lines = []
    for name, group in by(rows, "name").items():
        places = [sum(first > 0 for first in row["first_seen"]) for row in group]
        final = [agreement(row["snapshots"][-1]) for row in group]
        shown = "" if final[0] is None else f"; ρ {per_seed(final)}"
        contrasts = [contrast(row) for row in group]
        if any(value is not None for value in contrasts):
            shown += f"; new over known {per_seed(contrasts, 1)}"
        goals = " / ".join(f"{row['first_goal']:,}" if row["first_goal"] else "-" for row in group)
        areas = " / ".join(f"{area(row):.2f}" for row in group)
        lines.append(
            f"{labels.get(name, name)}: places {' / '.join(map(str, places))} of {group[0]['num_places']}; "
            f"area {areas}; goal first at {goals}{shown}"
        )
    return lines


def _label(name: str, labels: Mapping[str, str], group: Sequence[Row]) -> str:
    return f"{labels.get(name, name)} ({len(group)} seed{'s' * (len(group) > 1)})"
