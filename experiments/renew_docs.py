"""Keeps the numbers of the reproduction pages equal to the results.

    python -m experiments.renew_docs docs/reproduction/*.md

A block that starts with ```text NAME holds what the figure of that name says of its results; each is
written anew. A test checks that nothing is out of date.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from experiments import jobs, registry
from experiments.figure import Figure

BLOCK = re.compile(r"^```text (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def renewed(page: str, root: Path = Path()) -> str:
    """Returns the page with every block written from the results under `root`."""
    return BLOCK.sub(lambda match: f"```text {match[1]}\n{numbers(match[1], root)}\n```", page)


def numbers(name: str, root: Path = Path()) -> str:
    """Returns what a figure says of the results that are there."""
    figure = registry.find(name)
    if not isinstance(figure, Figure):
        raise ValueError(f"{name} is made elsewhere and keeps its numbers there")
    todo = figure.jobs()
    rows = jobs.read(todo, root / figure.folder)
    if not rows:
        return "not run"
    note = [] if len(rows) == len(todo) else [f"({len(rows)} of {len(todo)} runs)"]
    return "\n".join(note + figure.describe(rows))


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.write_text(renewed(path.read_text()))
