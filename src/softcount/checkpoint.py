"""Checkpoints: complete, cheap, and switched in one rename.

A checkpoint is a set of files in `RUN/checkpoints/` named by one `manifest.json`: a part
for each role (parameters, optimisers, memory, generators, environments, counters), and the
replay as segments that never change once written, so that a checkpoint costs what is new.
The new manifest is first announced, as `announced.json`; then parts are written under new names
and made durable; then the announcement is renamed to `manifest.json`; then the files that it
replaces are removed. Killing the process at any moment leaves either the old checkpoint or
the new one, whole, and a manifest that names whatever else was left behind. Files that no
manifest of ours ever named are neither removed nor overwritten. Decision 170.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from softcount import store
from softcount.types import State

MANIFEST, ANNOUNCED = "manifest.json", "announced.json"
FORMAT = "softcount-checkpoint-3"
"""What is written; raised when a role keeps other fields, so that what is older can be told apart."""
READABLE = ("softcount-checkpoint-1", "softcount-checkpoint-2", FORMAT)
"""Manifests of these are alike. In the first, an actor kept bandits, and rows did not know their task. In the
second, some environments had generators in an encoding of their own."""
ATTEMPTS = 10
"""How often a checkpoint is read that a training run keeps replacing."""


class CheckpointError(RuntimeError):
    """A checkpoint that cannot be written or read; says what is wrong and what is still there."""


@dataclass(frozen=True)
class Checkpoint:
    """What was read back: the parts by name, the replay's segments by name, and where it was taken."""

    step: int
    metrics_bytes: int
    parts: dict[str, State]
    segments: dict[str, State]
    files: dict[str, Path]
    """Where each part was read."""


def write(
    folder: Path,
    *,
    step: int,
    metrics_bytes: int,
    parts: Mapping[str, State],
    segments: Mapping[str, Callable[[], State]],
) -> None:
    """Writes a checkpoint into an existing folder; segments on disk are named again, not written again."""
    if folder.is_symlink() or not folder.is_dir():
        what = "is a link" if folder.is_symlink() else "is not there"
        raise CheckpointError(f"the checkpoint of step {step} could not be written: {folder} {what}")
    old, announced = (_read_manifest(folder / name) for name in (MANIFEST, ANNOUNCED))
    left_behind = _files(announced) - _files(old) | set(old["stale"] if old else ())
    _remove(folder, left_behind, temporaries_of={MANIFEST, ANNOUNCED} | _files(announced))

    known = set(old["segments"]) if old else set()
    new = {name: make for name, make in segments.items() if name not in known}
    _check_free(folder, new, left_behind, step)
    before = [manifest for manifest in (old, announced) if manifest]
    manifest: State = {
        "format": FORMAT,
        "serial": _next_serial(folder, parts, before),
        "step": step,
        "metrics_bytes": metrics_bytes,
        "parts": {},
        "segments": list(segments),
        "stale": [],
    }
    manifest["parts"] = {name: _part_file(name, manifest["serial"]) for name in parts}
    replaced = _files(old) - _files(manifest) | {name for name in left_behind if _is_taken(folder / name)}
    manifest["stale"] = sorted(replaced - _files(manifest))
    try:
        _write_files(folder, manifest, parts, new)
        os.replace(folder / ANNOUNCED, folder / MANIFEST)
    except OSError as error:
        kept = f"the checkpoint of step {old['step']} is intact" if old else "there was none before"
        if not folder.is_dir():
            kept = f"{folder} was deleted or moved"
        written = {*manifest["parts"].values(), *map(_segment_file, new)}
        _remove(folder, {*written, ANNOUNCED}, temporaries_of=set())
        raise CheckpointError(
            f"the checkpoint of step {step} could not be written ({error}); {kept}"
        ) from error
    try:
        store.sync_folder(folder)
    except OSError as error:  # both are kept: nobody knows which one a power loss would leave
        raise CheckpointError(
            f"the checkpoint of step {step} is written but may not outlast a power loss ({error})"
        ) from error
    _remove(folder, set(manifest["stale"]), temporaries_of=set())


