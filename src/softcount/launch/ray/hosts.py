"""What Ray runs: a process around each role. A role knows nothing of Ray, a host knows nothing of learning.

    ActorHost      environments, in `actor_host.py`
    InferenceHost  answers actors; keeps parameters and nothing else, and asks the trainer for them
    TrainerHost    replay and learner (`trainer.py`); what it holds is only in checkpoints besides
    EvaluatorHost  environments of its own; plays with parameters of one moment
    MemoryHost     the shared memory, in `memory_host.py`

Ray starts a process anew when it died, and repeats no call. Whoever starts with nothing says so in its
pulse, and the supervisor gives it what it needs.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import ray
import torch

from softcount.config import RunConfig, RuntimeConfig
from softcount.launch.build import (
    Specs,
    build_evaluator,
    build_inference,
    build_learner,
    build_source,
)
from softcount.launch.ray.batching import Batcher, answer_together
from softcount.launch.ray.calls import until_answered
from softcount.launch.ray.client import MemoryClient, Patience
from softcount.launch.ray.cluster import Cluster, connect
from softcount.launch.ray.memory_host import RayCalls
from softcount.launch.ray.stamps import new_incarnation
from softcount.launch.ray.trainer import NotStarted, Rows, Trainer, TrainingRoles
from softcount.roles.actor import Reply, Request
from softcount.roles.evaluator import Evaluation, Player
from softcount.roles.inference import Parameters
from softcount.types import Features, Observation, State

TRAINER = "trainer"


def inference_name(number: int) -> str:
    return f"inference {number}"


class Setup(NamedTuple):
    """What every host is told."""

    config: RunConfig
    specs: Specs
    namespace: str  # of the run's named actors


class RolePulse(NamedTuple):
    """A sign of life."""

    pid: int
    host: str
    node_id: str
    boot: str  # another one after every start of the process
    is_ready: bool  # False: it was started anew and waits for what only the supervisor has
    numbers: dict[str, float]  # what a status shows of it


class Birth:
    """Who a process is."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        self.boot, self.started = secrets.token_hex(8), time.monotonic()

    def pulse(self, is_ready: bool, **numbers: float) -> RolePulse:
        node_id = ray.get_runtime_context().get_node_id()
        cpu = time.process_time()
        return RolePulse(
            os.getpid(), socket.gethostname(), node_id, self.boot, is_ready, {**numbers, "cpu_seconds": cpu}
        )


def connect_for(runtime: RuntimeConfig) -> AbstractContextManager[Cluster]:
    """Starts or joins the cluster that a configuration says."""
    return connect(runtime.address, health_check=runtime.health_check)


def named(setup: Setup, name: str) -> Any:
    """Returns the handle of a role of this run; it stays the same when the role is started anew."""
    return ray.get_actor(name, setup.namespace)


def client_of_memory(setup: Setup, number: int, incarnation: int, **options: Any) -> MemoryClient:
    """Returns a client of the run's memory; each that changes something has its own number."""
    patience = Patience(call_timeout_s=setup.config.runtime.call_timeout_s)
    calls = RayCalls(setup.namespace)
    return MemoryClient(calls, actor=number, incarnation=incarnation, patience=patience, **options)


class InferenceHost:
    """Answers actors together; each call has a thread, and one at a time computes or takes parameters."""

    def __init__(self, setup: Setup, num_clients: int) -> None:
        self.birth, self.setup, runtime = Birth(), setup, setup.config.runtime
        self.inference = build_inference(setup.config, setup.specs)
        self.version = -1  # how many updates are behind the parameters
        self._lock = threading.Lock()
        self.batcher: Batcher[Request, tuple[Reply, int]] = Batcher(
            self._answer, most=num_clients, wait_s=runtime.batch_wait_ms / 1000
        )

    def infer(self, request: Request) -> tuple[Reply, int]:
        """Returns the answer and how many updates are behind it."""
        self._fetch()
        return self.batcher(request)

    def _answer(self, requests: list[Request]) -> list[tuple[Reply, int]]:
        with self._lock:
            return [(reply, self.version) for reply in answer_together(self.inference, requests)]

    def load(self, parameters: Parameters, version: int) -> None:
        with self._lock:
            self.inference.load(parameters)
            self.version = version

    def _fetch(self) -> None:
        """Asks the trainer for what acts, if this process is new."""
        if self.version >= 0:
            return
        timeout_s = self.setup.config.runtime.call_timeout_s
        parameters, version = until_answered(named(self.setup, TRAINER).parameters.remote, timeout_s)
        with self._lock:
            if self.version < 0:  # nothing was published meanwhile
                self.inference.load(parameters)
                self.version = version

    def embed(self, observation: Observation) -> Features:
        self._fetch()
        with self._lock:
            return self.inference.embed(observation)

    def ping(self) -> RolePulse:
        batcher = self.batcher
        return self.birth.pulse(
            True,
            calls=batcher.num_requests,
            batches=batcher.num_batches,
            version=self.version,
        )


