"""The live view of a run in the terminal: progress, returns, coverage, memory, losses, time."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any

from softcount.metrics import METRICS, by_group


class Display:
    """Shows reports as they come: a live table in a terminal, one line each elsewhere."""

    def __init__(self, title: str, total_steps: int) -> None:
        self.title, self.total_steps = title, total_steps
        self.is_read = True
        self._live: Any = None
        self._progress: Any = None
        self._started = time.monotonic()
        self._first_step: int | None = None

    def __enter__(self) -> Display:
        if sys.stdout.isatty():
            from rich.live import Live
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            self._progress = Progress(
                TextColumn("[bold]{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[note]}"),
            )
            self._task = self._progress.add_task(self.title, total=self.total_steps, note="")
            self._live = Live(self._progress, refresh_per_second=4)
            self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.__exit__(kind, error, trace)

    def say(self, line: str) -> None:
        """Writes a line; where nobody reads any more, `is_read` says so and nothing is written again."""
        if not self.is_read:
            return
        try:
            print(line, flush=True)
        except BrokenPipeError:
            self.is_read = False
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115  or Python's last flush would complain

    def show(self, step: int, metrics: Mapping[str, float]) -> None:
        """Draws one report."""
        if self._first_step is None:
            self._first_step = step
        speed = metrics.get("charts/SPS", 0.0)
        left = (self.total_steps - step) / speed if speed > 0 else float("nan")
        note = f"{speed:,.0f} steps/s, {_clock(left)} left"
        if self._live is None:
            self.say(f"{self.title}  {step:,}/{self.total_steps:,}  {note}  {_summary(metrics)}")
            return
        self._progress.update(self._task, completed=step, note=note)
        from rich.console import Group

        self._live.update(Group(self._progress, _table(metrics)))


def _summary(metrics: Mapping[str, float]) -> str:
    """The handful of numbers that one line has room for."""
    shown = [(m.short, metrics[m.name]) for m in METRICS if m.short and m.name in metrics]
    return "  ".join(f"{label} {_number(value)}" for label, value in shown)


def _table(metrics: Mapping[str, float]) -> Any:
    from rich.columns import Columns
    from rich.table import Table

    tables = []
    for title, group in by_group().items():
        shown = [(metric.title, metrics[metric.name]) for metric in group if metric.name in metrics]
        if shown:
            table = Table(title=title, show_header=False, title_justify="left", expand=False)
            for name, value in shown:
                table.add_row(name, _number(value))
            tables.append(table)
    return Columns(tables)


def _number(value: float) -> str:
    if value != value:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 or float(value).is_integer() else f"{value:.4g}"


def _clock(seconds: float) -> str:
    if seconds != seconds:
        return "?"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
