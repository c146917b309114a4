"""Free mode: roles in processes of their own, each on its own clock. Stands where the local loop stands.

    actors ──▶ inference ──▶ actors ──▶ memory ──▶ actors ──▶ trainer ──▶ inference

This process is not on that way. It starts the roles and watches them, counts, and takes checkpoints:
actors pause between two steps, all that is under way arrives, every role gives its part. A checkpoint
is the same as that of one process and can be continued by one.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from softcount.config import RunConfig, only_read
from softcount.launch.build import build_inference, check, look_at_world, plan_of
from softcount.launch.local import StateLost
from softcount.launch.ray import memory_host, once
from softcount.launch.ray.actor_host import ActorHost, NotAlive, actor_name
from softcount.launch.ray.calls import get, until_answered
from softcount.launch.ray.cluster import Cluster
from softcount.launch.ray.far import FarRoles
from softcount.launch.ray.hosts import (
    TRAINER,
    EvaluatorHost,
    InferenceHost,
    Setup,
    TrainerHost,
    client_of_memory,
    connect_for,
    inference_name,
)
from softcount.launch.ray.shares import join, share_out, split
from softcount.launch.ray.stamps import new_incarnation
from softcount.launch.ray.supervisor import Supervisor
from softcount.launch.ray.trainer import NotStarted
from softcount.measure.coverage import Coverage
from softcount.roles.evaluator import Evaluation, Player
from softcount.stats import Means
from softcount.types import State

TICK_SECONDS = 0.1
MEMORY_FOLDER = "memory"
WISH_CPUS = 0.001
"""Ray takes no heed of where a process is wished that asks for nothing at all."""


class FreeLoop:
    """Starts, watches and asks the roles; what it counts is brought up to date by `step` and `look`."""

    def __init__(self, config: RunConfig, folder: Path, cluster: Cluster | None = None) -> None:
        """Starts every role, on a cluster that is there, or on the one that the configuration says."""
        config = only_read(config)
        check(config)
        self.config, self.folder = config, folder
        specs, self.num_places = look_at_world(config)
        self.shares = share_out(config.num_envs, len(specs.task_names), config.runtime.num_actors)
        self.num_steps, self.num_updates = 0, 0
        self.coverage = None if self.num_places == -1 else Coverage(self.num_places)
        self.means = Means()
        self.seconds: dict[str, float] = {}
        self.learner_seconds = 0.0
        self.replay_metrics: dict[str, float] = {}
        self._is_paused, self._is_reviving = True, False
        self._behaviours: list[State] | None = None  # of the last checkpoint, by actor
        self._stack = ExitStack()
        try:
            self.cluster = cluster or self._stack.enter_context(connect_for(config.runtime))
            self.setup = Setup(config, specs, f"{self.cluster.namespace} {secrets.token_hex(4)}")
            self._start_roles()
        except BaseException:
            self._stack.close()
            raise

    def _start_roles(self) -> None:
        config, setup, num_actors = self.config, self.setup, len(self.shares)
        plan = plan_of(config, setup.specs, build_inference(config, setup.specs).dim)
        folder = self.folder / MEMORY_FOLDER
        once.found(folder, plan.build())
        here = {"scheduling_strategy": NodeAffinitySchedulingStrategy(self.cluster.node_id, soft=False)}
        safe: Any = {"namespace": setup.namespace, "num_cpus": 0, "max_restarts": -1, "max_task_retries": 0}
        self._memory_handle = memory_host.start(
            plan,
            folder,
            namespace=setup.namespace,
            config=once.OnceConfig(snapshot_batches=config.runtime.snapshot_batches),
            node_id=self.cluster.node_id,
        )
        self.memory = client_of_memory(setup, num_actors + 2, new_incarnation())
        trainer: Any = ray.remote(TrainerHost).options(
            **safe, **here, name=TRAINER, max_concurrency=num_actors + 6
        )
        self.trainer: Any = trainer.remote(setup, num_actors, self.num_places)
        self.inference: list[Any] = []
        for number in range(config.runtime.num_inference):
            num_clients = max(1, len(range(number, num_actors, config.runtime.num_inference)))
            name = inference_name(number)
            threads = 2 * num_clients + 4  # an actor asks again before its last call has ended
            worker = ray.remote(InferenceHost).options(**safe, name=name, max_concurrency=threads)
            self.inference.append(worker.remote(setup, num_clients))
        evaluator = ray.remote(EvaluatorHost).options(**safe, **here, max_concurrency=2)
        self._evaluator_handle: Any = evaluator.remote(setup, num_actors + 1)
        self.actors: list[Any] = []
        for number, node in enumerate(self.cluster.spread(num_actors)):
            there = NodeAffinitySchedulingStrategy(node, soft=True)  # elsewhere when that host is gone
            options = {**safe, "num_cpus": WISH_CPUS, "scheduling_strategy": there, "max_concurrency": 6}
            actor = ray.remote(ActorHost).options(**options)
            self.actors.append(actor.remote(setup, number, self.shares[number]))
        self.incarnations = [0] * num_actors
        self.roles = FarRoles(self)
        self.evaluator = FarEvaluator(self)
        self.supervisor = self._supervise()
        self.supervisor.wait_for_all()
        self._is_on_policy: bool = get(self.trainer.is_on_policy.remote())
        self._is_strict: bool = get(self.trainer.is_strict.remote())
        self._begin_lives([0] * num_actors)

    def _supervise(self) -> Supervisor:
        runtime = self.config.runtime
        supervisor = Supervisor(self.folder, self.cluster.node_id, runtime.hang_seconds)
        supervisor.watch("memory", self._memory_handle)
        supervisor.watch(TRAINER, self.trainer)
        for number, worker in enumerate(self.inference):
            supervisor.watch(inference_name(number), worker)
        for number, actor in enumerate(self.actors):
            supervisor.watch(actor_name(number), actor)
        supervisor.watch("evaluator", self._evaluator_handle)
        return supervisor

    def ask(self, call: Callable[[], Any]) -> Any:
        """Makes a call that may be made twice until it is answered, while the roles are watched."""
        while True:
            reference = call()
            while not ray.wait([reference], timeout=TICK_SECONDS)[0]:
                self._attend()
            try:
                return get(reference)
            except NotStarted as error:
                raise StateLost(str(error)) from error
            except RayActorError:
                self._attend()
                time.sleep(TICK_SECONDS)

    def _attend(self) -> None:
        """Looks after the roles; raises `StateLost` where only a checkpoint helps."""
        back = self.supervisor.tick(lambda: {"step": self.num_steps, "updates": self.num_updates})
        if TRAINER in back:
            raise StateLost("the trainer was started anew, without what the run has learned")
        for number in range(len(self.actors)):
            role = self.supervisor.roles[actor_name(number)]
            if not (role.is_ready or role.is_away or self._is_paused or self._is_reviving):
                self._revive(number)
                self._call(self.actors[number].go_on.remote)

    def _revive(self, number: int) -> None:
        """Gives a new process of an actor its life: new episodes, and the bandits of the last checkpoint."""
        self._is_reviving = True
        try:
            if self._behaviours is not None:
                behaviour = self._behaviours[number]
                self._call(lambda: self.actors[number].load_behaviour.remote(behaviour))
            self._begin_life(number, self.ask(lambda: self.trainer.num_rows.remote(number)))
        finally:
            self._is_reviving = False

    def _ask_actor(self, number: int, call: Callable[[], Any]) -> Any:
        """Asks an actor; one that died meanwhile gets a new life first."""
        while True:
            try:
                return self.ask(call)
            except NotAlive:
                self._revive(number)

    def _call(self, call: Callable[[], Any]) -> Any:
        """Makes a call that may be made twice until it is answered; nobody is looked after meanwhile."""
        return until_answered(call, self.config.runtime.hang_seconds)

    def _begin_lives(self, num_rows: list[int]) -> None:
        """Lets everybody know everybody; all stand still."""
        self.ask(lambda: self.trainer.expect.remote(list(range(len(self.actors)))))
        self.ask(self.trainer.start.remote)
        for number, rows in enumerate(num_rows):
            self._begin_life(number, rows)

    def _begin_life(self, number: int, num_rows: int) -> None:
        self.incarnations[number] = new_incarnation(at_least=self.incarnations[number])
        start, life = self.actors[number].start.remote, self.incarnations[number]
        self._call(lambda: start(life, num_rows, self._is_strict))
        self.supervisor.roles[actor_name(number)].trust()

    def step(self) -> None:
        """Lets the roles work for a moment."""
        if self._is_paused:
            self._is_paused = False
            self.ask(self.trainer.start.remote)
            for number, actor in enumerate(self.actors):
                self._ask_actor(number, actor.go_on.remote)
        time.sleep(TICK_SECONDS)
        self._attend()
        self.num_steps, self.num_updates = self.ask(self.trainer.counted.remote)

    def pause(self) -> None:
        """Returns when nothing is under way: every step is complete and every row has arrived."""
        if self._is_paused:
            return
        self._is_paused = True
        numbers = range(len(self.actors))
        rows = [self._ask_actor(number, self.actors[number].pause.remote) for number in numbers]
        if self._is_on_policy:  # an unroll is of all: nobody may be ahead
            for number in numbers:
                if rows[number] < max(rows):
                    go_on = partial(self.actors[number].go_on.remote, max(rows))
                    self._ask_actor(number, go_on)
            for number in numbers:
                self._ask_actor(number, self.actors[number].wait_until_idle.remote)
        self.ask(self.trainer.pause.remote)

    def look(self) -> None:
        """Brings means, coverage and times up to date, for a report."""
        report = self.ask(self.trainer.report.remote)
        for name, value in report["means"].items():
            self.means.add({name: value})
        if self.coverage is not None:
            self.coverage.load_state_dict(report["coverage"])
        self.replay_metrics = report["replay"]
        self.learner_seconds = report["learner_seconds"]
        numbers = [self.supervisor.roles[actor_name(n)].numbers for n in range(len(self.actors))]
        waits = ("inference", "memory", "actor", "send")
        self.seconds = {name: sum(x.get(f"seconds_{name}", 0.0) for x in numbers) for name in waits}
        self.seconds |= {name: report["seconds"][name] for name in ("replay", "relabel", "learner_wait")}
        self.means.add({"runtime/restarts": sum(role.restarts for role in self.supervisor.roles.values())})

    def state_dict(self) -> State:
        """Pauses all roles and returns their parts; the next step lets them go on."""
        self.pause()
        learned = self.ask(self.trainer.state_dict.remote)
        counters = learned["loop"]  # what came in while roles were stopping is part of it
        self.num_steps, self.num_updates = counters["num_steps"], counters["num_updates"]
        states = [self._ask_actor(n, host.state_dict.remote) for n, host in enumerate(self.actors)]
        actor = join(states, self.shares)
        memory = self.ask(self._memory_handle.checkpoint.remote)
        self._behaviours = [part["behaviour"] for part in split(actor, self.shares)]
        return {
            "loop": counters,
            "actor": actor,
            "inference": learned["inference"],
            "memory": memory,
            "replay": learned["replay"],
            "learner": learned["learner"],
        }

    def segments(self) -> dict[str, Callable[[], State]]:
        """Returns makers of the replay's segments that the last `state_dict` refers to."""
        names = self.ask(self.trainer.segment_names.remote)
        return {name: partial(self._segment, name) for name in names}

    def _segment(self, name: str) -> State:
        return self.ask(lambda: self.trainer.segment.remote(name))  # type: ignore[no-any-return]

    def load_state_dict(self, state: State, segments: dict[str, State]) -> None:
        """Gives every role its part of a checkpoint; whatever they did since is forgotten."""
        self._is_paused = True
        for actor in self.actors:
            self._call(actor.interrupt.remote)
        learned = {part: state[part] for part in ("loop", "inference", "replay", "learner")}
        self._call(self.trainer.pause.remote)
        learned, segments = ray.put(learned), ray.put(segments)  # type: ignore[assignment]
        self._call(lambda: self.trainer.load_state_dict.remote(learned, segments))
        self.memory.load_state_dict(state["memory"])
        parts = split(state["actor"], self.shares)
        self._behaviours = [part["behaviour"] for part in parts]
        for actor, part in zip(self.actors, parts, strict=True):
            self._call(partial(actor.load_state_dict.remote, part))
        parameters = ray.put(self._call(self.trainer.parameters.remote)[0])
        self.num_steps, self.num_updates = self._call(self.trainer.counted.remote)
        for worker in self.inference:
            self._call(partial(worker.load.remote, parameters, self.num_updates))
        self.supervisor.greet()
        self._begin_lives([0] * len(self.actors))

    def close(self) -> None:
        """Ends all processes of the run, and its cluster if it was the run's own."""
        with suppress(RayError):
            for handle in (*self.actors, self._evaluator_handle, self._memory_handle):
                ray.get(handle.close.remote(), timeout=self.config.runtime.call_timeout_s)
        for handle in (*self.actors, *self.inference, self._evaluator_handle, self.trainer):
            ray.kill(handle)
        ray.kill(self._memory_handle)
        self._stack.close()


class FarEvaluator:
    """Stands where an evaluator stands; the roles are watched while it plays."""

    def __init__(self, loop: FreeLoop) -> None:
        self._loop = loop

    def __call__(self, whom: Player, memory: Any, *, seed: int, keep_frames: bool = False) -> Evaluation:
        """Plays with the parameters that act now."""
        loop = self._loop
        behaviour = whom.for_evaluation(loop.config.evaluation_episodes)
        while True:
            try:
                return loop.ask(  # type: ignore[no-any-return]
                    lambda: loop._evaluator_handle.evaluate.remote(behaviour, seed, keep_frames)
                )
            except once.EvaluationLost:
                continue

    def close(self) -> None:
        """Its environments are closed with its process."""
