"""Checkpoints: complete, cheap, and switched in one rename.

A checkpoint is a set of files in `RUN/checkpoints/` named by one `manifest.json`: a part
for each role (parameters, optimisers, memory, generators, environments, counters), and the
replay as segments that never change once written, so that a checkpoint costs what is new.
Parts are written first under new names and made durable, then the manifest is replaced
atomically, then files that no manifest names are removed. Killing the process at any
moment leaves either the old checkpoint or the new one, whole.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from softcount import store
from softcount.types import State

MANIFEST = "manifest.json"
FORMAT = "softcount-checkpoint-1"


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be written or read; says what is wrong and what is still there."""


@dataclass(frozen=True)
class Checkpoint:
    """What was read back: the parts by name, the replay's segments by name, and where it was taken."""

    step: int
    metrics_bytes: int
    parts: dict[str, State]
    segments: dict[str, State]


def write(
    folder: Path,
    *,
    step: int,
    metrics_bytes: int,
    parts: Mapping[str, State],
    segments: Mapping[str, Callable[[], State]],
) -> None:
    """Writes a checkpoint; segments already on disk are named again, not written again."""
    folder.mkdir(parents=True, exist_ok=True)
    old = _read_manifest(folder) if (folder / MANIFEST).exists() else None
    known = set(old["segments"]) if old else set()
    serial = old["serial"] + 1 if old else 0  # makes file names new even if the step is not
    files = {name: f"{name}-{serial}.safetensors" for name in parts}
    manifest = {
        "format": FORMAT,
        "serial": serial,
        "step": step,
        "metrics_bytes": metrics_bytes,
        "parts": files,
        "segments": list(segments),
    }
    try:
        for name, state in parts.items():
            store.save(folder / files[name], state, kind=name)
        for name, make_state in segments.items():
            if name not in known:
                store.save(folder / _segment_file(name), make_state(), kind="replay-segment")
        store.write_atomically(folder / MANIFEST, json.dumps(manifest, indent=1).encode())
    except OSError as error:
        _remove_unnamed(folder, old)
        kept = f"the checkpoint of step {old['step']} is intact" if old else "there was none before"
        raise CheckpointError(
            f"the checkpoint of step {step} could not be written ({error}); {kept}"
        ) from error
    _remove_unnamed(folder, manifest)


def read(folder: Path) -> Checkpoint:
    """Reads the last complete checkpoint, or says plainly why there is none to use."""
    if not (folder / MANIFEST).is_file():
        raise CheckpointError(f"{folder} holds no complete checkpoint: {MANIFEST} is missing")
    manifest = _read_manifest(folder)
    try:
        return Checkpoint(
            step=manifest["step"],
            metrics_bytes=manifest["metrics_bytes"],
            parts={name: store.load(folder / file, kind=name) for name, file in manifest["parts"].items()},
            segments={
                name: store.load(folder / _segment_file(name), kind="replay-segment")
                for name in manifest["segments"]
            },
        )
    except store.StoreError as error:
        raise CheckpointError(f"the checkpoint of step {manifest['step']} is damaged: {error}") from error


def _read_manifest(folder: Path) -> State:
    path = folder / MANIFEST
    try:
        manifest: State = json.loads(path.read_text())
        if manifest["format"] != FORMAT:
            raise CheckpointError(f"{path} has format {manifest['format']!r}; expected {FORMAT!r}")
        missing = {"serial", "step", "metrics_bytes", "parts", "segments"} - set(manifest)
        if missing:
            raise CheckpointError(f"{path} is damaged: it lacks {', '.join(sorted(missing))}")
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    return manifest


def _segment_file(name: str) -> str:
    return f"segment-{name}.safetensors"


def _remove_unnamed(folder: Path, manifest: State | None) -> None:
    """Removes files that the manifest does not name: old parts and what a crash left behind."""
    named = {MANIFEST}
    if manifest:
        named |= set(manifest["parts"].values()) | {_segment_file(name) for name in manifest["segments"]}
    for path in folder.iterdir():
        is_ours = path.suffix in (".safetensors", ".part") or path.name == MANIFEST
        if path.is_file() and is_ours and path.name not in named:
            path.unlink(missing_ok=True)
