"""A memory that counts every batch exactly once, whoever dies in between.

    request ──▶ seen before? ── yes ──▶ the answer that was given
                     │ no
                     ▼
               journal ──▶ memory server ──▶ answer, kept for repeats

An actor has one request under way at a time. It sends it again, with the same stamp, until it is
answered; so the last answer to each actor is all that must be kept. What is in the journal is counted,
what is not was never answered. A memory that is started anew reads the last snapshot, which holds the
kept answers too, and does again what the journal says: the same requests in the same order, the same bits.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softcount.launch.ray import journal
from softcount.launch.ray.journal import JournalFull, Lineage, Superseded
from softcount.launch.ray.ledger import Ledger, own, refused
from softcount.launch.ray.records import Record
from softcount.launch.ray.stamps import Answer, Pulse, Request
from softcount.roles.memory_server import MemoryServer
from softcount.types import State
from softcount.validation import at_least, check_fields

READ_ONLY = (
    "score",
    "appraise",
    "is_shown",
    "wants_observations",
    "num_founded",
    "founding_observations",
    "metrics",
    "describe",
    "memories",
    "state_dict",
    "begin_evaluation",
    "evaluate",
)
"""What may be asked without a stamp: it changes nothing that actors share."""


@dataclass(frozen=True, kw_only=True)
class OnceConfig:
    """How a memory is kept safe."""

    snapshot_batches: int = 2000
    """Batches between snapshots; more make a restart slower and the journal longer."""
    keep_history: bool = False
    """Keep every journal and snapshot, so that the whole life of the memory can be replayed."""

    def __post_init__(self) -> None:
        check_fields(self, snapshot_batches=at_least(1))


class EvaluationLost(RuntimeError):
    """The memory was started anew in the middle of an evaluation; it is to be begun again."""


def found(folder: Path, server: MemoryServer, *, floor: int = 0) -> None:
    """Begins a new life of the memory in a folder, from the state that the server has.

    Older memories there can no longer answer, and incarnations below `floor` are refused.
    """
    ledger = Ledger(server)
    ledger.floor = floor
    journal.begin(folder, journal.claim(folder), ledger.state_dict())


def replay(folder: Path, server: MemoryServer) -> Iterator[tuple[Record, Answer]]:
    """Lives the memory's life again from its beginning; needs `keep_history`. Nothing is written."""
    lineage, ledger = Lineage(folder), Ledger(server)
    start, state = lineage.load(oldest=True)
    ledger.load_state_dict(state)
    for record in lineage.records(start):
        yield record, ledger.act(record.request, record.position)


class Once:
    """The memory of one epoch: recovers, answers, keeps journal and snapshots. One thread asks it."""

    def __init__(self, server: MemoryServer, folder: Path, config: OnceConfig | None = None) -> None:
        started = time.perf_counter()
        self.folder, self.config = folder, config or OnceConfig()
        self.ledger = Ledger(server)
        epoch = journal.claim(folder)
        self._lineage = Lineage(folder, below=epoch)
        self.snapshot_position, state = self._lineage.load()
        self.ledger.load_state_dict(state)
        for record in self._lineage.records(self.snapshot_position):
            self.ledger.act(record.request, record.position)
        self.journal = journal.succeed(self._lineage, epoch)
        self._held: tuple[int, float] = (0, 0.0)  # by whom, and until when
        self._writer: threading.Thread | None = None
        self._journal_problem, self._snapshot_problem = "", ""
        self._is_evaluating = False
        self._asked_position = self.snapshot_position  # of the snapshot that was begun last
        self.recovery_seconds = time.perf_counter() - started

    @property
    def epoch(self) -> int:
        return self.journal.epoch

    @property
    def position(self) -> int:
        """How many requests are counted."""
        return self.journal.position

    def request(self, request: Request, known_epoch: int = 0) -> Answer:
        """Counts a request, unless it was before; answers it."""
        return self._answer(request, known_epoch)._replace(epoch=self.epoch)

    def _answer(self, request: Request, known_epoch: int) -> Answer:
        if known_epoch > self.epoch:
            return refused("superseded", f"epoch {known_epoch} has answered before; this is {self.epoch}")
        try:
            answer = self.ledger.judge(request)
            if answer is not None:
                self.journal.check_current()
                return answer
            holder, until = self._held
            if time.monotonic() < until and holder != request.actor:
                return refused("held", "atoms are being moved")
            position = self.journal.append(request)
        except Superseded as error:
            return refused("superseded", str(error))
        except JournalFull as error:
            self._journal_problem = str(error)
            return refused("full", str(error))
        self._journal_problem = ""
        answer = self.ledger.act(request, position)
        if request.kind == "move":
            self._held = (0, 0.0)
        if self.position - self._asked_position >= self.config.snapshot_batches:
            self.snapshot()
        return answer

    def hold(self, actor: int, seconds: float) -> int:
        """Lets nobody else change the memory for a while; returns its position."""
        self.journal.check_current()
        holder, until = self._held
        if holder == actor or time.monotonic() >= until:
            self._held = (actor, time.monotonic() + seconds)
        return self.position

    def ask(self, method: str, *arguments: Any) -> Any:
        """Asks the server for something that changes nothing."""
        if method not in READ_ONLY:
            raise ValueError(f"{method} cannot be asked without a stamp; expected one of {READ_ONLY}")
        self.journal.check_current()
        if method == "evaluate" and not self._is_evaluating:
            raise EvaluationLost("the memory was started anew since the evaluation began")
        self._is_evaluating |= method == "begin_evaluation"
        return getattr(self.ledger.server, method)(*arguments)

    def checkpoint(self) -> State:
        """Makes the journal durable and begins a snapshot; returns the part of a checkpoint."""
        self.journal.check_current()
        self.journal.sync()
        self.snapshot()
        return self.ledger.server.state_dict()

    def snapshot(self, *, wait: bool = False) -> None:
        """Begins to write a snapshot on a thread of its own; one at a time.

        If it cannot be written the journal goes on, and the next one is tried in its turn.
        """
        if self._writer is not None and self._writer.is_alive() and not wait:
            return
        self._join()
        self._asked_position = self.position
        try:
            self.journal.rotate()
        except OSError as error:
            self._snapshot_problem = f"no snapshot could be begun in {self.folder}: {error}"
            return
        state = own(self.ledger.state_dict())
        self._writer = threading.Thread(target=self._write, args=(self.position, state), daemon=True)
        self._writer.start()
        if wait:
            self._join()

    def _write(self, position: int, state: State) -> None:
        try:
            journal.save_snapshot(self.folder, self.epoch, position, state)
            self.snapshot_position, self._snapshot_problem = position, ""
            if not self.config.keep_history:
                self.journal.prune(self._lineage)
        except (OSError, Superseded) as error:
            self._snapshot_problem = f"no snapshot could be written in {self.folder}: {error}"

    def _join(self) -> None:
        if self._writer is not None:
            self._writer.join()
            self._writer = None

    def pulse(self) -> Pulse:
        """Returns a sign of life."""
        return Pulse(
            pid=os.getpid(),
            host=socket.gethostname(),
            epoch=self.epoch,
            position=self.position,
            journal_bytes=self.journal.num_bytes,
            snapshot_position=self.snapshot_position,
            recovery_seconds=self.recovery_seconds,
            problem=self._journal_problem or self._snapshot_problem,
        )

    def close(self) -> None:
        """Lets go of the files, with everything written."""
        self._join()
        self.journal.close()
