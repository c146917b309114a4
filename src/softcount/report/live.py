"""Runs as they are now: what `softcount watch` shows, read from their folders again and again.

Reports come from `metrics.jsonl`. Places and atoms are those that a run shows while it is watched, or of its
last checkpoint, whichever is newer. What has not changed on disk is not read again.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from softcount import checkpoint
from softcount.envs.worlds import World
from softcount.measure.coverage import Coverage
from softcount.report.atoms import describe_memories
from softcount.report.foreign import build_worlds, coverage_of, memories_of
from softcount.report.page import describe_page, describe_reports
from softcount.report.read_run import NO_CHECKPOINT, name_folders, read_fields, read_rows
from softcount.report.world import describe_worlds
from softcount.runs import live
from softcount.runs.folder import CHECKPOINTS, METRICS
from softcount.types import Array, State

Stamp = tuple[int, int] | None


class LiveRuns:
    """Some runs, described as they are whenever they are asked for."""

    def __init__(self, folders: Sequence[Path]) -> None:
        fields = [read_fields(folder) for folder in folders]
        names = name_folders([folder.resolve() for folder in folders])
        self.runs = [LiveRun(*each) for each in zip(folders, names, fields, strict=True)]

    def stamp(self) -> str:
        """Changes whenever something on disk has."""
        return "-".join(str(part) for run in self.runs for part in run.stamps())

    def keep_asking(self) -> None:
        """Asks the runs that are still to train to go on showing themselves."""
        for run in self.runs:
            if not run.is_done:
                live.ask(run.folder)

    def describe(self) -> dict[str, Any]:
        """Returns everything the page shows."""
        described = [run.describe() for run in self.runs]
        self.keep_asking()
        return describe_page(described, [run.rows for run in self.runs]) | {"live": {"now": time.time()}}


class LiveRun:
    """One run, and what was read of it last."""

    def __init__(self, folder: Path, name: str, fields: dict[str, Any]) -> None:
        self.folder, self.name, self.fields = folder, name, fields
        self.rows: list[dict[str, Any]] = []
        self._axes: dict[str, Array] = {}
        self._worlds: tuple[bytes, list[World] | None] | None = None
        self._shown: tuple[tuple[Stamp, Stamp], dict[str, Any]] | None = None

    @property
    def is_done(self) -> bool:
        """Whether it has reported its last step."""
        return bool(self.rows) and self.rows[-1]["step"] >= self.fields.get("steps", 0)

    def stamps(self) -> tuple[Stamp, Stamp, Stamp]:
        """Says when reports, shown state and checkpoint were last written."""
        files = (METRICS, f"{live.FOLDER}/{live.SHOWN}", f"{CHECKPOINTS}/{checkpoint.MANIFEST}")
        reports, shown, saved = (_stamp(self.folder / file) for file in files)
        return reports, shown, saved

    def describe(self) -> dict[str, Any]:
        """Returns what the page shows of it."""
        reports, *state = self.stamps()
        notes: list[str] = []
        self.rows = read_rows(self.folder / METRICS, notes)
        if self._shown is None or self._shown[0] != (state[0], state[1]):
            self._shown = (state[0], state[1]), self._describe_state()
        described = describe_reports(self.name, self.fields, self.rows)
        reported_at = None if reports is None else reports[0] / 1e9
        return described | {"notes": notes, "reported_at": reported_at, **self._shown[1]}

    def _describe_state(self) -> dict[str, Any]:
        """Returns places and atoms, and the step that they are of."""
        try:
            step, places, memories = self._read_state()
            coverage = coverage_of(places)
            return {
                "checkpoint": step,
                "worlds": describe_worlds(coverage, self._build_worlds(coverage)),
                "memories": describe_memories(memories, self._axes),
            }
        except (checkpoint.CheckpointError, KeyError, TypeError, ValueError, IndexError, OSError) as error:
            has_none = not (self.folder / CHECKPOINTS / checkpoint.MANIFEST).is_file()
            missing = {"missing": NO_CHECKPOINT if has_none else f"This cannot be shown: {error}."}
            return {"checkpoint": None, "worlds": [missing], "memories": [missing]}

    def _read_state(self) -> tuple[int, State | None, dict[str, State]]:
        shown = live.read(self.folder)
        saved = checkpoint.read(self.folder / CHECKPOINTS, checkpoint.READABLE, only=("loop", "memory"))
        if shown is not None and shown.step >= saved.step:
            return shown
        memories = memories_of(saved.parts["memory"], self.fields)
        return saved.step, saved.parts["loop"]["coverage"], memories

    def _build_worlds(self, coverage: Coverage | None) -> list[World] | None:
        """Builds the worlds of the run for their maps, again only when new places were seen."""
        seen = b"" if coverage is None else np.flatnonzero(coverage.visits).tobytes()
        if self._worlds is None or self._worlds[0] != seen:
            self._worlds = seen, build_worlds(self.fields, coverage)
        return self._worlds[1]


def _stamp(path: Path) -> Stamp:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
