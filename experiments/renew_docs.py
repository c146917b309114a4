"""Keeps the numbers of the pages equal to the results.

    python -m experiments.renew_docs        all pages of docs/

A block that starts with ```text NAME, or a table below <!-- figure NAME -->, holds what the figure of that
name says of its results; each is written anew. A test checks that nothing is out of date.
"""

from __future__ import annotations

import re
from pathlib import Path

from experiments.figure import find

BLOCK = re.compile(r"^```text ([\w-]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TABLE = re.compile(
    r"^<!-- figure ([\w-]+) -->\n((?:not run\n|\(\d+ of \d+ runs\)\n\n?)?(?:\|.*\n)*)", re.MULTILINE
)


def renewed(page: str) -> str:
    """Returns the page with every block and table written from the results."""
    page = BLOCK.sub(lambda match: f"```text {match[1]}\n{numbers(match[1])}\n```", page)
    return TABLE.sub(lambda match: f"<!-- figure {match[1]} -->\n{numbers(match[1], gap=2)}\n", page)


def numbers(name: str, gap: int = 1) -> str:
    """Returns what a figure says of the results that are there, `gap` line ends below how many are."""
    figure = find(name)
    rows, num = figure.rows(), len(figure.jobs())
    if not rows:
        return "not run"
    note = "" if len(rows) == num else f"({len(rows)} of {num} runs)" + gap * "\n"
    return note + "\n".join(figure.describe(rows))


def main(docs: Path = Path("docs")) -> None:
    """Renews all pages, and says which have changed."""
    for path in sorted(docs.glob("**/*.md")):
        before = path.read_text()
        after = renewed(before)
        if after != before:
            path.write_text(after)
            print(f"renewed {path}")


if __name__ == "__main__":
    main()