class TrainerHost:
    """Replay and learner; methods run on several threads, so that one that waits holds up no other."""

    def __init__(self, setup: Setup, number: int, num_places: int | None) -> None:
        self.birth, config = Birth(), setup.config
        self.setup, self.number = setup, number
        roles = TrainingRoles(
            inference=build_inference(config, setup.specs),
            memory=client_of_memory(setup, number, new_incarnation()),
            replay=build_source(config, setup.specs),
            learner=build_learner(config, setup.specs),
        )
        self.inference: list[Any] = []
        self._sent: list[Any] = []  # publications that may still be under way
        self.trainer = Trainer(
            roles,
            relabel=config.meme.relabel,
            reembed_every=config.recode.reembed_every,
            num_places=num_places,
            max_lag=config.runtime.max_lag_batches,
            publish_every=config.runtime.publish_every,
            publish=self._publish,
        )
        roles.inference.load(roles.learner.parameters())
        self.is_ready = False

    def is_on_policy(self) -> bool:
        return self.trainer.roles.replay.is_on_policy()

    def is_strict(self) -> bool:
        return self.trainer.roles.replay.is_strict()

    def start(self) -> None:
        """Begins, or goes on after a pause."""
        if not self.inference:
            num = self.setup.config.runtime.num_inference
            self.inference = [named(self.setup, inference_name(number)) for number in range(num)]
        self.is_ready = True
        self.trainer.start()

    def expect(self, actors: list[int]) -> None:
        self.trainer.expect(actors)

    def pause(self) -> None:
        self.trainer.pause()

    def add(self, rows: Rows, wait_s: float) -> bool:
        return self.trainer.add(rows, wait_s)

    def leave(self, actor: int, wait_s: float) -> int:
        return self.trainer.leave(actor, wait_s)

    def parameters(self) -> tuple[Parameters, int]:
        """Returns what acts, for a worker or an evaluator that has just begun."""
        self._check_ready()
        state = self.trainer.roles.inference.state_dict()
        return Parameters(state["policy"], state["representation"]), self.trainer.num_updates

    def _publish(self, parameters: Parameters, version: int) -> None:
        """Sends parameters once the last ones have arrived; who is gone asks for them when it is back."""
        self._wait_for_arrival()
        shared = ray.put(parameters)
        self._sent = [worker.load.remote(shared, version) for worker in self.inference]
        if self.is_strict():
            self._wait_for_arrival()

    def _wait_for_arrival(self) -> None:
        if self._sent:
            ray.wait(
                self._sent, num_returns=len(self._sent), timeout=self.setup.config.runtime.call_timeout_s
            )

    def _check_ready(self) -> None:
        if not self.is_ready:
            raise NotStarted("the trainer was started anew, without what the run has learned")

    def counted(self) -> tuple[int, int]:
        """Returns steps and updates so far."""
        self._check_ready()
        return self.trainer.num_steps, self.trainer.num_updates

    def report(self) -> State:
        self._check_ready()
        return self.trainer.report()

    def num_rows(self, actor: int) -> int:
        """Returns how many rows of each environment an actor has sent."""
        self._check_ready()
        return self.trainer.num_rows[actor]

    def state_dict(self) -> State:
        self._check_ready()
        return self.trainer.state_dict()

    def segment_names(self) -> list[str]:
        return self.trainer.roles.replay.segment_names()

    def segment(self, name: str) -> State:
        return self.trainer.roles.replay.segment(name)

    def load_state_dict(self, state: State, segments: dict[str, State]) -> None:
        self.trainer.load_state_dict(state, segments)
        self.is_ready = True

    def ping(self) -> RolePulse:
        trainer = self.trainer
        if trainer.problem is not None:
            raise trainer.problem
        return self.birth.pulse(
            self.is_ready,
            steps=trainer.num_steps,
            updates=trainer.num_updates,
            backlog=trainer.roles.replay.backlog(),
            **{f"lag {actor}": lag for actor, lag in dict(trainer.lags).items()},
        )


class EvaluatorHost:
    """Plays episodes in environments of its own; what acts elsewhere goes on learning meanwhile."""

    def __init__(self, setup: Setup, number: int) -> None:
        self.birth, self.setup = Birth(), setup
        self.memory = client_of_memory(setup, number, new_incarnation())
        self.inference = build_inference(setup.config, setup.specs)
        self.evaluator = build_evaluator(setup.config, self.inference)
        self.num_evaluations = 0

    def evaluate(self, whom: Player, seed: int, keep_frames: bool) -> Evaluation:
        """Plays with the parameters that act now."""
        timeout_s = self.setup.config.runtime.call_timeout_s
        trainer = named(self.setup, TRAINER)
        parameters, _ = until_answered(trainer.parameters.remote, timeout_s)
        self.inference.load(parameters)
        memory: Any = self.memory
        played = self.evaluator(whom, memory, seed=seed, keep_frames=keep_frames)
        self.num_evaluations += 1
        return played

    def close(self) -> None:
        self.evaluator.close()

    def ping(self) -> RolePulse:
        return self.birth.pulse(True, evaluations=self.num_evaluations)