def _check_free(folder: Path, new: Iterable[str], left_behind: set[str], step: int) -> None:
    """Makes sure that no segment overwrites a file that is not ours."""
    for name in new:
        path = folder / _segment_file(name)
        if path.name not in left_behind and _is_taken(path):
            raise CheckpointError(
                f"the checkpoint of step {step} could not be written: {path} is in the way, and no "
                "checkpoint of this run has written it; move it away"
            )


def _next_serial(folder: Path, parts: Iterable[str], before: list[State]) -> int:
    """Returns a number under which no part was written yet: names are new even if the step is not."""
    serial = max((manifest["serial"] for manifest in before), default=-1) + 1
    while any(_is_taken(folder / _part_file(name, serial)) for name in parts):
        serial += 1
    return serial


def _write_files(
    folder: Path, manifest: State, parts: Mapping[str, State], segments: Mapping[str, Callable[[], State]]
) -> None:
    """Announces a manifest and writes the files that it names."""
    store.write_atomically(folder / ANNOUNCED, json.dumps(manifest, indent=1).encode(), makes_folder=False)
    for name, state in parts.items():
        store.save(folder / manifest["parts"][name], state, kind=name, makes_folder=False)
    for name, make in segments.items():
        store.save(folder / _segment_file(name), make(), kind="replay-segment", makes_folder=False)


def read(
    folder: Path, formats: Container[str] = (FORMAT,), *, only: Container[str] | None = None
) -> Checkpoint:
    """Reads the last complete checkpoint, or says plainly why there is none to use.

    One of an older format is refused, unless `formats` names it: its roles kept other fields. A run that
    trains meanwhile may replace the files while they are read; then the newer ones are. `only` leaves out
    all parts but some, and the replay's segments.
    """
    for attempt in range(ATTEMPTS):
        manifest = _read_manifest(folder / MANIFEST)
        if manifest is None:
            raise CheckpointError(f"{folder} holds no complete checkpoint: {MANIFEST} is missing")
        if manifest["format"] not in formats:
            raise CheckpointError(
                f"the checkpoint of step {manifest['step']} has format {manifest['format']!r}; this version "
                f"continues {FORMAT!r}: resume it with the version that wrote it, or train anew"
            )
        try:
            return _load(folder, manifest if only is None else _choose(manifest, only))
        except store.StoreError as error:
            if attempt + 1 == ATTEMPTS or _read_manifest(folder / MANIFEST) == manifest:
                raise CheckpointError(
                    f"the checkpoint of step {manifest['step']} is damaged: {error}"
                ) from error
    raise AssertionError("the last attempt returns or raises")


def _choose(manifest: State, only: Container[str]) -> State:
    parts = {name: file for name, file in manifest["parts"].items() if name in only}
    return manifest | {"parts": parts, "segments": []}


def _load(folder: Path, manifest: State) -> Checkpoint:
    files = {name: folder / file for name, file in manifest["parts"].items()}
    return Checkpoint(
        step=manifest["step"],
        metrics_bytes=manifest["metrics_bytes"],
        parts={name: store.load(path, kind=name) for name, path in files.items()},  # first: they change most
        segments={
            name: store.load(folder / _segment_file(name), kind="replay-segment")
            for name in manifest["segments"]
        },
        files=files,
    )


def _read_manifest(path: Path) -> State | None:
    """Returns a manifest of which every field is what it should be; None if there is none."""
    if not path.is_file():
        return None
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged: {error}") from error
    if not isinstance(manifest, dict):
        raise CheckpointError(f"{path} is damaged: it holds {type(manifest).__name__} in place of fields")
    if manifest.get("format") not in READABLE:
        raise CheckpointError(
            f"{path} has format {_short(manifest.get('format'))}; expected {FORMAT!r}: it is of a newer "
            "version, or no checkpoint"
        )
    manifest.setdefault("stale", [])  # written since decision 170
    for name, (expected, is_valid) in _FIELDS.items():
        if name not in manifest:
            raise CheckpointError(f"{path} is damaged: it lacks {name}")
        if not is_valid(manifest[name]):
            raise CheckpointError(
                f"{path} is damaged: {name} is {_short(manifest[name])}; expected {expected}"
            )
    return manifest


