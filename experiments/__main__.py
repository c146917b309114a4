"""Runs what is missing of a figure and draws it; `list` shows them all. `softcount figure` comes here."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from experiments import figure


def main(arguments: Sequence[str] | None = None) -> int:
    """Makes or lists figures; errors of the user are one line, not a traceback."""
    parser = argparse.ArgumentParser("softcount figure", description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME", help="names of figures, or `list`")
    parser.add_argument(
        "--scale",
        choices=("laptop", "paper"),
        default="laptop",
        help="laptop (default): run and draw it here; paper: only print the commands of the paper's own runs",
    )
    parser.add_argument("--plot-only", action="store_true", help="draw what is there, run nothing")
    parser.add_argument("--seeds", type=int, nargs="+", help="run these seeds only")
    parser.add_argument("--only", metavar="TEXT", help="run only what has this in the name of its file")
    parsed = parser.parse_args(arguments)
    try:
        for name in parsed.names:
            if name == "list":
                print(figure.listing())
            elif parsed.scale == "paper":
                print(figure.paper_scale_of(name))
            else:
                figure.make(name, seeds=parsed.seeds, only=parsed.only, plot_only=parsed.plot_only)
    except (ValueError, OSError, RuntimeError, ImportError, MemoryError) as error:
        print(f"softcount figure: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
