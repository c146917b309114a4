"""Runs mutants, several at once, and judges what became of each."""

from __future__ import annotations

import contextlib
import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from mutants.entries import Mutant
from mutants.natives import Builder, module_of
from mutants.trees import Tree, built_module
from mutants.worker import FAILED, PASSED

KILLED, HUNG, CRASHED, SURVIVED, UNUSABLE = "killed", "hung", "crashed", "survived", "unusable"
DEAD = {KILLED, HUNG, CRASHED}


class Verdict(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    outcome: str
    test: str | None  # who noticed, or what ran when it hung or crashed
    seconds: float

    @property
    def is_dead(self) -> bool:
        return self.outcome in DEAD


class Worker:
    """A copy of the project and the warm process that tests it."""

    def __init__(self, folder: Path) -> None:
        self.tree = Tree(folder)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "mutants.worker"],
            cwd=folder,
            env=self.tree.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._receive()

    def ask(self, tests: Sequence[str], limit: float, *, stops: bool = True) -> dict[str, Any]:
        """Runs tests on the copy as it is."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"tests": list(tests), "limit": limit, "stops": stops}) + "\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = self._receive()
        return answer

    def _receive(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the warm process has ended; run `python -m mutants.worker` to see why")
        return json.loads(line)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


class Court:
    """Some workers, each with its own copy."""

    def __init__(self, num_workers: int, limit: float) -> None:
        self.limit = limit
        self._folder = tempfile.TemporaryDirectory(prefix="mutants-")
        self._builder = Builder()
        self.workers = [Worker(Path(self._folder.name) / str(i)) for i in range(num_workers)]

    def judge(self, mutants: Sequence[Mutant]) -> Iterator[Verdict]:
        """Yields verdicts as they come; native mutants first, since building takes longest."""
        waiting: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
        done: queue.SimpleQueue[Verdict | BaseException] = queue.SimpleQueue()
        for mutant in sorted(mutants, key=lambda x: not x.is_native):
            waiting.put(mutant)
        for worker in self.workers:
            threading.Thread(target=self._work, args=(worker, waiting, done), daemon=True).start()
        for _ in mutants:
            verdict = done.get()
            if isinstance(verdict, BaseException):
                raise verdict
            yield verdict

    def fails_when_right(self, tests: Sequence[str]) -> list[str]:
        """Returns which of these tests fail although nothing is wrong."""
        answer = self.workers[0].ask(tests, limit=self.limit * 10, stops=False)
        if answer["is_late"] or answer["exit"] not in (PASSED, FAILED):
            return [f"{answer['last']} (it did not end well)"]
        return list(answer["failed"])

    def close(self) -> None:
        for worker in self.workers:
            worker.close()
        self._folder.cleanup()

    def _work(
        self,
        worker: Worker,
        waiting: queue.SimpleQueue[Mutant],
        done: queue.SimpleQueue[Verdict | BaseException],
    ) -> None:
        try:
            with contextlib.suppress(queue.Empty):
                while True:
                    done.put(self._try(worker, waiting.get_nowait()))
        except BaseException as error:  # told to whoever waits
            done.put(error)

    def _try(self, worker: Worker, mutant: Mutant) -> Verdict:
        started = time.monotonic()
        try:
            with self._held(worker, mutant):
                answer = worker.ask(mutant.killed_by, self.limit)
        except subprocess.CalledProcessError as error:
            return Verdict(mutant, UNUSABLE, f"does not compile: {error.stdout[-400:]}", 0.0)
        return Verdict(mutant, *outcome_of(answer), round(time.monotonic() - started, 1))

    @contextlib.contextmanager
    def _held(self, worker: Worker, mutant: Mutant) -> Iterator[None]:
        if not mutant.is_native:
            with worker.tree.holding(mutant):
                yield
            return
        module = module_of(mutant)
        worker.tree.place(module, self._builder.build(mutant))
        try:
            yield
        finally:
            worker.tree.place(module, built_module(module))


def outcome_of(answer: dict[str, Any]) -> tuple[str, str | None]:
    """Reads how the tests ended: a mutant must be noticed by a test, not by failing to import."""
    if answer["is_late"]:
        return HUNG, answer["last"]
    if answer["exit"] < 0 or (answer["exit"] == FAILED and not answer["failed"]):
        return CRASHED, answer["last"]
    if answer["exit"] == FAILED:
        return KILLED, answer["failed"][0]
    if answer["exit"] == PASSED and answer["last"] is not None:
        return SURVIVED, None
    return UNUSABLE, "its tests cannot be run: a name is gone, or nothing can be imported"
