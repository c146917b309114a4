"""The options of `softcount train`: every field of a configuration, found by walking through its records.

A new field, or a new record of fields, needs no line here: it gets its option, its place in the help and its
place among the names that a misspelt one is compared with. Only which fields are common is said by hand.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import textwrap
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union

from softcount.config import READERS, RunConfig, RuntimeConfig, parts_read
from softcount.hints import nearest
from softcount.parser import UsageError

MANY = -1
"""How many values a tuple of any length takes."""


@dataclass(frozen=True)
class Option:
    """One field that can be set by its path."""

    path: str
    """`meme.replay.newest`."""
    kind: Any
    """What it holds, as annotated."""
    value: Any
    """What it holds if nothing is said."""
    about: str
    """The first sentence of its documentation."""
    choices: tuple[str, ...] = ()
    """For a record of one of several kinds: the words that choose one."""

    @property
    def name(self) -> str:
        return "--" + self.path.replace("_", "-")

    @property
    def names(self) -> tuple[str, ...]:
        """All spellings: switches can be turned off."""
        head, dot, last = self.name[2:].rpartition(".")
        return (self.name, f"--{head}{dot}no-{last}") if self.kind is bool else (self.name,)

    @property
    def num_values(self) -> int:
        if self.kind is bool:
            return 0
        parts = typing.get_args(self.kind) if typing.get_origin(self.kind) is tuple else (self.kind,)
        return MANY if Ellipsis in parts else len(parts)

    @property
    def spelling(self) -> str:
        """How it is written, with what it takes."""
        if self.choices:
            return self.path.replace("_", "-") + ":KIND"
        return self.name if self.kind is bool else f"{self.name} {_metavar(self.kind)}"


def options_of(record: RunConfig) -> list[Option]:
    """Returns every option of a run whose agent is named; parts that it does not read have none."""
    unread = set(READERS) - set(parts_read(record.agent))
    return [option for option in all_options(record) if option.path.partition(".")[0] not in unread]


def all_options(record: RunConfig) -> list[Option]:
    """Returns every option that there is."""
    own = [
        Option(f"env_options.{name}", type(value), value, "") for name, value in record.env_options.items()
    ]
    return [*_walk(RunConfig, record, ""), *own]


def check_words(words: Sequence[str], record: RunConfig) -> None:
    """Refuses words that no option takes, naming what was probably meant."""
    options = {name: option for option in all_options(record) for name in option.names}
    choices = {word for option in options.values() for word in option.choices}
    left = 0
    for word in words:
        if word.startswith("--"):
            name, equals, _ = word.partition("=")
            option = options.get(name.replace("_", "-"))
            if option is None:
                raise UsageError(f"no option is called {name}{_meant(name, record)}")
            left = 0 if equals else option.num_values
        elif ":" in word and word.partition(":")[0].replace("_", "-") + ":" in {
            choice.partition(":")[0] + ":" for choice in choices
        }:
            if word.replace("_", "-") not in choices:
                raise UsageError(f"no kind is called {word!r}{nearest(word, choices)}")
            left = 0
        elif left == 0:
            raise UsageError(f"{word!r} belongs to no option")
        else:
            left -= left > 0


def _meant(name: str, record: RunConfig) -> str:
    """Ends the sentence with options of that last name in some part, or with the nearest one."""
    names = [known for option in options_of(record) for known in option.names]
    ending = "." + name.removeprefix("--").replace("_", "-")
    ends = [known for known in names if known.endswith(ending)]
    return f"; did you mean {' or '.join(ends)}?" if ends else nearest(name, names)


def _walk(kind: Any, record: Any, prefix: str) -> Iterator[Option]:
    hints, docs = typing.get_type_hints(kind), field_docs(kind)
    for field in fields(kind):
        path, hint, value = prefix + field.name, hints[field.name], getattr(record, field.name, None)
        parts = [hint, *typing.get_args(hint)] if _is_union(hint) else [hint]
        records = [part for part in parts if is_dataclass(part)]
        if len(parts) > 1 and records:
            words = (f"{path.replace('_', '-')}:{_kebab(part)}" for part in parts[1:])
            yield Option(path, hint, value, docs.get(field.name, ""), tuple(words))
        elif not records and typing.get_origin(hint) is not dict:
            yield Option(path, hint, value, docs.get(field.name, ""))
        for part in records:
            yield from _walk(part, value if isinstance(value, typing.cast(Any, part)) else None, f"{path}.")


@cache
def field_docs(kind: Any) -> dict[str, str]:
    """Returns the first sentence that stands below each field of a record, also of those that it inherits."""
    docs: dict[str, str] = {}
    for base in reversed([base for base in kind.__mro__ if is_dataclass(base)]):
        source = textwrap.dedent(inspect.getsource(typing.cast(Any, base)))
        body = typing.cast(ast.ClassDef, ast.parse(source).body[0]).body
        for statement, below in itertools.pairwise(body):
            text = below.value if isinstance(below, ast.Expr) else None
            if isinstance(statement, ast.AnnAssign) and isinstance(text, ast.Constant):
                docs[ast.unparse(statement.target)] = first_sentence(str(text.value))
    return docs


def first_sentence(text: str) -> str:
    """Returns the first sentence of a docstring on one line.

    >>> first_sentence("Steps, see Sec. 3; 0.5\\n    of them. Decision 7.")
    'Steps, see Sec. 3; 0.5 of them'
    """
    plain = " ".join(text.split())
    return re.split(r"(?<!Sec)(?<!App)(?<!Fig)\.(?: |$)", plain)[0]


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (Union, types.UnionType)


def _metavar(kind: Any) -> str:
    if _is_union(kind):
        return "|".join(_metavar(part) for part in typing.get_args(kind))
    if typing.get_origin(kind) is Literal:
        return "{" + ",".join(map(str, typing.get_args(kind))) + "}"
    if typing.get_origin(kind) is tuple:
        return " ".join("..." if part is Ellipsis else _metavar(part) for part in typing.get_args(kind))
    return {int: "N", float: "X", str: "TEXT", type(None): "None"}.get(
        kind, getattr(kind, "__name__", "VALUE")
    )


def _kebab(kind: Any) -> str:
    """Returns a type's name as the command line writes it.

    >>> _kebab(RunConfig), _kebab(type(None))
    ('run-config', 'None')
    """
    if kind is type(None):
        return "None"
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", kind.__name__).lower()


def check_read(agent: str, options: Sequence[str]) -> None:
    """Refuses an option of a part that the agent does not read."""
    read = parts_read(agent)
    for option in options:
        part = option.removeprefix("--").partition(".")[0]
        if option.startswith("--") and part in READERS and part not in read:
            raise UsageError(
                f"{option.partition('=')[0]} would do nothing: {agent} does not read {part!r}, "
                f"{READERS[part]} would; it reads {', '.join(read)}"
            )


def read_runtime(config: RunConfig, words: Sequence[str]) -> RuntimeConfig:
    """Reads where a run is to go on, from `--runtime.*`; what is not said stays as it was."""
    import tyro

    other = [word for word in words if word.startswith("--") and not word.startswith("--runtime.")]
    if other:
        raise UsageError(f"{other[0]} stands after --runtime options; expected it before them")
    check_words(words, config)
    return tyro.cli(RunConfig, args=words, default=config, prog="softcount resume").runtime
