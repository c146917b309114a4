"""Copies of an environment in processes of their own, as one vector environment.

Python computes on one thread at a time unless a library lets go of its lock. Emulators do not (ale-py 0.12),
so threads make them no faster. Here every process holds a share of the copies. A copy has its own state and
generator and gets the same seed wherever it lives. So processes change the speed and nothing else, and what
was saved with two of them goes on with one or four.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
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
        try:
            for share in shares:
                self._workers.append(_Worker(build, int(share[0]), len(share)))
            known, *_ = [worker.answer() for worker in self._workers]
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
        with self._lock:
            self._workers[0].ask("cell_of", place)
            cell: tuple[int, int] = self._workers[0].answer()
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
        for worker in self._workers:
            worker.connection.close()
        for worker in self._workers:
            worker.end()

    def _ask(self, name: str, arguments: Sequence[tuple[Any, ...]] | None = None) -> list[Any]:
        """Asks all processes at once and takes all their answers; then the first error is raised here."""
        given = arguments or [()] * len(self._workers)
        with self._lock:
            for worker, own in zip(self._workers, given, strict=True):
                worker.ask(name, *own)
            answers = [worker.try_answer() for worker in self._workers]
        for is_good, content in answers:
            if not is_good:
                raise content
        return [content for _, content in answers]


class _Worker:
    """This side of a process."""

    def __init__(self, build: Build, first: int, num: int) -> None:
        spawn = get_context("spawn")
        self.copies = f"copies {first} to {first + num - 1}"
        self.connection, other = spawn.Pipe()
        self.process = spawn.Process(target=_serve, args=(other, build, first, num), daemon=True)
        self.process.start()
        other.close()  # so that the end of the process is the end of the connection

    def ask(self, name: str, *arguments: Any) -> None:
        with suppress(OSError):  # a process that has ended says so when its answer is taken
            self.connection.send((name, arguments))

    def answer(self) -> Any:
        is_good, content = self.try_answer()
        if is_good:
            return content
        raise content

    def try_answer(self) -> tuple[bool, Any]:
        """Returns whether all is well, and what was asked for or else the error."""
        try:
            answer: tuple[bool, Any] = self.connection.recv()
        except (EOFError, OSError):
            return False, self._ended()
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
    """Answers questions until nobody is left to ask; Ctrl-C is for the one who asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        env = build(first, num)
        known = {name: getattr(env, name) for name in KNOWN}
    except Exception as error:
        connection.send((False, error))
        return
    with closing(env):
        connection.send((True, known))
        while True:
            try:
                name, arguments = connection.recv()
            except EOFError:
                return
            try:
                found = getattr(env, name)
                answer = True, found(*arguments) if callable(found) else found
            except Exception as error:
                answer = False, error
            connection.send(answer)


def _join(steps: list[TimeStep]) -> TimeStep:
    rows: TimeStep = map_arrays(lambda *parts: np.concatenate(parts), *steps)
    return rows
