"""The folder of a run: its files, who may write into it, and what is found in it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from softcount.runs.lock import FolderLock

CONFIG, METRICS, CHECKPOINTS = "config.json", "metrics.jsonl", "checkpoints"
EVENTS = "events.out.tfevents.*"


@contextmanager
def made(folder: Path) -> Iterator[None]:
    """Makes a folder, and takes away again what it made if something goes wrong."""
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        with suppress(OSError):  # somebody else has put something there
            for each in new:
                each.rmdir()
        raise


@contextmanager
def held(folder: Path) -> Iterator[FolderLock]:
    """Holds a folder, and lets go of it again only if something goes wrong."""
    lock = FolderLock(folder)
    try:
        yield lock
    except BaseException:
        lock.release()
        raise


def identity(folder: Path) -> tuple[int, int] | None:
    """Tells a folder from another one of the same name; None if there is none."""
    try:
        found = os.stat(folder)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def check_free(folder: Path) -> None:
    """Makes sure that a new run in this folder touches nobody's files."""
    if os.path.lexists(folder / CONFIG):
        raise FileExistsError(f"{folder} already holds a run; resume it, or choose another folder")
    taken = [name for name in (METRICS, CHECKPOINTS) if os.path.lexists(folder / name)]
    taken += sorted(path.name for path in folder.glob(EVENTS))
    if taken:
        raise FileExistsError(
            f"{folder} holds {', '.join(taken)} but no {CONFIG}: it is no run, or one that was killed while "
            "it started; nothing was touched; choose another folder, or move them away"
        )


def check_no_links(folder: Path) -> None:
    """Makes sure that what a run writes stays in its folder."""
    for name in (CONFIG, METRICS, CHECKPOINTS):
        if (folder / name).is_symlink():
            raise ValueError(f"{folder / name} is a link; expected it to lie in the folder of its run")


def remove_unstarted(folder: Path) -> None:
    """Takes away what a run wrote that could not be started; none of it was there before."""
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    for path in (folder / METRICS, *folder.glob(EVENTS)):
        with suppress(OSError):
            path.unlink(missing_ok=True)
