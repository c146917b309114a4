"""Configurations as JSON: `RUN/config.json`, and what results keep of their runs.

A file holds its version and the parts that its agent reads. Read back it repeats the run exactly.
A field that is unknown or of the wrong type is an error that names it. One that is missing was not
there when the file was written; it gets its default, and a warning says which. Files of version 1
bear no number; `MOVED` says where their fields stand today.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
import warnings
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union

from softcount.bonuses.make import SURPRISES
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.config import READERS, RunConfig, only_read, parts_read
from softcount.taxonomy import parse

T = TypeVar("T")

VERSION = 2
"""Of the files that are written."""

MOVED = {
    "bandit": "meme.bandit",
    "epsilon_base": "meme.epsilon_base",
    "epsilon_power": "meme.epsilon_power",
    "evaluation_epsilon": "meme.evaluation_epsilon",
    "replay": "meme.replay",
    "batch_size": "meme.batch_size",
    "importance_exponent": "meme.importance_exponent",
    "relabel": "meme.relabel",
    "memory": "recode.memory",
    "reembed_every": "recode.reembed_every",
    **{
        f"{part}.{old}": f"{part}.optimiser.{new}"
        for part, old, new in (
            ("meme", "learning_rate", "learning_rate"),
            ("meme", "weight_decay", "weight_decay"),
            ("meme", "adam_betas", "betas"),
            ("meme", "adam_epsilon", "epsilon"),
            ("meme", "max_grad_norm", "max_grad_norm"),
            ("trainer", "learning_rate", "learning_rate"),
            ("trainer", "weight_decay", "weight_decay"),
            ("trainer", "betas", "betas"),
            ("trainer", "epsilon", "epsilon"),
            ("trainer", "clip_norm", "max_grad_norm"),
        )
    },
}
"""Where each field that has moved since version 1 stands today."""


def to_json(config: RunConfig) -> str:
    """Writes a configuration down."""
    return json.dumps(to_tree(config), indent=2) + "\n"


def to_tree(config: RunConfig) -> dict[str, Any]:
    """Returns what is written down: the version, and the fields that the agent reads."""
    unread = set(READERS) - set(parts_read(config.agent))
    tree = {name: part for name, part in dataclasses.asdict(config).items() if name not in unread}
    return {"version": VERSION, **tree}


def from_json(text: str) -> RunConfig:
    """Reads a configuration back; errors name the field."""
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"the configuration is not JSON: {error}") from error
    return from_tree(content)


def from_tree(content: Any) -> RunConfig:
    """Reads what `to_tree` returned, in this version or an older one."""
    if not isinstance(content, Mapping):
        raise ValueError(f"config is {content!r}; expected the fields of RunConfig")
    content = dict(content)
    version = content.pop("version", 1)
    if version == 1:
        content = _from_version_1(content)
    elif version != VERSION:
        raise ValueError(f"the configuration has version {version!r}; this one reads 1 to {VERSION}")
    missing: list[str] = []
    config = structure(RunConfig, content, missing=missing)
    unread = set(READERS) - set(parts_read(config.agent))
    missing = [name for name in missing if name.split(".")[1] not in unread]
    if missing:
        warnings.warn(
            f"the configuration is of an older version without {', '.join(missing)}; the defaults are taken",
            stacklevel=3,
        )
    return only_read(config)


def _from_version_1(content: dict[str, Any]) -> dict[str, Any]:
    """Puts the fields of version 1 where they stand today."""
    new = json.loads(json.dumps(content))  # a copy of its own, all the way down
    normaliser = new.pop("normaliser", None)
    for old, now in MOVED.items():
        *path, name = old.split(".")
        holder = _descend(new, path)
        if holder is not None and name in holder:
            _put(new, now, holder.pop(name))
    _put_normaliser(new, normaliser)
    return typing.cast(dict[str, Any], new)


def _put_normaliser(content: dict[str, Any], normaliser: Any) -> None:
    """Version 1 had one normaliser, None for each bonus's own; it goes to the bonus that the name names."""
    recipe = parse(content.get("agent", RunConfig().agent))
    if normaliser is None:
        own = dataclasses.asdict(RecodeBonusConfig().normaliser)
        content.setdefault("recode", {}).setdefault("normaliser", own)
    elif recipe.bonus == "surprise":
        if content.get("surprise") is None:
            content["surprise"] = dataclasses.asdict(SURPRISES[recipe.representation])
        content["surprise"]["normaliser"] = normaliser
    elif recipe.bonus in ("recode", "episodic"):
        _put(content, f"{recipe.bonus}.normaliser", normaliser)


