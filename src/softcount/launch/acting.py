"""One step of an actor: ask for policy and features, be paid for the arrival, act."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from softcount.roles.actor import Actor, Reply, Request
from softcount.roles.memory_server import MemoryServer
from softcount.types import Array, Step, TimeStep

Timed = Callable[[str], AbstractContextManager[None]]


class Acted(NamedTuple):
    """What one step gave: a complete row, the state before it, and what was arrived at."""

    row: Step
    state: Any
    now: TimeStep
    intrinsic: Array


def act(
    actor: Actor,
    inference: Callable[[Request], Reply],
    memory: MemoryServer,
    *,
    keeps_observations: bool,
    timed: Timed,
) -> Acted:
    """Takes one step in every environment of an actor."""
    now, env_ids, task_ids = actor.arrival()
    with timed("inference"):
        reply = inference(actor.request())
    with timed("memory"):
        features = reply.features._replace(place=now.place)
        kept = now.observation if keeps_observations else None
        intrinsic = memory(features, env_ids, now.is_first, now.is_terminal, task_ids, kept)
    with timed("actor"):
        row, state = actor.step(reply, intrinsic)
    return Acted(row, state, now, intrinsic)