def find_misfit(state: Any, template: Any, path: str = "") -> str | None:
    """Says which field of a state read from disk cannot be what a template's is; None if all can.

    Where the template has nothing to compare with (None, an empty list or array) anything goes.

    >>> find_misfit({"a": {"n": "12"}}, {"a": {"n": 12}})
    "a.n is '12'; expected a number"
    """
    where = path or "the part"
    if isinstance(template, dict):
        if not isinstance(state, dict):
            return f"{where} is {_short(state)}; expected fields"
        missing = [name for name in template if name not in state]
        if missing:
            return f"{path}.{missing[0]} is missing".lstrip(".")
        return _first(
            find_misfit(state[name], x, f"{path}.{name}".lstrip(".")) for name, x in template.items()
        )
    if isinstance(template, list | tuple):
        if not isinstance(state, list):
            return f"{where} is {_short(state)}; expected a list"
        return _first(find_misfit(x, y, f"{path}[{i}]") for i, (x, y) in enumerate(zip(state, template)))
    if isinstance(template, np.ndarray):
        if not isinstance(state, np.ndarray):
            return f"{where} is {_short(state)}; expected an array"
        if template.size and (state.dtype.kind != template.dtype.kind or state.ndim != template.ndim):
            return (
                f"{where} is {state.dtype} of shape {state.shape}; "
                f"expected {template.dtype} like {template.shape}"
            )
        return None
    if isinstance(template, bool | np.bool_):
        return None if isinstance(state, bool) else f"{where} is {_short(state)}; expected true or false"
    if isinstance(template, int | float | np.number):
        is_large = isinstance(state, int) and abs(state) >= 2**63 > abs(float(template))
        is_number = isinstance(state, int | float) and not isinstance(state, bool) and not is_large
        return None if is_number else f"{where} is {_short(state)}; expected a number"
    if isinstance(template, str):
        return None if isinstance(state, str) else f"{where} is {_short(state)}; expected text"
    return None


def _first(reasons: Iterable[str | None]) -> str | None:
    return next((reason for reason in reasons if reason is not None), None)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62


def _are_names(value: object, pattern: str) -> bool:
    return isinstance(value, list) and all(isinstance(x, str) and re.fullmatch(pattern, x) for x in value)


def _are_parts(value: object) -> bool:
    return isinstance(value, dict) and all(
        re.fullmatch(NAME, name) and isinstance(file, str) and re.fullmatch(rf"{name}-\d+\.safetensors", file)
        for name, file in value.items()
    )


NAME = r"[A-Za-z0-9_-]+"  # no manifest may name a file in another folder
_FIELDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "serial": ("a whole number", _is_count),
    "step": ("a whole number", _is_count),
    "metrics_bytes": ("a whole number", _is_count),
    "parts": ("parts and their files, as learner: learner-3.safetensors", _are_parts),
    "segments": ("a list of names", partial(_are_names, pattern=NAME)),
    "stale": ("a list of files", partial(_are_names, pattern=rf"({NAME}-\d+|segment-{NAME})\.safetensors")),
}


def _short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # an int of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _part_file(name: str, serial: int) -> str:
    return f"{name}-{serial}.safetensors"


def _segment_file(name: str) -> str:
    return f"segment-{name}.safetensors"


def _files(manifest: State | None) -> set[str]:
    """Returns the files that a manifest consists of."""
    if manifest is None:
        return set()
    return {*manifest["parts"].values(), *map(_segment_file, manifest["segments"])}


def _is_taken(path: Path) -> bool:
    return os.path.lexists(path)


def _remove(folder: Path, names: set[str], *, temporaries_of: set[str]) -> None:
    """Removes files of ours, and what a killed writer left of them; what cannot be removed is only said."""
    paths = [folder / name for name in sorted(names)]
    if temporaries_of and folder.is_dir():
        paths += [path for path in folder.glob(".*.part") if store.temporary_of(path.name) in temporaries_of]
    for path in paths:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            warnings.warn(f"{path} is no longer needed and could not be removed: {error}", stacklevel=3)
