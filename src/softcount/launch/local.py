"""All roles in one process: the loop of the architecture figure, in its order.

    env ──▶ actor ──▶ inference ──▶ memory ──▶ replay ──▶ learner ──▶ (parameters, priorities)

The learner works beside the actors, on its own thread: an update starts when the replay
ratio asks for it and is published when the next one starts, or at once where the source
is strict. That is a fixed place in the stream of steps, so results do not depend on which
of the two is faster, nor on whether they overlap at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from softcount.measure.coverage import Coverage
from softcount.roles.actor import Actor
from softcount.roles.inference import Inference
from softcount.roles.learner import Learner, Update
from softcount.roles.memory_server import MemoryServer
from softcount.stats import Means
from softcount.types import Array, Sample, Source, State, map_arrays

AT_ONCE = 2048
"""How many observations are embedded in one go."""


@dataclass(frozen=True)
class Roles:
    """One of each box of the architecture figure."""

    actor: Actor
    inference: Inference
    memory: MemoryServer
    replay: Source
    learner: Learner


class Misfit(ValueError):
    """A part of a saved state that its role cannot take."""

    def __init__(self, part: str, reason: str) -> None:
        super().__init__(f"{part}: {reason}")
        self.part, self.reason = part, reason


class LocalLoop:
    """Steps the roles; whatever it counts or waits for is part of its state."""

    def __init__(
        self, roles: Roles, *, relabel: bool = False, overlap: bool = True, reembed_every: int = 0
    ) -> None:
        self.roles, self.relabel, self.reembed_every = roles, relabel, reembed_every
        self.num_steps = 0  # real transitions; the step into a FIRST is none
        self.num_updates = 0
        num_places = roles.actor.num_places()
        self.coverage = None if num_places == -1 else Coverage(num_places)
        self._keeps_observations = roles.memory.wants_observations()
        self.means = Means()
        self.seconds = dict.fromkeys(
            ("inference", "memory", "actor", "replay", "relabel", "learner_wait"), 0.0
        )
        self.learner_seconds = 0.0  # on its own thread if there is one
        self.pending: Future[Update] | None = None
        self._submit = ThreadPoolExecutor(1, "learner").submit if overlap else _submit_at_once
        roles.inference.load(roles.learner.parameters())

    def step(self) -> None:
        """Takes one step in every environment, and starts the learning that this makes due."""
        actor, inference, memory, replay, _ = vars(self.roles).values()
        now, env_ids, task_ids = actor.arrival()
        with self._timed("inference"):
            reply = inference(actor.request())
        with self._timed("memory"):
            features = reply.features._replace(place=now.place)
            kept = now.observation if self._keeps_observations else None
            intrinsic = memory(features, env_ids, now.is_first, now.is_terminal, task_ids, kept)
        with self._timed("actor"):
            row, state = actor.step(reply, intrinsic)
        with self._timed("replay"):
            replay.add(row, state)
        self._count(now.place, now.is_first, intrinsic)
        while replay.due():
            self._publish()
            self._start_update()
        if replay.is_strict():
            self._publish()

    def _count(self, place: Array | None, is_first: Array, intrinsic: Array) -> None:
        if self.coverage is not None and place is not None:
            self.coverage.update_places(place)
        self.num_steps += int((~is_first).sum())
        if self.coverage is not None:
            self.coverage.steps = self.num_steps  # rows that only start an episode are no steps
        self.means.add({"intrinsic/reward_mean": float(intrinsic.mean())})

    def _publish(self) -> None:
        """Waits for the update under way, then lets it act and reorder the replay."""
        if self.pending is None:
            return
        with self._timed("learner_wait"):
            update = self.pending.result()
        with self._timed("inference"):
            self.roles.inference.load(self.roles.learner.parameters())
        if update.priorities is not None:
            self.roles.replay.reprioritise(update.ids, update.priorities)
        self.means.add(update.metrics)
        self.num_updates += 1
        self.pending = None
        if self.reembed_every and self.num_updates % self.reembed_every == 0:
            with self._timed("memory"):
                self._move_atoms()

    def _move_atoms(self) -> None:
        """Puts the atoms where the observations that founded them are embedded now."""
        memory, num = self.roles.memory, self.roles.memory.num_founded()
        borders = range(0, num, AT_ONCE)
        parts = [
            self.roles.inference.embed(memory.founding_observations(start, min(start + AT_ONCE, num)))
            for start in borders
        ]
        if parts:
            memory.move_atoms(map_arrays(lambda *leaves: np.concatenate(leaves), *parts))

    def _start_update(self) -> None:
        with self._timed("replay"):
            if self.roles.learner.needs_statistics():
                for number in range(self.roles.replay.num_parts()):
                    self.roles.learner.learn_statistics(self.roles.replay.part(number))
            sample = self.roles.replay.sample()
        with self._timed("relabel"):
            targets = self._relabelled(sample) if self.relabel else None
        with self._timed("learner_wait"):  # all of it where nothing overlaps
            self.pending = self._submit(self._learn, sample, targets)

    def _learn(self, sample: Sample, targets: Array | None) -> Update:
        started = time.perf_counter()
        update = self.roles.learner(sample, targets)
        self.learner_seconds += time.perf_counter() - started
        return update

    def _relabelled(self, sample: Sample) -> Array:
        """Scores the batch's observations with today's representation and memory, for targets only.

        Rows that were paid nothing when they were new (first and withheld last ones) stay so.
        """
        steps = sample.sequence.steps
        flat = map_arrays(lambda x: x.reshape(-1, *x.shape[2:]), steps._replace(extras=dict(steps.extras)))
        features = self.roles.inference.embed(flat.observation)._replace(place=flat.extras.get("place"))
        ids = np.arange(len(flat.reward))
        rewards = self.roles.memory.score(features, ids, flat.is_first, flat.is_terminal, flat.extras["task"])
        return np.asarray(rewards).reshape(steps.intrinsic.shape)

    def segments(self) -> dict[str, Callable[[], State]]:
        """Returns makers of the replay's segments that the last `state_dict` refers to."""
        replay = self.roles.replay
        return {name: partial(replay.segment, name) for name in replay.segment_names()}

    @contextmanager
    def _timed(self, role: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[role] += time.perf_counter() - started

    def state_dict(self) -> State:
        """Returns everything; waits for the update under way, whose result is kept unpublished."""
        update = self.pending.result() if self.pending is not None else None
        return {
            "loop": {
                "num_steps": self.num_steps,
                "num_updates": self.num_updates,
                "coverage": self.coverage.state_dict() if self.coverage is not None else None,
                "means": self.means.state_dict(),
                "pending": None if update is None else _describe(update),
            },
            "actor": self.roles.actor.state_dict(),
            "inference": self.roles.inference.state_dict(),
            "memory": self.roles.memory.state_dict(),
            "replay": self.roles.replay.state_dict(),
            "learner": self.roles.learner.state_dict(),
        }

    def load_state_dict(self, state: State, segments: dict[str, State]) -> None:
        """Takes over a state of the same configuration; raises `Misfit` where a part cannot be taken."""
        with _loading("loop"):
            self._load_counters(state["loop"])
        for name in ("actor", "inference", "memory", "learner"):
            with _loading(name):
                getattr(self.roles, name).load_state_dict(state[name])
        with _loading("replay"):
            self.roles.replay.load_state_dict(state["replay"], segments)

    def _load_counters(self, loop: State) -> None:
        self.num_steps, self.num_updates = loop["num_steps"], loop["num_updates"]
        if self.coverage is not None:
            self.coverage.load_state_dict(loop["coverage"])
        self.means.load_state_dict(loop["means"])
        self.pending = None
        if loop["pending"] is not None:
            self.pending = Future()
            kept = loop["pending"]
            metrics = dict(zip(kept["names"], kept["values"], strict=True))
            self.pending.set_result(Update(kept["ids"], kept["priorities"], metrics))


@contextmanager
def _loading(part: str) -> Iterator[None]:
    """Names the part whose state a role cannot take, whatever the role stumbles over."""
    try:
        yield
    except Exception as error:  # states come from files, and roles raise many kinds on odd ones
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error) or repr(error)
        raise Misfit(part, reason) from error


def _describe(update: Update) -> State:
    names, values = list(update.metrics), list(update.metrics.values())
    return {"ids": update.ids, "priorities": update.priorities, "names": names, "values": values}


def _submit_at_once(function: Callable[..., Update], *arguments: Any) -> Future[Update]:
    future: Future[Update] = Future()
    future.set_result(function(*arguments))
    return future
