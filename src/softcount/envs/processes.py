"""Copies of an environment in processes of their own, as one vector environment.

Python computes on one thread at a time unless a library lets go of its lock. Emulators do not (ale-py 0.12),
so threads make them no faster. Here every process holds a share of the copies. A copy has its own state and
generator and gets the same seed wherever it lives. So processes change the speed and nothing else, and a
state that was saved with two of them fits one or four.
"""

from __future__ import annotations

import pickle
import signal
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from threading import Lock
from typing import Any

import numpy as np

from softcount.envs.spaces import checked_actions
from softcount.envs.vector import GymnasiumVector
from softcount.types import ActionSpec, Array, ObservationSpec, State, TimeStep, map_arrays

Build = Callable[[int, int], GymnasiumVector]
"""Makes the copies from a number on, so many of them; it is sent to the process."""

KNOWN = ("observation_spec", "action_spec", "num_places", "task_names", "map_shape")
"""What is asked once, at the start."""


class ProcessVector:
    """Shares of copies, one share in each of several processes, behind `types.VectorEnv`."""

    def __init__(self, build: Build, *, num_envs: int, num_processes: int) -> None:
        self.num_envs = num_envs
        shares = np.array_split(np.arange(num_envs), min(num_processes, num_envs))
        self._borders = np.cumsum([len(share) for share in shares])[:-1]
        self._lock = Lock()
        self._workers: list[_Worker] = []
        self._unusable = ""  # why nothing can be asked any more
        try:
            for share in shares:
                self._workers.append(_Worker(build, int(share[0]), len(share)))
            answers = [worker.answer() for worker in self._workers]
            known, *_ = [_checked(answer) for answer in answers]
        except BaseException:
            self.close()
            raise
        self.observation_spec: ObservationSpec = known["observation_spec"]
        self.action_spec: ActionSpec = known["action_spec"]
        self.num_places: int | None = known["num_places"]
        self.task_names: tuple[str, ...] = known["task_names"]
        self.map_shape: tuple[int, int] | None = known["map_shape"]
        self.task_ids = np.zeros(num_envs, np.int64)

    @property
    def num_frames(self) -> int | None:
        """Frames that all copies have played so far, where they count them."""
        counts = self._ask("num_frames")
        return None if None in counts else sum(counts)

    def cell_of(self, place: int) -> tuple[int, int]:
        """Returns where on the map a place lies."""
        cell: tuple[int, int] = self._ask("cell_of", [(place,)], self._workers[:1])[0]
        return cell

    def reset(self, seed: int | None = None) -> TimeStep:
        """Starts a new episode in every copy; a seed gives each copy its own, derived from it."""
        return _join(self._ask("reset", [(seed,)] * len(self._workers)))

    def step(self, actions: Array) -> TimeStep:
        """Steps every copy; copies whose episode was over start a new one instead."""
        actions = checked_actions(actions, self.action_spec, self.num_envs)
        return _join(self._ask("step", [(part,) for part in np.split(actions, self._borders)]))

    def get_state(self) -> State:
        """Returns the states of all copies, as one process would."""
        parts = self._ask("get_state")
        return {
            "envs": [state for part in parts for state in part["envs"]],
            "is_over": np.concatenate([part["is_over"] for part in parts]),
            "seed": parts[0]["seed"],
        }

    def set_state(self, state: State) -> None:
        """Continues exactly where `get_state` was called."""
        if len(state["envs"]) != self.num_envs:
            raise ValueError(f"the state is of {len(state['envs'])} copies; expected {self.num_envs}")
        starts, ends = [0, *self._borders], [*self._borders, self.num_envs]
        parts = [
            {
                "envs": state["envs"][start:end],
                "is_over": np.asarray(state["is_over"])[start:end],
                "seed": state["seed"],
            }
            for start, end in zip(starts, ends, strict=True)
        ]
        self._ask("set_state", [(part,) for part in parts])

    def close(self) -> None:
        """Ends every process; each closes its copies."""
        with self._lock:
            self._unusable = "is closed"
            for worker in self._workers:
                worker.connection.close()
            for worker in self._workers:
                worker.end()

    def _ask(
        self,
        name: str,
        arguments: Sequence[tuple[Any, ...]] | None = None,
        workers: Sequence[_Worker] | None = None,
    ) -> list[Any]:
        """Asks processes at once and takes all their answers; then the first error is raised here."""
        workers = self._workers if workers is None else workers
        given = arguments or [()] * len(workers)
        questions = [ForkingPickler.dumps((name, own)) for own in given]  # before any is sent
        with self._lock:
            if self._unusable:
                raise RuntimeError(f"the environment {self._unusable}; make it anew")
            self._unusable = "was interrupted while its processes answered"
            for worker, question in zip(workers, questions, strict=True):
                worker.ask(question)
            answers = [worker.answer() for worker in workers]
            self._unusable = ""
        return [_checked(answer) for answer in answers]


class _Worker:
    """This side of a process."""

    def __init__(self, build: Build, first: int, num: int) -> None:
        spawn = get_context("spawn")
        self.copies = f"copies {first} to {first + num - 1}"
        self.connection, other = spawn.Pipe()
        self.process = spawn.Process(target=_serve, args=(other, build, first, num), daemon=True)
        self.process.start()
        other.close()  # so that the end of the process is the end of the connection

    def ask(self, question: Any) -> None:
        with suppress(OSError):  # a process that has ended says so when its answer is taken
            self.connection.send_bytes(question)

    def answer(self) -> tuple[bool, Any]:
        """Returns whether all is well, and what was asked for or else the error."""
        try:
            content = self.connection.recv_bytes()
        except (EOFError, OSError):
            return False, self._ended()
        answer: tuple[bool, Any] = pickle.loads(content)
        return answer

    def end(self) -> None:
        self.process.join(timeout=10)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def _ended(self) -> RuntimeError:
        self.process.join(timeout=1)
        return RuntimeError(
            f"the process of {self.copies} has ended, exit code {self.process.exitcode}; "
            "a run can be resumed from its last checkpoint"
        )


def _serve(connection: Connection, build: Build, first: int, num: int) -> None:
    """Answers questions until nobody is left to ask; signals are for the one who asks."""
    for ignored in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ignored, signal.SIG_IGN)
    with suppress(EOFError, OSError), ExitStack() as stack:
        try:
            env = stack.enter_context(closing(build(first, num)))
            known = {name: getattr(env, name) for name in KNOWN}
        except Exception as error:
            connection.send_bytes(_failure(error))
            return
        connection.send((True, known))
        while True:
            name, arguments = connection.recv()
            try:
                found = getattr(env, name)
                answer = ForkingPickler.dumps((True, found(*arguments) if callable(found) else found))
            except Exception as error:
                answer = _failure(error)
            connection.send_bytes(answer)


def _failure(error: Exception) -> Any:
    """Packs an error, or what it says where it cannot be packed and unpacked."""
    try:
        packed = ForkingPickler.dumps((False, error))
        pickle.loads(packed)
    except Exception:
        packed = ForkingPickler.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
    return packed


def _checked(answer: tuple[bool, Any]) -> Any:
    is_good, content = answer
    if not is_good:
        raise content
    return content


def _join(steps: list[TimeStep]) -> TimeStep:
    rows: TimeStep = map_arrays(lambda *parts: np.concatenate(parts), *steps)
    return rows
