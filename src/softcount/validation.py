"""How records of settings check themselves: a line per field, one form of message.

    def __post_init__(self) -> None:
        check_fields(self, size=at_least(1), share=between(0, 1))

Types need no line: a field that is annotated `int`, `float`, `bool` or `Literal[...]` must hold one,
and numbers must be finite.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import types
import typing
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, Union


class Rule(NamedTuple):
    """What a value must be, in words and as a test."""

    words: str
    holds: Callable[[Any], bool]


def at_least(least: float, *, at_most: float = math.inf) -> Rule:
    words = f"at least {least}" + ("" if at_most == math.inf else f" and at most {at_most:,}")
    return Rule(words, lambda value: least <= value <= at_most)


def above(limit: float) -> Rule:
    return Rule(f"a number above {limit}", lambda value: value > limit)


def between(low: float, high: float, ends: str = "[]") -> Rule:
    """A number of an interval; `ends` says which ends belong to it, as `(]`."""

    def holds(value: float) -> bool:
        is_over = value >= low if ends[0] == "[" else value > low
        return is_over and (value <= high if ends[1] == "]" else value < high)

    return Rule(f"a number in {ends[0]}{low}, {high}{ends[1]}", holds)


def one_of(*choices: object) -> Rule:
    return Rule(f"one of {', '.join(map(repr, choices))}", lambda value: value in choices)


def each(rule: Rule) -> Rule:
    """The rule for every entry of a tuple."""
    return Rule(f"every entry {rule.words}", lambda values: all(rule.holds(value) for value in values))


def check_fields(record: Any, **rules: Rule) -> None:
    """Raises a ValueError that names the first field whose value is not what it should be.

    >>> @dataclasses.dataclass
    ... class Example:
    ...     size: int = 3
    >>> check_fields(Example(), size=at_least(1))
    >>> check_fields(Example(size=0), size=at_least(1))
    Traceback (most recent call last):
    ...
    ValueError: Example.size is 0; expected at least 1
    """
    kind_of_record: Any = type(record)
    hints = _hints(kind_of_record)
    for field in dataclasses.fields(record):
        value, kind = getattr(record, field.name), hints[field.name]
        kinds = typing.get_args(kind) if typing.get_origin(kind) in (Union, types.UnionType) else (kind,)
        if value is None and type(None) in kinds:
            continue
        needed = [_type_rule(kind) for kind in kinds if kind is not type(None)]
        rule = rules.get(field.name)
        expected = None
        if needed and None not in needed and not any(r is not None and r.holds(value) for r in needed):
            expected = " or ".join(r.words for r in needed if r is not None)
        elif rule is not None and not rule.holds(value):
            expected = rule.words
        if expected is not None:
            raise ValueError(f"{type(record).__name__}.{field.name} is {value!r}; expected {expected}")


@functools.cache
def _hints(kind: Any) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _type_rule(kind: Any) -> Rule | None:
    """What a value of an annotated type must be; None where any value may be right."""
    if typing.get_origin(kind) is Literal:
        return one_of(*typing.get_args(kind))
    return _TYPES.get(kind)


_TYPES: dict[Any, Rule] = {
    bool: Rule("True or False", lambda value: isinstance(value, bool)),
    int: Rule("a whole number", lambda x: isinstance(x, int) and not isinstance(x, bool)),
    float: Rule(
        "a finite number",
        lambda x: isinstance(x, int | float) and not isinstance(x, bool) and math.isfinite(x),
    ),
}
