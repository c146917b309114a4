"""Who was answered what: decides which requests are counted, counts them, and keeps the last answers.

A ledger follows from the requests alone: the same ones in the same order give the same bits, in a
memory that never died and in one that replays a journal.
"""

from __future__ import annotations

import zlib
from typing import Any, NamedTuple

import numpy as np

from softcount import store
from softcount.launch.ray.stamps import Answer, Request, Verdict
from softcount.roles.memory_server import MemoryServer
from softcount.types import Array, Features, State


class Last(NamedTuple):
    """The last request of an actor, and what it was answered."""

    incarnation: int
    sequence: int
    crc: int
    position: int
    verdict: Verdict
    value: Array | None
    reason: str


class Ledger:
    """A memory server and who was answered what; the same requests in the same order give the same ledger."""

    def __init__(self, server: MemoryServer) -> None:
        self.server = server
        self.last: dict[int, Last] = {}
        self.floor = 0  # incarnations below are refused

    def judge(self, request: Request) -> Answer | None:
        """Returns the answer to a request that is not to be counted; None if it is."""
        last = self.last.get(request.actor)
        if request.incarnation < max(self.floor, last.incarnation if last else 0):
            return refused("older", f"actor {request.actor} has a later life than {request.incarnation}")
        is_known = last is not None and last.incarnation == request.incarnation
        expected = last.sequence + 1 if last is not None and is_known else 0
        if request.sequence == expected:
            return None
        if request.sequence > expected:
            return refused("gap", f"actor {request.actor} sent {request.sequence}; expected {expected}")
        assert last is not None
        if request.sequence < last.sequence:
            return refused("answered", f"actor {request.actor} sent {request.sequence}, long answered")
        if zlib.crc32(request.body) != last.crc:
            return refused("reused", f"actor {request.actor} sent another batch as {request.sequence}")
        return Answer(last.verdict, 0, last.position, last.value, last.reason)

    def act(self, request: Request, position: int) -> Answer:
        """Counts a request and keeps the answer."""
        verdict, value, reason = self._act(request, position)
        crc = zlib.crc32(request.body)
        self.last[request.actor] = Last(
            request.incarnation, request.sequence, crc, position, verdict, value, reason
        )
        return Answer(verdict, 0, position, value, reason)

    def _act(self, request: Request, position: int) -> tuple[Verdict, Array | None, str]:
        try:
            return getattr(self, f"_{request.kind}")(store.unpack(request.body), position)  # type: ignore[no-any-return]
        except MemoryError:  # next time there may be enough
            raise
        except Exception as error:  # the same when it is replayed, so it is an answer like any other
            return "failed", None, f"{type(error).__name__}: {error}"

    def _observe(self, asked: State, position: int) -> tuple[Verdict, Array | None, str]:
        features = Features(asked["embedding"], asked["surprise"], asked["place"])
        rows = (asked[name] for name in ("env_ids", "is_first", "is_terminal", "task_ids", "observation"))
        return "done", self.server(features, *rows), ""

    def _move(self, asked: State, position: int) -> tuple[Verdict, Array | None, str]:
        if asked["position"] not in (None, position):
            return "changed", None, f"atoms as of {asked['position']} were to move; it is {position}"
        self.server.move_atoms(Features(embedding=asked["embedding"]))
        return "done", None, ""

    def _load(self, asked: State, position: int) -> tuple[Verdict, Array | None, str]:
        self.server.load_state_dict(own(asked["state"]))
        return "done", None, ""

    def state_dict(self) -> State:
        last = {str(actor): entry._asdict() for actor, entry in self.last.items()}
        return {"server": self.server.state_dict(), "last": last, "floor": self.floor}

    def load_state_dict(self, state: State) -> None:
        self.server.load_state_dict(state["server"])
        self.last = {int(actor): Last(**entry) for actor, entry in state["last"].items()}
        self.floor = state["floor"]


def own(state: Any) -> Any:
    """Returns a state that shares no array with another one."""
    if isinstance(state, dict):
        return {name: own(part) for name, part in state.items()}
    if isinstance(state, list | tuple):
        return [own(part) for part in state]
    return np.array(state) if isinstance(state, np.ndarray) else state


def refused(verdict: Verdict, reason: str) -> Answer:
    """An answer to something that was not counted."""
    return Answer(verdict, 0, -1, None, reason)
