"""What crosses between an actor and the shared memory: a stamped request, and its answer.

The stamp `(actor, incarnation, sequence)` names a batch once and for all. A request that is sent again,
because its answer was lost, carries the same stamp, and is answered without being counted again.
"""

from __future__ import annotations

import time
from typing import Any, Literal, NamedTuple

from softcount.types import Array

Kind = Literal["observe", "move", "load"]
KINDS: tuple[Kind, ...] = ("observe", "move", "load")
"""What can change a memory: a batch that is observed, atoms that move, a state that is loaded."""

Verdict = Literal[
    "done", "failed", "gap", "older", "answered", "reused", "changed", "held", "full", "superseded"
]


class Request(NamedTuple):
    """Something that changes the memory, stamped; the body is `store.pack`ed arguments."""

    actor: int
    """Who asks; at least 0. Each has one request under way at a time."""
    incarnation: int
    """Which life of that actor; greater ones are later."""
    sequence: int
    """0, 1, 2, ... within an incarnation."""
    kind: Kind
    body: bytes


class Answer(NamedTuple):
    """What became of a request.

    done        it was counted, now or when it first came; `value` is its pay
    failed      the memory refused its content, and said why; it will again
    gap         a request before this one never came
    older       a later life of this actor has already spoken
    answered    a later request of this life was already answered
    reused      this stamp came before, with another content
    changed     atoms were to move that are no longer the ones that were embedded
    held        somebody moves atoms: ask again in a moment
    full        the journal cannot be written: nothing was done, ask again later
    superseded  another memory has taken over: ask that one
    """

    verdict: Verdict
    epoch: int
    """Which memory answers; a successor's is greater."""
    position: int
    """Place of this batch in the one order of all; −1 if it has none."""
    value: Array | None = None
    reason: str = ""


class Pulse(NamedTuple):
    """A sign of life of the memory."""

    pid: int
    host: str
    epoch: int
    position: int
    """How many requests are counted."""
    journal_bytes: int
    snapshot_position: int
    """Up to where the last complete snapshot reaches."""
    recovery_seconds: float
    """How long this memory took to read snapshot and journal."""
    problem: str = ""
    """What keeps it from writing, as a full disk; '' if nothing does."""


def new_incarnation(at_least: int = 0) -> int:
    """Returns a number for a new life of an actor, greater than `at_least` and than all given out before.

    It is the clock's, in nanoseconds, so that it grows across restarts of whoever gives them out.

    >>> new_incarnation() < new_incarnation(at_least=new_incarnation())
    True
    """
    return max(time.time_ns(), at_least + 1)


Arguments = dict[str, Any]
"""What `store.pack` takes."""
