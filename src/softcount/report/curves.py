"""From reports to curves: which numbers are drawn, under which titles, at which points.

A series keeps the rows that have its number. Long ones are thinned: of every stretch of
reports the lowest and the highest stay, so that no spike is lost, and so do both ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from softcount.metrics import ELAPSED, EPISODES_OF, METRICS, TIMING_PREFIX, by_group

MAX_POINTS = 600

Chart = tuple[str, str, str]
"""Name, title and kind of the number that a chart shows."""

GROUPS: dict[str, list[Chart]] = {
    group: [(metric.name, metric.title, metric.kind) for metric in metrics]
    for group, metrics in by_group().items()
}
OF_TASK: list[Chart] = [(m.name, m.of_task, m.kind) for m in METRICS if m.of_task is not None]
"""The charts of each task where there are several; runs report them as `metric/task`."""

FINAL: list[Chart] = [(m.name, m.compared, m.kind) for m in METRICS if m.compared is not None]
"""What is compared between runs: the last report that has the number."""

ROLES = {
    "inference": "Inference",
    "memory": "Memory",
    "actor": "Actor and world",
    "replay": "Replay",
    "relabel": "Relabelling",
    "learner_wait": "Waiting for the learner",
}
"""The shares of time that a run reports, as `time/<role>`, in the order of the loop."""


def groups_of(all_rows: Iterable[list[dict[str, Any]]]) -> dict[str, list[Chart]]:
    """Returns the groups of charts for some runs: `GROUPS`, and one for each task that they tell apart.

    >>> list(groups_of([[{"step": 5, "charts/episodes": 3, "charts/episodes/one": 2}]]))[-2:]
    ['Speed', 'Task one']
    """
    names = dict.fromkeys(name for rows in all_rows for row in rows for name in row)
    tasks = [name.removeprefix(EPISODES_OF) for name in names if name.startswith(EPISODES_OF)]
    return GROUPS | {
        f"Task {task}": [(f"{metric}/{task}", title, kind) for metric, title, kind in OF_TASK]
        for task in tasks
    }


def curves(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the steps and hours of all reports, and each series as indices into them and values.

    >>> curves([{"step": 5, "a": 1.0, "time/elapsed": 36.0}, {"step": 9}])["series"]
    {'a': {'at': [0], 'y': [1.0]}}
    """
    names = dict.fromkeys(name for row in rows for name in row)
    series = {}
    for name in names:
        if name != "step" and not name.startswith(TIMING_PREFIX):
            at = thin([(i, row[name]) for i, row in enumerate(rows) if name in row])
            series[name] = {"at": [i for i, _ in at], "y": [_short(y) for _, y in at]}
    return {"steps": [row["step"] for row in rows], "hours": _hours(rows), "series": series}


def thin(points: list[tuple[int, float | None]], limit: int = MAX_POINTS) -> list[tuple[int, float | None]]:
    """Keeps at most about `limit` points: both ends, the extremes of equal stretches, and gaps."""
    if len(points) <= limit:
        return points
    width = -(-len(points) // (limit // 2))
    kept = {0, len(points) - 1}
    for start in range(0, len(points), width):
        part = [(y, i) for i, (_, y) in enumerate(points[start : start + width], start) if y is not None]
        kept |= {min(part)[1], max(part)[1]} if part else {start}
    return [points[i] for i in sorted(kept)]


def steps_of_finals(rows: list[dict[str, Any]]) -> dict[str, int]:
    """Returns at which step each of the final numbers was taken.

    >>> steps_of_finals([{"step": 5, "eval/return": 1.0}, {"step": 9, "coverage/places": 3}])
    {'coverage/places': 9, 'eval/return': 5}
    """
    known = {name: [row["step"] for row in rows if row.get(name) is not None] for name, _, _ in FINAL}
    return {name: steps[-1] for name, steps in known.items() if steps}


def final_numbers(rows: list[dict[str, Any]]) -> dict[str, float | None]:
    """Returns the last known value of each number worth comparing; None where there is none."""
    finals: dict[str, float | None] = {"step": rows[-1]["step"] if rows else None}
    finals["hours"] = _hours(rows)[-1] if rows else None
    speeds = sorted(row["charts/SPS"] for row in rows if row.get("charts/SPS") is not None)
    finals["speed"] = speeds[len(speeds) // 2] if speeds else None
    for name, _, _ in FINAL:
        known = [row[name] for row in rows if row.get(name) is not None]
        finals[name] = known[-1] if known else None
    return finals


def shares_of_time(rows: list[dict[str, Any]]) -> dict[str, float]:
    """Returns which part of the acting thread's time each role took, by the last report.

    `learner` is beside these: how much of the same time the learner was at work, on its own thread.
    """
    last = rows[-1] if rows else {}
    shares = {role: last.get(f"{TIMING_PREFIX}{role}") for role in (*ROLES, "learner")}
    return {role: float(share) for role, share in shares.items() if share is not None}


def _hours(rows: list[dict[str, Any]]) -> list[float]:
    """Adds up the clocks of all processes that trained the run: each starts at 0."""
    hours, before, last = [], 0.0, 0.0
    for row in rows:
        now = row.get(ELAPSED)
        now = last if now is None else now
        if now < last:
            before += last
        last = now
        hours.append(round((before + now) / 3600, 6))
    return hours


def _short(value: float | None) -> float | None:
    """Seven digits are more than a chart can show."""
    return value if value is None or isinstance(value, int) else float(f"{value:.7g}")
