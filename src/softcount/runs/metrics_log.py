"""What a run writes down as it goes: one JSON line per report, and TensorBoard events.

`metrics.jsonl` is the record; TensorBoard is a view of it. Each line holds `step` (actor
steps) and plain numbers under slash-separated names, CleanRL's where it has one
(`charts/episodic_return`, `charts/SPS`, `losses/...`). A resumed run first cuts the file
back to where its checkpoint was taken, so that no step is reported twice.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from softcount.hints import install


class MetricsLog:
    """Appends reports to `metrics.jsonl`, one durable line each.

    What is there is cut back to `keep_bytes`. A file that is shorter is kept up to its last whole line, with
    a warning: no file is ever made longer than what was written. Links are not followed.
    """

    def __init__(self, path: str | os.PathLike[str], *, keep_bytes: int = 0) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.is_symlink() or (self.path.exists() and not self.path.is_file()):
            raise OSError(f"{self.path} is a link or no plain file; reports are not written through it")
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        for name in ("O_NOFOLLOW", "O_BINARY"):  # each on the systems that have it
            flags |= getattr(os, name, 0)
        self._file = os.fdopen(os.open(self.path, flags, 0o666), "a+b")
        self._file.truncate(self._whole_lines(keep_bytes))
        self._file.seek(0, os.SEEK_END)

    def _whole_lines(self, keep_bytes: int) -> int:
        """Returns where the last line ends within the bytes to keep, and says if that is not their end."""
        self._file.seek(0)
        size = os.fstat(self._file.fileno()).st_size
        kept = self._file.read(min(keep_bytes, size)).rfind(b"\n") + 1
        if kept != keep_bytes:
            warnings.warn(
                f"{self.path} has {size:,} bytes and its checkpoint was taken at {keep_bytes:,}: reports are "
                f"missing; those of the first {kept:,} bytes are kept",
                stacklevel=3,
            )
        return kept

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        row = {"step": step, **{name: _plain(value) for name, value in metrics.items()}}
        self._file.write((json.dumps(row, allow_nan=False) + "\n").encode())
        self._file.flush()

    def sync(self) -> int:
        """Makes all lines durable; returns the size a checkpoint should remember."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._file.tell()

    def close(self) -> None:
        self._file.close()


def read_metrics(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yields the reports of a run; a line cut short by a crash ends the reading."""
    with open(path, encoding="utf-8") as file:
        for line in file:
            if not line.endswith("\n"):
                return
            yield json.loads(line)


def _plain(value: float) -> float | int | None:
    """Turns NumPy scalars into JSON numbers and what is not finite into null."""
    number = value.item() if hasattr(value, "item") else value
    return number if isinstance(number, int) or math.isfinite(number) else None


class EventLog:
    """Mirrors reports to TensorBoard, and to Weights & Biases when asked."""

    def __init__(
        self, folder: Path, *, purge_step: int | None = None, wandb_project: str | None = None
    ) -> None:
        writer = _require("torch.utils.tensorboard", "agent").SummaryWriter
        self._writer = writer(str(folder), purge_step=purge_step)
        self._writer.flush()  # its thread opens the file by name; nothing must be left for it to write later
        self._run: Any = None
        if wandb_project:
            self._run = _require("wandb", "wandb").init(
                project=wandb_project, name=folder.name, dir=str(folder)
            )

    def write(self, step: int, metrics: Mapping[str, float]) -> None:
        finite = {name: value for name, value in metrics.items() if _plain(value) is not None}
        for name, value in finite.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()
        if self._run is not None:
            self._run.log(finite, step=step)

    def close(self) -> None:
        with contextlib.suppress(OSError):  # a view of the reports; their folder may be gone
            self._writer.close()
        if self._run is not None:
            self._run.finish()


def _require(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(f"{module} is needed here: {install(extra)}") from error
