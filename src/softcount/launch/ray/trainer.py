"""Replay and learner in one process: rows of all actors come in, parameters go out. Knows nothing of Ray.

    add(rows) ──▶ source ──▶ learner, on its own thread ──▶ publish(parameters), every few updates

Rows are counted once: a message that is sent again is known by its stamp. While the learner is more
than `max_lag` batches behind its replay ratio, whoever adds rows waits for its answer. A publication
waits until the one before it has arrived, so what acts is at most two of them old. Where the source is
strict, actors ask for leave before every unroll, and get it when all that was learned acts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from softcount.launch.learning import AT_ONCE, Learning
from softcount.roles.inference import Inference, Parameters
from softcount.roles.learner import Learner
from softcount.types import Array, Sample, Source, State, Step, map_arrays

AT_A_TIME = 4
"""Batches, as far as they are due, that are drawn together and whose bonuses are asked with one message."""
MOST_AHEAD = 16
"""Rows that an actor may be ahead of the slowest one, where batches need rows of all."""


class Rows(NamedTuple):
    """Consecutive rows of one actor's environments, leaves `[K, B, ...]`, stamped."""

    actor: int
    incarnation: int
    sequence: int
    steps: Step
    states: Any  # recurrent states before each row
    env_ids: Array
    versions: list[int]  # number of updates behind the parameters that acted


@dataclass(frozen=True)
class TrainingRoles:
    """Whom a trainer needs; its inference worker embeds what is learned from once more."""

    inference: Inference
    memory: Any  # a client of the shared memory
    replay: Source
    learner: Learner


class NotStarted(RuntimeError):
    """Rows came to a trainer that does not know yet what the run has learned."""


