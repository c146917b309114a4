"""The one way to write state to disk: safetensors for arrays, JSON for the rest.

A state is what `state_dict()` returns: nested dicts and lists of arrays, numbers,
strings, booleans and None. Arrays become tensors named by their path, everything
else becomes one JSON document in the header, beside a digest of all content. No
pickle: reading a file can never run code. Writing goes to a temporary file in the
same folder which is flushed and then renamed, so that a file is either whole or not
there, whatever happens in between.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import secrets
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from softcount.types import Array, State

FORMAT = "softcount-state-1"


class StoreError(ValueError):
    """A file that cannot be trusted: truncated, foreign, tampered with, or of another kind."""


def save(path: str | os.PathLike[str], state: State, *, kind: str, makes_folder: bool = True) -> None:
    """Writes a state atomically; `kind` says what it is a state of and is checked on reading."""
    arrays: dict[str, Array] = {}
    tree = _split(state, "", arrays)
    document = json.dumps(tree, separators=(",", ":"), allow_nan=True)
    metadata = {"format": FORMAT, "kind": kind, "tree": document, "digest": _digest(kind, document, arrays)}
    write_atomically(path, to_bytes(arrays, metadata), makes_folder=makes_folder)


def load(path: str | os.PathLike[str], *, kind: str) -> State:
    """Reads a state back, or raises `StoreError` and says what is wrong with the file."""
    path = Path(path)
    if not path.is_file():
        raise StoreError(f"{path} does not exist" if not path.exists() else f"{path} is not a file")
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, OverflowError, MemoryError) as error:
        raise StoreError(f"{path} is truncated or not a softcount file: {error}") from error
    if metadata.get("format") != FORMAT:
        found = metadata.get("format", "none")
        raise StoreError(f"{path} is not a softcount file (format {found!r}, expected {FORMAT!r})")
    found, document = metadata.get("kind", ""), metadata.get("tree", "")
    if _digest(found, document, arrays) != metadata.get("digest"):
        raise StoreError(f"{path} was changed after it was written: its digest does not match its content")
    if found != kind:
        raise StoreError(f"{path} holds {found!r}; expected {kind!r}")
    try:
        state = _join(json.loads(document), arrays)
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{path} holds no usable state: {error}") from error
    if not isinstance(state, dict):
        raise StoreError(f"{path} holds {type(state).__name__} in place of named fields")
    return state


def pack(state: State) -> bytes:
    """Returns a state as bytes, for messages and journals; whoever keeps them adds a checksum.

    >>> unpack(pack({"rows": np.arange(3), "kind": "observe"}))
    {'rows': array([0, 1, 2]), 'kind': 'observe'}
    """
    arrays: dict[str, Array] = {}
    tree = _split(state, "", arrays)
    listed = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
    header = json.dumps([tree, listed], separators=(",", ":"), allow_nan=True).encode()
    parts = [len(header).to_bytes(8, "little"), header, b" " * (-len(header) % 8)]
    for array in arrays.values():
        parts += [array.tobytes(), bytes(-array.nbytes % 8)]  # each starts where its numbers can be read
    return b"".join(parts)


def unpack(content: bytes) -> State:
    """Returns the state that `pack` was given; its arrays are views of the bytes and cannot be written to."""
    try:
        start = 8 + int.from_bytes(content[:8], "little")
        tree, listed = json.loads(content[8:start])
        arrays, start = {}, start + -start % 8
        for name, dtype, shape in listed:
            arrays[name] = np.frombuffer(content, dtype, math.prod(shape), start).reshape(shape)
            start += arrays[name].nbytes + -arrays[name].nbytes % 8
        state = _join(tree, arrays)
    except (ValueError, TypeError, RecursionError, OverflowError) as error:
        raise StoreError(f"{len(content)} bytes hold no usable state: {error}") from error
    if not isinstance(state, dict) or start != len(content):
        raise StoreError(
            f"{len(content)} bytes hold no usable state: expected named fields and nothing after"
        )
    return state


def write_atomically(path: str | os.PathLike[str], content: bytes, *, makes_folder: bool = True) -> None:
    """Writes a file so that a reader sees the old one or the whole new one, never a part.

    A link of that name is replaced, not followed. Without `makes_folder` the folder must be there.
    """
    path = Path(path)
    if makes_folder:
        path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{os.getpid()}-{secrets.token_hex(8)}.part"
    try:
        with open(temporary, "xb") as file:  # not mkstemp, whose files only their owner can read
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):  # what went wrong is said, not what became of the remains
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def temporary_of(name: str) -> str | None:
    """Returns which file a temporary one of `write_atomically` was going to be; None if it is none.

    >>> temporary_of(".metrics.json.123-0123456789abcdef.part")
    'metrics.json'
    """
    match = re.fullmatch(r"\.(.+)\.\d+-[0-9a-f]{16}\.part", name)
    return match[1] if match else None


def sync_folder(folder: Path) -> None:
    """Makes a rename durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _split(node: Any, path: str, arrays: dict[str, Array]) -> Any:
    """Moves arrays out of a tree into `arrays`, leaving `{"$array": name}` where they were."""
    if isinstance(node, np.ndarray):
        if node.dtype.kind not in "biuf" or node.dtype.itemsize > 8:
            raise TypeError(
                f"state{path} is an array of {node.dtype}; only booleans and real numbers can be stored"
            )
        name = path or "/"
        native = node.dtype.newbyteorder("=")
        arrays[name] = np.ascontiguousarray(node, native).reshape(node.shape)
        return {"$array": name}
    if isinstance(node, np.generic):
        return node.item()
    if isinstance(node, dict):
        for key in node:
            if not isinstance(key, str) or key.startswith("$") or "/" in key:
                raise TypeError(
                    f"state{path} has the key {key!r}; expected a string without '/' or leading '$'"
                )
        return {key: _split(value, f"{path}/{key}", arrays) for key, value in node.items()}
    if isinstance(node, tuple | list):
        return [_split(value, f"{path}/{i}", arrays) for i, value in enumerate(node)]
    if node is None or isinstance(node, bool | int | float | str):
        return node
    raise TypeError(
        f"state{path} is a {type(node).__name__}; only arrays, numbers, strings and None can be stored"
    )


def _join(node: Any, arrays: dict[str, Array]) -> Any:
    if isinstance(node, dict):
        if "$array" in node:
            name = node["$array"]
            if not isinstance(name, str) or name not in arrays:
                raise ValueError(f"it names the array {name!r} and does not hold it")
            return arrays[name]
        return {key: _join(value, arrays) for key, value in node.items()}
    if isinstance(node, list):
        return [_join(value, arrays) for value in node]
    return node


def _digest(kind: str, document: str, arrays: dict[str, Array]) -> str:
    digest = hashlib.sha256(f"{kind}\n{document}".encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()
