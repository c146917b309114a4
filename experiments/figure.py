"""What a figure is: where the paper has it, what it claims, what it costs, how it is made and drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.jobs import Job, Row


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A figure made of jobs: each leaves a file, all of them together are drawn."""

    name: str
    """What follows `softcount figure`."""
    paper: str
    """The paper's figure or section, or what it lacks."""
    claim: str
    """What should be seen."""
    laptop_cost: str
    """What the laptop scale takes."""
    paper_cost: str
    """What the paper's own scale takes."""
    folder: Path
    """Where its jobs leave their files."""
    jobs: Callable[[], Sequence[Job]]
    """Its measurements, the most telling first."""
    plot: Callable[[Sequence[Row]], Any]
    """Draws the rows that are there; returns a matplotlib figure."""
    describe: Callable[[Sequence[Row]], list[str]]
    """Says the same in numbers, one line each."""


@dataclass(frozen=True, kw_only=True)
class Command:
    """A figure that another module makes: its commands, what they leave and what they draw."""

    name: str
    """What follows `softcount figure`."""
    paper: str
    """The paper's figure or section, or what it lacks."""
    claim: str
    """What should be seen."""
    laptop_cost: str
    """What the laptop scale takes."""
    paper_cost: str
    """What the paper's own scale takes."""
    commands: tuple[tuple[str, ...], ...]
    """Modules with their arguments, in order."""
    plot_command: tuple[str, ...] | None
    """The one that only draws, if there is one."""
    results: tuple[Path, ...]
    """Files that it leaves; it was run if they are all there."""
    images: tuple[Path, ...]
    """Pictures that it draws."""