class Trainer(Learning):
    """Learns as fast as it can, within its replay ratio."""

    roles: TrainingRoles

    def __init__(
        self,
        roles: TrainingRoles,
        *,
        relabel: bool,
        reembed_every: int,
        num_places: int | None,
        max_lag: float,
        publish_every: int,
        publish: Callable[[Parameters, int], None],
    ) -> None:
        super().__init__(roles, relabel=relabel, reembed_every=reembed_every, num_places=num_places)
        self.max_lag, self.publish_every, self._publish_to = max_lag, publish_every, publish
        self.problem: BaseException | None = None  # what the learner stumbled over
        self.num_rows: dict[int, int] = {}  # of each environment, by actor
        self.lags: dict[int, float] = {}  # updates made since the parameters that acted last, by actor
        self._last: dict[int, tuple[int, int]] = {}  # incarnation and sequence number, by actor
        self._changed = threading.Condition()  # holds source and counters
        self._is_running, self._is_learning, self._is_ended = False, False, False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begins to take rows and to learn; goes on after a pause."""
        with self._changed:
            self._is_running = True
            if self._thread is None:
                self._thread = threading.Thread(target=self._learn_forever, name="learner", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def pause(self) -> None:
        """Returns when no update is under way; nothing changes until `start`."""
        with self._changed:
            self._is_running = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._is_learning)

    def end(self) -> None:
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()

    def expect(self, actors: list[int]) -> None:
        """Says who will send rows, all from the same beginning."""
        with self._changed:
            self.num_rows = dict.fromkeys(actors, 0)
            self._last = {}

    def add(self, rows: Rows, wait_s: float) -> bool:
        """Takes rows in, once; answers when the learner has caught up, or after `wait_s` with False."""
        with self._changed:
            self._check_started()
            if (rows.incarnation, rows.sequence) > self._last.get(rows.actor, (-1, -1)):
                self._last[rows.actor] = rows.incarnation, rows.sequence
                self.num_rows[rows.actor] += len(rows.versions)
                self._add(rows)
                self._changed.notify_all()
            return self._changed.wait_for(lambda: self._may_go_on(rows.actor), wait_s)

    def _check_started(self) -> None:
        if not self._is_running and self._thread is None:
            raise NotStarted("the trainer was started anew and waits for a checkpoint")

    def _may_go_on(self, actor: int) -> bool:
        if self.problem is not None:
            raise self.problem
        if not self._is_running:
            return True  # it will be told to pause
        is_ahead = self.num_rows[actor] > min(self.num_rows.values()) + MOST_AHEAD
        if is_ahead and self.roles.replay.is_on_policy():
            return False
        return self.roles.replay.backlog() <= self.max_lag

    def leave(self, actor: int, wait_s: float) -> int:
        """How many rows of each environment an actor may give before it asks again, where that is strict.

        It waits until all that was learned acts; 0 after `wait_s` means not yet.
        """
        with self._changed:
            self._check_started()
            self._changed.wait_for(lambda: self._num_left(actor) > 0, wait_s)
            return self._num_left(actor)

    def _num_left(self, actor: int) -> int:
        if self.problem is not None:
            raise self.problem
        if self._is_learning or self.roles.replay.due():
            return 0
        ahead = self.num_rows[actor] - min(self.num_rows.values())
        return self.roles.replay.rows_to_batch() - ahead

    def _add(self, rows: Rows) -> None:
        for k, version in enumerate(rows.versions):
            row: Step = map_arrays(lambda x, k=k: x[k], rows.steps)
            state = map_arrays(lambda x, k=k: x[k], rows.states)
            with self._timed("replay"):
                self.roles.replay.add(row, state, rows.env_ids)
            self._count(row.extras.get("place"), row.is_first, row.intrinsic)
            self.lags[rows.actor] = float(self.num_updates - version)
            self.means.add({"runtime/parameter_lag": self.lags[rows.actor]})
        self.means.add({"runtime/backlog": self.roles.replay.backlog()})

    def _learn_forever(self) -> None:
        try:
            while self._learn_once():
                pass
        except BaseException as error:  # told to whoever adds rows, and to the supervisor
            with self._changed:
                self.problem, self._is_learning = error, False
                self._changed.notify_all()

    def _learn_once(self) -> bool:
        """Waits for batches and learns from them; False when it was told to end."""
        with self._changed:
            started = time.perf_counter()
            self._changed.wait_for(lambda: self._is_ended or (self._is_running and self.roles.replay.due()))
            self.seconds["learner_wait"] += time.perf_counter() - started
            if self._is_ended:
                return False
            self._is_learning = True
            samples = [self._sample()]
            while len(samples) < AT_A_TIME and self.roles.replay.due():
                samples.append(self._sample())
        with self._timed("relabel"):
            targets = self._relabelled(*samples) if self.relabel else [None] * len(samples)
        for sample, target in zip(samples, targets, strict=True):
            self._learn_from(sample, target)
        if self.roles.replay.is_strict() and not self.roles.replay.due():
            self.publish()
        with self._changed:
            self._is_learning = False
            self._changed.notify_all()
        return True

    def _learn_from(self, sample: Sample, targets: Array | None) -> None:
        update = self._learn(sample, targets)
        with self._changed:
            self._take_in(update)
            self._changed.notify_all()
        if self.num_updates % self.publish_every == 0 and not self.roles.replay.is_strict():
            self.publish()
        if self.is_reembedding_due():
            with self._timed("memory"):
                self.roles.memory.move_with(self.roles.inference.embed, at_once=AT_ONCE)

    def publish(self) -> None:
        """Lets what was learned act, here and elsewhere."""
        parameters = self.roles.learner.parameters()
        self.roles.inference.load(parameters)
        self._publish_to(parameters, self.num_updates)

    def report(self) -> State:
        """Returns what is reported, and forgets what is a mean since the last time."""
        with self._changed:
            return {
                "means": self.means.take(),
                "coverage": None if self.coverage is None else self.coverage.state_dict(),
                "replay": self.roles.replay.metrics(),
                "seconds": dict(self.seconds),
                "learner_seconds": self.learner_seconds,
            }

    def state_dict(self) -> State:
        """Returns the parts of a checkpoint that are kept here; call it while paused."""
        with self._changed:
            return {
                "loop": self._counters(None),
                "inference": self.roles.inference.state_dict(),
                "replay": self.roles.replay.state_dict(),
                "learner": self.roles.learner.state_dict(),
            }

    def load_state_dict(self, state: State, segments: dict[str, State]) -> None:
        """Takes over a state; an update that was not yet published when it was taken is taken in at once."""
        with self._changed:
            self._load_counters(state["loop"])
            self.roles.learner.load_state_dict(state["learner"])
            self.roles.inference.load_state_dict(state["inference"])
            self.roles.replay.load_state_dict(state["replay"], segments)
            if self.pending is not None:
                self._take_in(self.pending.result())
                self.pending = None


def stack(rows: list[tuple[Step, Any]]) -> tuple[Step, Any]:
    """Puts rows and the states before them one behind the other, `[K, B, ...]`."""
    steps = [row._replace(extras=dict(row.extras)) for row, _ in rows]
    states = [state for _, state in rows]
    return tuple(map_arrays(lambda *leaves: np.stack(leaves), *x) for x in (steps, states))  # type: ignore[return-value]
