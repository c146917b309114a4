"""Records that check themselves: types from the annotations, ranges from the rules, one form of message."""

from dataclasses import dataclass
from typing import Literal

import pytest

from softcount.validation import above, at_least, between, check_fields, each, one_of


@dataclass(frozen=True, kw_only=True)
class Settings:
    size: int = 3
    share: float = 0.5
    limit: float | None = None
    kind: Literal["a", "b"] = "a"
    is_on: bool = True
    sizes: tuple[int, ...] = (1, 2)
    name: str = "x"
    torso: str | int = "mlp"

    def __post_init__(self):
        check_fields(
            self,
            size=at_least(1),
            share=between(0, 1, "(]"),
            limit=above(0),
            sizes=each(at_least(1)),
            name=one_of("x", "y"),
        )


def test_what_fits_passes():
    Settings(size=1, share=1, limit=2, kind="b", is_on=False, sizes=(), name="y", torso=3)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"size": 0}, "Settings.size is 0; expected at least 1"),
        ({"size": 1.5}, "Settings.size is 1.5; expected a whole number"),
        ({"size": True}, "Settings.size is True; expected a whole number"),
        ({"size": "3"}, "Settings.size is '3'; expected a whole number"),
        ({"share": 0}, r"Settings.share is 0; expected a number in \(0, 1\]"),
        ({"share": 1.01}, r"Settings.share is 1.01; expected a number in \(0, 1\]"),
        ({"share": float("nan")}, "Settings.share is nan; expected a finite number"),
        ({"share": float("inf")}, "Settings.share is inf; expected a finite number"),
        ({"share": None}, "Settings.share is None; expected a finite number"),
        ({"limit": 0.0}, "Settings.limit is 0.0; expected a number above 0"),
        ({"kind": "c"}, "Settings.kind is 'c'; expected one of 'a', 'b'"),
        ({"is_on": 1}, "Settings.is_on is 1; expected True or False"),
        ({"sizes": (2, 0)}, r"Settings.sizes is \(2, 0\); expected every entry at least 1"),
        ({"name": "z"}, "Settings.name is 'z'; expected one of 'x', 'y'"),
    ],
)
def test_what_does_not_is_named_with_what_was_expected(fields, message):
    with pytest.raises(ValueError, match=message):
        Settings(**fields)


@pytest.mark.parametrize(("ends", "inside"), [("[]", (0, 1)), ("[)", (0,)), ("(]", (1,)), ("()", ())])
def test_the_ends_of_an_interval_belong_to_it_as_said(ends, inside):
    rule = between(0, 1, ends)
    assert [x for x in (-0.01, 0, 1, 1.01) if rule.holds(x)] == list(inside)
    assert rule.holds(0.5)
