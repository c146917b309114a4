"""An actor's side of the shared memory: stamps, patience, and the same methods as the memory itself.

A call that was not answered may have been counted or not, and nobody can tell from outside. So it is
sent again with the same stamp until there is an answer; the memory knows which it has counted. Between
tries the client waits a little longer each time. It knows nothing of Ray: how a call is made is passed in.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from softcount import store
from softcount.launch.ray.stamps import Answer, Kind, Request
from softcount.types import Array, Features, Observation, State, map_arrays
from softcount.validation import above, check_fields


class Unavailable(ConnectionError):
    """A call was not answered; it may or may not have been executed."""


class MemoryUnreachable(ConnectionError):
    """The memory did not answer for longer than anybody waits."""


class Refused(RuntimeError):
    """The memory will not count what was sent, however often it comes."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(f"{answer.verdict}: {answer.reason}")
        self.answer = answer


class Calls(Protocol):
    """How a memory is called; raises `Unavailable` where no answer came."""

    def request(self, request: Request, known_epoch: int, timeout_s: float) -> Answer: ...
    def ask(self, method: str, arguments: tuple[Any, ...], timeout_s: float) -> Any: ...
    def hold(self, actor: int, seconds: float, timeout_s: float) -> int: ...


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How long to wait for what."""

    call_timeout_s: float = 20.0
    """For one answer, before the call is made again."""
    first_pause_s: float = 0.05
    """Before the second try; each further pause is twice as long."""
    longest_pause_s: float = 1.0
    """No pause is longer."""
    give_up_s: float = 600.0
    """After so long without an answer, `MemoryUnreachable`."""
    held_pause_s: float = 0.002
    """While somebody moves atoms."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            call_timeout_s=above(0),
            first_pause_s=above(0),
            longest_pause_s=above(0),
            give_up_s=above(0),
            held_pause_s=above(0),
        )


class MemoryClient:
    """Stands where a `MemoryServer` stands, for one life of one actor."""

    def __init__(
        self,
        calls: Calls,
        *,
        actor: int,
        incarnation: int,
        patience: Patience | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.actor, self.incarnation, self.sequence = actor, incarnation, 0
        self.patience = patience or Patience()
        self.epoch, self.position = 0, -1  # of the last answer
        self.num_retries, self.waited_s = 0, 0.0  # calls made again, and time without an answer
        self.problem = ""  # why the last try failed
        self._calls, self._sleep, self._clock = calls, sleep, clock

    def __call__(
        self,
        features: Features,
        env_ids: Array,
        is_first: Array,
        is_terminal: Array,
        task_ids: Array | None = None,
        observation: Observation = None,
    ) -> Array:
        """Has a batch counted exactly once; returns r^i for the arrival, float32 [B]."""
        value = self._send(
            "observe",
            {
                **features._asdict(),
                "env_ids": env_ids,
                "is_first": is_first,
                "is_terminal": is_terminal,
                "task_ids": task_ids,
                "observation": observation,
            },
        ).value
        return np.array(value, np.float32)

    def move_atoms(self, features: Features, position: int | None = None) -> None:
        """Puts every atom where the observation that founded it is embedded now.

        With a `position` only if nothing has changed since: otherwise `Refused`, as `changed`.
        """
        self._send("move", {"embedding": features.embedding, "position": position})

    def move_with(
        self, embed: Callable[[Observation], Features], *, at_once: int = 2048, hold_s: float = 10.0
    ) -> None:
        """Moves all atoms while others use the memory: they wait from the first question to the move."""
        while True:
            position = self._hold(hold_s)
            num = self.num_founded()
            if num == 0:
                return
            parts = []
            for start in range(0, num, at_once):
                parts.append(embed(self.founding_observations(start, min(start + at_once, num))))
                self._hold(hold_s)
            try:
                self.move_atoms(map_arrays(lambda *leaves: np.concatenate(leaves), *parts), position)
            except Refused as refusal:
                if refusal.answer.verdict != "changed":
                    raise
            else:
                return

    def load_state_dict(self, state: State) -> None:
        self._send("load", {"state": state})

    def _hold(self, seconds: float) -> int:
        timeout = self.patience.call_timeout_s
        return int(self._until_answered(lambda: self._calls.hold(self.actor, seconds, timeout)))

    def _send(self, kind: Kind, arguments: State) -> Answer:
        """Sends a request until it is counted."""
        request = Request(self.actor, self.incarnation, self.sequence, kind, store.pack(arguments))
        answer: Answer = self._until_answered(lambda: self._try(request))
        self.sequence += 1  # it has its place in the order, also if the memory did not like it
        self.epoch, self.position = answer.epoch, answer.position
        if answer.verdict != "done":
            raise Refused(answer)
        return answer

    def _try(self, request: Request) -> Answer:
        answer = self._calls.request(request, self.epoch, self.patience.call_timeout_s)
        while answer.verdict == "held":
            self._sleep(self.patience.held_pause_s)
            answer = self._calls.request(request, self.epoch, self.patience.call_timeout_s)
        if answer.verdict in ("superseded", "full") or answer.epoch < self.epoch:
            raise Unavailable(answer.reason or f"epoch {answer.epoch} answered after {self.epoch}")
        if answer.position < 0:
            raise Refused(answer)
        return answer

    def _until_answered(self, call: Callable[[], Any]) -> Any:
        started, pause = self._clock(), self.patience.first_pause_s
        while True:
            try:
                answer = call()
            except Unavailable as error:
                self.problem = str(error)
                if self._clock() - started >= self.patience.give_up_s:
                    raise MemoryUnreachable(
                        f"the memory did not answer actor {self.actor} for "
                        f"{self.patience.give_up_s:g} seconds: {error}"
                    ) from error
                self.num_retries += 1
                self._sleep(pause)
                pause = min(2 * pause, self.patience.longest_pause_s)
            else:
                if self.problem:
                    self.waited_s += self._clock() - started
                    self.problem = ""
                return answer

    def _ask(self, method: str, *arguments: Any) -> Any:
        timeout = self.patience.call_timeout_s
        return self._until_answered(lambda: self._calls.ask(method, arguments, timeout))

    def score(
        self,
        features: Features,
        env_ids: Array,
        is_first: Array,
        is_terminal: Array,
        task_ids: Array | None = None,
    ) -> Array:
        return self._ask("score", features, env_ids, is_first, is_terminal, task_ids)  # type: ignore[no-any-return]

    def begin_evaluation(self) -> None:
        self._ask("begin_evaluation")

    def evaluate(
        self, features: Features, env_ids: Array, is_first: Array, task_ids: Array | None = None
    ) -> Array:
        return self._ask("evaluate", features, env_ids, is_first, task_ids)  # type: ignore[no-any-return]

    def appraise(self, features: Features) -> Array | None:
        return self._ask("appraise", features)  # type: ignore[no-any-return]

    def is_shown(self, is_terminal: Array) -> Array:
        return self._ask("is_shown", is_terminal)  # type: ignore[no-any-return]

    def wants_observations(self) -> bool:
        return bool(self._ask("wants_observations"))

    def num_founded(self) -> int:
        return int(self._ask("num_founded"))

    def founding_observations(self, start: int, stop: int) -> Observation:
        return self._ask("founding_observations", start, stop)

    def metrics(self) -> dict[str, float]:
        return dict(self._ask("metrics"))

    def describe(self) -> dict[str, float]:
        return dict(self._ask("describe"))

    def memories(self) -> dict[str, State]:
        return dict(self._ask("memories"))

    def state_dict(self) -> State:
        return dict(self._ask("state_dict"))