def _descend(tree: dict[str, Any], path: list[str]) -> dict[str, Any] | None:
    for name in path:
        tree = tree.get(name)  # type: ignore[assignment]
        if not isinstance(tree, dict):
            return None
    return tree


def _put(tree: dict[str, Any], path: str, value: Any) -> None:
    *parents, name = path.split(".")
    for parent in parents:
        tree = tree.setdefault(parent, {})
    tree[name] = value


def changes(before: RunConfig, after: RunConfig) -> list[str]:
    """Names the fields in which two configurations differ, as `replay.capacity: 5 -> 7`."""
    old, new = flatten(to_tree(before)), flatten(to_tree(after))
    names = sorted(old.keys() | new.keys())
    return [f"{name}: {old.get(name)} -> {new.get(name)}" for name in names if old.get(name) != new.get(name)]


def structure(kind: type[T], content: Any, path: str = "config", missing: list[str] | None = None) -> T:
    """Builds a typed value from what JSON holds; fields that it lacks are added to `missing`, or an error.

    >>> structure(tuple[int, ...], [1, 2])
    (1, 2)
    """
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if dataclasses.is_dataclass(kind):
        return typing.cast(T, _structure_record(kind, content, path, missing))
    if origin in (Union, types.UnionType):
        return typing.cast(T, _structure_union(arguments, content, path, missing))
    if origin is Literal:
        if content in arguments:
            return typing.cast(T, content)
        raise ValueError(f"{path} is {content!r}; expected one of {', '.join(map(repr, arguments))}")
    if origin is tuple and isinstance(content, list | tuple):
        kinds = [arguments[0]] * len(content) if arguments[1:] == (...,) else list(arguments)
        if len(kinds) == len(content):
            parts = (structure(k, x, f"{path}[{i}]", missing) for i, (k, x) in enumerate(zip(kinds, content)))
            return typing.cast(T, tuple(parts))
    if origin is dict and isinstance(content, Mapping):
        items = content.items()
        values = {key: structure(arguments[1], value, f"{path}[{key!r}]", missing) for key, value in items}
        return typing.cast(T, values)
    if kind is float and isinstance(content, int) and not isinstance(content, bool):
        return typing.cast(T, float(content))
    if (
        isinstance(kind, type)
        and isinstance(content, kind)
        and not (kind is int and isinstance(content, bool))
    ):
        return content
    raise ValueError(f"{path} is {content!r}; expected {getattr(kind, '__name__', kind)}")


def _structure_record(kind: Any, content: Any, path: str, missing: list[str] | None) -> Any:
    if not isinstance(content, Mapping):
        raise ValueError(f"{path} is {content!r}; expected the fields of {kind.__name__}")
    hints = typing.get_type_hints(kind)
    known = [f.name for f in dataclasses.fields(kind)]
    unknown = sorted(set(content) - set(known))
    if unknown:
        raise ValueError(f"{path}.{unknown[0]} is not a field of {kind.__name__} (it has {', '.join(known)})")
    given = [name for name in known if name in content]
    lacking = [name for name in known if name not in content]
    if lacking and missing is None:
        raise ValueError(f"{path}.{lacking[0]} is missing")
    record = kind(
        **{name: structure(hints[name], content[name], f"{path}.{name}", missing) for name in given}
    )
    if missing is not None:
        missing += [f"{path}.{name}" for name in lacking]
    return record


def _structure_union(kinds: tuple[Any, ...], content: Any, path: str, missing: list[str] | None) -> Any:
    if content is None and type(None) in kinds:
        return None
    errors: list[str] = []
    for is_lenient in (False,) if missing is None else (False, True):  # one that fits wholly goes first
        errors = []
        for kind in kinds:
            lacking: list[str] | None = [] if is_lenient else None
            try:
                found = structure(kind, content, path, lacking)
            except (ValueError, TypeError) as error:
                errors.append(str(error))
                continue
            if missing is not None:
                missing += lacking or []
            return found
    raise ValueError(errors[0] if len(errors) == 1 else f"{path} fits none of its kinds: {'; '.join(errors)}")


def flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Names every leaf of nested fields by its path.

    >>> flatten({"seed": 0, "replay": {"capacity": 5}})
    {'seed': 0, 'replay.capacity': 5}
    """
    flat: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{prefix}{name}.")
        else:
            flat[prefix + name] = value
    return flat
