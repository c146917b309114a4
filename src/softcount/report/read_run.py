"""What a run's folder can testify to: configuration, reports, the last checkpoint.

Only the configuration is required. A report is worth most when something went wrong, so
whatever else is missing or damaged becomes a sentence on the page, not an error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softcount import checkpoint
from softcount.config import RunConfig
from softcount.config_json import flatten
from softcount.launch.local import LocalLoop
from softcount.runs.folder import CHECKPOINTS, CONFIG, METRICS
from softcount.runs.metrics_log import read_metrics
from softcount.runs.playback import open_run
from softcount.runs.run import read_config

NO_CHECKPOINT = "There is no checkpoint."
CLOSED = "The checkpoint cannot be restored; the top of the page says why."


@dataclass(frozen=True)
class Evidence:
    """A run as found on disk."""

    name: str
    fields: dict[str, Any]
    """The configuration, `replay.capacity` and so on."""
    config: RunConfig | None
    """The same as a record; None if it was written by another version."""
    rows: list[dict[str, Any]]
    """The reports, oldest first."""
    loop: LocalLoop | None
    """The last checkpoint, restored; None if there is none that can be used."""
    saved: checkpoint.Checkpoint | None
    """The same as it lies on disk, where it can be read but not restored."""
    no_loop: str
    """Why not, in a few words; the notes have all of them."""
    notes: list[str]
    """What a reader should know before trusting the page."""

    @property
    def step(self) -> int | None:
        """Where the checkpoint was taken."""
        if self.loop is not None:
            return self.loop.num_steps
        return None if self.saved is None else self.saved.step


def read_runs(folders: Sequence[Path]) -> Iterator[Evidence]:
    """Reads runs one after the other; a folder that is none is an error before the first is read."""
    contents = [(folder, read_fields(folder)) for folder in folders]
    names = name_folders([folder.resolve() for folder in folders])
    for (folder, fields), name in zip(contents, names, strict=True):
        yield _read_run(folder, name, fields)


def name_folders(folders: Sequence[Path]) -> list[str]:
    """Names folders by as much of their end as tells them apart.

    >>> name_folders([Path("/runs/maze/seed0"), Path("/runs/plain/seed0")])
    ['maze/seed0', 'plain/seed0']
    """
    for i, folder in enumerate(folders):
        if folder in folders[:i]:
            raise ValueError(f"{folder} was given twice; expected different runs")
    depth = 1
    while True:
        names = ["/".join(folder.parts[-depth:]) for folder in folders]
        if len(set(names)) == len(names):
            return names
        depth += 1


def find_runs(folders: Sequence[Path]) -> list[Path]:
    """Returns the folders that are runs, and for others the runs that lie directly in them."""
    found: list[Path] = []
    for folder in folders:
        inside = sorted(path.parent for path in folder.glob(f"*/{CONFIG}"))
        found += [folder] if (folder / CONFIG).is_file() or not inside else inside
    return found


def read_fields(folder: Path) -> dict[str, Any]:
    """Returns the configuration of a run, `replay.capacity` and so on; a folder that is none is an error."""
    path = folder / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"{folder} is not a run: it has no {CONFIG}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict):
            return flatten(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{folder} is not a run: its {CONFIG} is not JSON ({error})") from error
    raise ValueError(f"{folder} is not a run: its {CONFIG} holds no fields")


def _read_run(folder: Path, name: str, fields: dict[str, Any]) -> Evidence:
    notes: list[str] = []
    rows = read_rows(folder / METRICS, notes)
    config, loop, reason = None, None, ""
    try:
        config = read_config(folder)
    except ValueError as error:
        reason = f"The checkpoint cannot be restored: {error}."
    if config is not None:
        loop, reason = _restore(folder)
    saved = _read_checkpoint(folder) if loop is None else None
    no_loop = reason if reason in ("", NO_CHECKPOINT) else CLOSED
    found = Evidence(name, fields, config, rows, loop, saved, no_loop, notes)
    notes += _describe_progress(found)
    if reason:
        notes.append(reason)
    return found


def read_rows(path: Path, notes: list[str]) -> list[dict[str, Any]]:
    """Returns the reports of a run; what is wrong with them becomes a note."""
    rows: list[dict[str, Any]] = []
    try:
        for row in read_metrics(path):
            _check_row(row)
            rows.append(row)
    except FileNotFoundError:
        notes.append(f"There are no reports: {path.name} is missing.")
    except (ValueError, RecursionError) as error:
        notes.append(f"{path.name} is damaged after {len(rows):,} reports ({error}); the rest is not shown.")
    else:
        if not rows:
            notes.append("There are no reports yet.")
    return rows


def _check_row(row: Any) -> None:
    """Makes sure that a report holds what the page can draw: a step, and numbers."""
    if not isinstance(row, dict):
        raise ValueError("a report without fields")
    for name, value in ({"step": None} | row).items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is None and name != "step":
            continue  # what was not finite
        if not is_number or (isinstance(value, int) and abs(value) >= 2**63):
            raise ValueError(f"{name} is {str(value)[:40]!r}; expected a number")
    if not isinstance(row["step"], int) or row["step"] < 0:
        raise ValueError(f"step is {row['step']}; expected a whole number of at least 0")


def _restore(folder: Path) -> tuple[LocalLoop | None, str]:
    """Opens the last checkpoint, or says why that cannot be done here."""
    if not (folder / CHECKPOINTS / checkpoint.MANIFEST).is_file():
        return None, NO_CHECKPOINT
    try:
        return open_run(folder), ""
    except checkpoint.CheckpointError as error:
        return None, f"The checkpoint cannot be restored: {error}."
    except (ImportError, OSError, RuntimeError, ValueError, MemoryError) as error:
        return None, f"The world of this run cannot be built here: {error}."


def _read_checkpoint(folder: Path) -> checkpoint.Checkpoint | None:
    try:
        return checkpoint.read(folder / CHECKPOINTS, checkpoint.READABLE)
    except checkpoint.CheckpointError:
        return None


def _describe_progress(run: Evidence) -> list[str]:
    notes = []
    last, planned = run.rows[-1]["step"] if run.rows else 0, run.fields.get("steps")
    if isinstance(planned, int) and last < planned:
        notes.append(
            f"Unfinished: the last report is of step {last:,} of {planned:,} ({last / planned:.0%}). "
            "It was interrupted, or is still training."
        )
    if run.step is not None and run.step != last:
        shown = "World, memory and clip show" if run.loop is not None else "World and memory show"
        notes.append(f"{shown} the checkpoint of step {run.step:,}; the curves go to step {last:,}.")
    return notes
