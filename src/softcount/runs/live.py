"""What a training run shows of itself: its places and atoms, for whoever watches.

    RUN/live/asked                touched again and again by a watcher
    RUN/live/state.safetensors    places and atoms as of a report, while somebody asks

Reports are numbers and come often; a checkpoint has everything and comes rarely. A run that nobody
watches writes nothing here. What cannot be written is left out: a view must not stop a run. Decision 403.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Any, NamedTuple

from softcount import store
from softcount.types import State

FOLDER, ASKED, SHOWN = "live", "asked", "state.safetensors"
PATIENCE = 60.0
"""Seconds after which nobody is taken to be watching any more."""


class Shown(NamedTuple):
    """Places and atoms at a step."""

    step: int
    coverage: State | None
    memories: dict[str, State]
    """By task; the only one is called ''."""


def ask(run: Path) -> None:
    """Asks a run to show itself with its next reports; one whose folder cannot be written stays as it is."""
    with contextlib.suppress(OSError):
        (run / FOLDER).mkdir(exist_ok=True)
        (run / FOLDER / ASKED).touch()


def is_asked(run: Path) -> bool:
    """Whether somebody asked a short while ago."""
    try:
        return time.time() - (run / FOLDER / ASKED).stat().st_mtime < PATIENCE
    except OSError:
        return False


def show_if_asked(run: Path, loop: Any) -> None:
    """Writes places and atoms of a loop, if somebody asked for them."""
    if not is_asked(run):
        return
    memories = loop.roles.memory.memories()
    state = {
        "step": loop.num_steps,
        "coverage": None if loop.coverage is None else loop.coverage.state_dict(),
        "tasks": list(memories),
        "memories": list(memories.values()),
    }
    with contextlib.suppress(OSError):
        store.save(run / FOLDER / SHOWN, state, kind="live", makes_folder=False)


def read(run: Path) -> Shown | None:
    """Returns what a run showed last; None where there is nothing, or nothing whole."""
    try:
        state = store.load(run / FOLDER / SHOWN, kind="live")
        memories = dict(zip(state["tasks"], state["memories"], strict=True))
        return Shown(state["step"], state["coverage"], memories)
    except (store.StoreError, KeyError, TypeError, ValueError):
        return None
