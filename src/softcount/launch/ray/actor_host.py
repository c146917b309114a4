"""The process of an actor: steps its environments on its own clock, until it is told to pause.

    request ──▶ inference, waits      features ──▶ memory, waits      rows, a few at a time ──▶ trainer

While rows are on their way it goes on; before it sends the next ones it waits for the answer. So there
is at most one message under way to each, and messages keep their order without Ray's help. Where what was
learned must act before the next unroll, it asks the trainer for leave to begin one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from softcount.envs.worlds import Portraits, World
from softcount.launch.acting import act
from softcount.launch.build import build_actor, build_inference
from softcount.launch.ray.calls import Interrupted, until_answered
from softcount.launch.ray.client import MemoryClient
from softcount.launch.ray.hosts import (
    TRAINER,
    Birth,
    RolePulse,
    Setup,
    client_of_memory,
    inference_name,
    named,
)
from softcount.launch.ray.trainer import NotStarted, Rows, stack
from softcount.roles.actor import Episode, Reply, Request
from softcount.types import Array, State, Step


def actor_name(number: int) -> str:
    return f"actor {number}"


class NotAlive(RuntimeError):
    """An actor was asked that was not yet given its life, or has ended it."""


class ActorHost:
    """Environments, their bandits and recurrent states, and the thread that steps them."""

    def __init__(self, setup: Setup, number: int, env_ids: Array) -> None:
        self.birth, self.setup, self.number = Birth(), setup, number
        worker = number % setup.config.runtime.num_inference
        self.inference, self.trainer = named(setup, inference_name(worker)), named(setup, TRAINER)
        self.actor = build_actor(
            setup.config, setup.specs, build_inference(setup.config, setup.specs), env_ids
        )
        self.seconds = dict.fromkeys(("inference", "memory", "actor", "send"), 0.0)
        self.num_rows = 0  # of each environment
        self.problem: BaseException | None = None
        self.memory: MemoryClient | None = None
        self.incarnation, self._sequence, self._version = -1, 0, -1
        self._rows: list[tuple[Step, Any]] = []
        self._versions: list[int] = []
        self._sent: tuple[Rows, Any] | None = None  # what is on its way, and where its answer will be
        self._changed = threading.Condition()
        self._goal: int | None = 0  # acts until it has given so many rows; None: without an end
        self._asks_leave, self._num_left = False, 0  # rows that it may give before it asks again
        self._is_idle, self._is_interrupted = True, False
        self._thread: threading.Thread | None = None

    def start(self, incarnation: int, num_rows: int = 0, asks_leave: bool = False) -> None:
        """Begins a life: what was sent in an earlier one is not sent again, and it starts idle."""
        self._stop_thread()
        self.incarnation, self._sequence, self.num_rows = incarnation, 0, num_rows
        self._rows, self._versions, self._sent, self.problem = [], [], None, None
        self._asks_leave, self._num_left = asks_leave, 0
        self.memory = client_of_memory(self.setup, self.number, incarnation, sleep=self._sleep)
        self._keeps_observations = self.memory.wants_observations()
        self._goal, self._is_idle, self._is_interrupted = 0, True, False
        self._thread = threading.Thread(target=self._act_forever, name="actor", daemon=True)
        self._thread.start()

    def go_on(self, until: int | None = None) -> None:
        """Acts from now on, or until so many rows of each environment were given."""
        self._check_alive()
        with self._changed:
            self._goal, self._is_idle = until, False
            self._changed.notify_all()

    def pause(self) -> int:
        """Returns after the step under way, when all rows have arrived; says how many they are."""
        self._check_alive()
        with self._changed:
            self._goal = 0
            self._changed.notify_all()
        return self.wait_until_idle()

    def wait_until_idle(self) -> int:
        with self._changed:
            self._changed.wait_for(lambda: self._is_idle)
        self._check_alive()
        return self.num_rows

    def _check_alive(self) -> None:
        if self.problem is not None:
            raise self.problem
        if self._thread is None or not self._thread.is_alive():
            raise NotAlive(f"actor {self.number} has no life")

    def interrupt(self) -> None:
        """Gives up the step under way, whoever it waits for: what it did will be forgotten."""
        self._stop_thread()

    def _stop_thread(self) -> None:
        with self._changed:
            self._is_interrupted, self._goal = True, 0
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _act_forever(self) -> None:
        try:
            while self._wait_for_go():
                self._step()
        except (Interrupted, NotStarted):
            pass  # its pulse says that it has no life
        except BaseException as error:
            self.problem = error
        with self._changed:
            self._is_idle = True
            self._changed.notify_all()

    def _wait_for_go(self) -> bool:
        """Waits while there is nothing to do; False when it was told to stop."""
        with self._changed:
            if not self._is_stopping():
                return not self._is_interrupted
        with self._timed("send"):
            self._flush()
        with self._changed:
            if self._is_stopping():
                self._is_idle = True
                self._changed.notify_all()
            self._changed.wait_for(lambda: self._is_interrupted or not self._is_stopping())
            self._is_idle = False
            return not self._is_interrupted

    def _is_stopping(self) -> bool:
        return self._goal is not None and self.num_rows >= self._goal

    def _step(self) -> None:
        if self._asks_leave and not self._num_left and not self._get_leave():
            return
        memory: Any = self.memory
        acted = act(
            self.actor,
            self._infer,
            memory,
            keeps_observations=self._keeps_observations,
            timed=self._timed,
        )
        self._rows.append((acted.row, acted.state))
        self._versions.append(self._version)
        self.num_rows += 1
        self._num_left -= self._asks_leave
        if len(self._rows) >= self.setup.config.runtime.send_rows:
            with self._timed("send"):
                self._send()

    def _get_leave(self) -> bool:
        """Waits until it may begin an unroll; False if it was told to stop meanwhile."""
        timeout_s = self.setup.config.runtime.call_timeout_s
        with self._timed("send"):
            self._flush()
            while not (self._num_left or self._is_stopping()):
                self._num_left = until_answered(
                    lambda: self.trainer.leave.remote(self.number, timeout_s / 4),
                    timeout_s,
                    self._was_interrupted,
                )
        return self._num_left > 0

    def _infer(self, request: Request) -> Reply:
        timeout_s = self.setup.config.runtime.call_timeout_s
        reply, self._version = until_answered(
            lambda: self.inference.infer.remote(request), timeout_s, self._was_interrupted
        )
        return reply  # type: ignore[no-any-return]

    def _flush(self) -> None:
        """Sends what is left, and waits until it has arrived."""
        if self._rows:
            self._send()
        self._wait_for_answer()

    def _send(self) -> None:
        """Sends the rows that were collected, after those before them have arrived."""
        self._wait_for_answer()
        steps, states = stack(self._rows)
        stamp = self.number, self.incarnation, self._sequence
        rows = Rows(*stamp, steps, states, self.actor.env_ids, self._versions)
        self._rows, self._versions, self._sequence = [], [], self._sequence + 1
        self._sent = rows, self._add(rows)

    def _wait_for_answer(self) -> None:
        if self._sent is None:
            return
        rows, answer = self._sent
        first: list[Any] = [answer]
        timeout_s = self.setup.config.runtime.call_timeout_s

        def call() -> Any:
            return first.pop() if first else self._add(rows)

        while not until_answered(call, timeout_s, self._was_interrupted):
            if self._is_interrupted:
                raise Interrupted("while the learner was behind")
            if self._is_stopping():
                return  # they have arrived; whether it may go on is asked again when it does
        self._sent = None

    def _add(self, rows: Rows) -> Any:
        return self.trainer.add.remote(rows, self.setup.config.runtime.call_timeout_s / 4)

    def _was_interrupted(self) -> bool:
        return self._is_interrupted

    def _sleep(self, seconds: float) -> None:
        """How the memory's client waits between two tries."""
        if self._is_interrupted:
            raise Interrupted("while the memory was away")
        time.sleep(seconds)

    @contextmanager
    def _timed(self, what: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[what] += time.perf_counter() - started

    def state_dict(self) -> State:
        self._check_alive()
        return self.actor.state_dict()

    def load_state_dict(self, state: State) -> None:
        self.actor.load_state_dict(state)

    def behaviour_state(self) -> State:
        return self.actor.behaviour.state_dict()

    def load_behaviour(self, state: State) -> None:
        """Takes over what was learned of episodes; the environments stay in their new ones."""
        self.actor.behaviour.load_state_dict(state)
        self.actor.behaviour.start(self.actor.timestep.is_first)

    def keeps_episodes(self) -> bool:
        return self.actor.keeps_episodes()

    def take_episodes(self) -> list[Episode]:
        return self.actor.take_episodes()

    def num_places(self) -> int | None:
        return self.actor.num_places()

    def num_frames(self) -> int | None:
        return getattr(self.actor.env, "num_frames", None)

    def tasks_of(self, places: Array) -> Array:
        return self.actor.tasks_of(places)

    def worlds(self, places: Array) -> list[World]:
        return self.actor.worlds(places)

    def portraits(self, looks: int, seed: int) -> Portraits | None:
        return self.actor.portraits(looks, seed)

    def close(self) -> None:
        self._stop_thread()
        self.actor.close()

    def ping(self) -> RolePulse:
        if self.problem is not None:
            raise self.problem
        memory = self.memory
        return self.birth.pulse(
            self._thread is not None and self._thread.is_alive(),
            rows=self.num_rows * self.actor.env.num_envs,
            retries=0 if memory is None else memory.num_retries,
            **{f"seconds_{name}": x for name, x in self.seconds.items()},
        )
