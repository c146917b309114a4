"""What messages advise: the nearest known name, and the command that installs what is missing."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """Returns which known name was probably meant, as the end of a sentence; nothing where none is near.

    >>> nearest("letal", ["lethal", "size"]), nearest("zzz", ["lethal", "size"])
    ("; did you mean 'lethal'?", '')
    """
    near = difflib.get_close_matches(name, list(known), 1, cutoff=0.4)
    return f"; did you mean {near[0]!r}?" if near else ""


def install(*extras: str) -> str:
    """Returns the command that installs extras; softcount is installed from a checkout (Decision 402).

    >>> install("agent", "atari")
    '`pip install ".[agent,atari]"` in a checkout of softcount'
    """
    wanted = f'".[{",".join(extras)}]"' if extras else "."
    return f"`pip install {wanted}` in a checkout of softcount"
