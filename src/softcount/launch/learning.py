"""From rows to parameters: what the loop in one process and the trainer of several have in common.

    row ──▶ source ──▶ batch ──▶ (bonuses of today) ──▶ learner ──▶ parameters, priorities, places of atoms

Whoever steps it decides when: `local.py` at fixed places in the stream of steps, a trainer on Ray as
fast as it can.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Protocol

import numpy as np

from softcount.measure.coverage import Coverage
from softcount.roles.inference import Inference
from softcount.roles.learner import Learner, Update
from softcount.roles.memory_server import MemoryServer
from softcount.stats import Means
from softcount.types import Array, Sample, Source, State, Step, map_arrays

AT_ONCE = 2048
"""How many observations are embedded in one go."""


class LearningRoles(Protocol):
    """Whom learning needs."""

    @property
    def inference(self) -> Inference: ...
    @property
    def memory(self) -> MemoryServer: ...
    @property
    def replay(self) -> Source: ...
    @property
    def learner(self) -> Learner: ...


class Learning:
    """Counts what was acted, and learns from it; whatever it counts or waits for is part of its state."""

    def __init__(
        self, roles: LearningRoles, *, relabel: bool, reembed_every: int, num_places: int | None
    ) -> None:
        """`num_places` is what an actor says: None where the world does not know, −1 where it has none."""
        self.roles, self.relabel, self.reembed_every = roles, relabel, reembed_every
        self.num_steps = 0  # real transitions; the step into a FIRST is none
        self.num_updates = 0
        self.coverage = None if num_places == -1 else Coverage(num_places)
        self.means = Means()
        self.seconds = dict.fromkeys(
            ("inference", "memory", "actor", "replay", "relabel", "learner_wait"), 0.0
        )
        self.learner_seconds = 0.0  # on its own thread if there is one
        self.pending: Future[Update] | None = None

    def _count(self, place: Array | None, is_first: Array, intrinsic: Array) -> None:
        if self.coverage is not None and place is not None:
            self.coverage.update_places(place)
        self.num_steps += int((~is_first).sum())
        if self.coverage is not None:
            self.coverage.steps = self.num_steps  # rows that only start an episode are no steps
        self.means.add({"intrinsic/reward_mean": float(intrinsic.mean())})

    def _take_in(self, update: Update) -> None:
        """Lets an update reorder the replay, and counts it."""
        if update.priorities is not None:
            self.roles.replay.reprioritise(update.ids, update.priorities)
        self.means.add(update.metrics)
        self.num_updates += 1

    def is_reembedding_due(self) -> bool:
        """Says whether the atoms are to follow the representation after this update."""
        return bool(self.reembed_every) and self.num_updates % self.reembed_every == 0

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

    def _next_batch(self) -> tuple[Sample, Array | None]:
        """Returns what is to be learned from next, and its bonuses of today where they are wanted."""
        sample = self._sample()
        with self._timed("relabel"):
            targets = self._relabelled(sample)[0] if self.relabel else None
        return sample, targets

    def _sample(self) -> Sample:
        with self._timed("replay"):
            if self.roles.learner.needs_statistics():
                for number in range(self.roles.replay.num_parts()):
                    self.roles.learner.learn_statistics(self.roles.replay.part(number))
            return self.roles.replay.sample()

    def _learn(self, sample: Sample, targets: Array | None) -> Update:
        started = time.perf_counter()
        update = self.roles.learner(sample, targets)
        self.learner_seconds += time.perf_counter() - started
        return update

    def _relabelled(self, *samples: Sample) -> list[Array]:
        """Scores the batches' observations with today's representation and memory, for targets only.

        Rows that were paid nothing when they were new (first and withheld last ones) stay so.
        """
        flat: Step = map_arrays(
            lambda *leaves: np.concatenate([x.reshape(-1, *x.shape[2:]) for x in leaves]),
            *(s.sequence.steps._replace(extras=dict(s.sequence.steps.extras)) for s in samples),
        )
        features = self.roles.inference.embed(flat.observation)._replace(place=flat.extras.get("place"))
        ids = np.arange(len(flat.reward))
        rewards = self.roles.memory.score(features, ids, flat.is_first, flat.is_terminal, flat.extras["task"])
        shapes = [sample.sequence.steps.intrinsic.shape for sample in samples]
        parts = np.split(np.asarray(rewards), np.cumsum([rows * width for rows, width in shapes])[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def segments(self) -> dict[str, Callable[[], State]]:
        """Returns makers of the replay's segments that the last `state_dict` refers to."""
        replay = self.roles.replay
        return {name: partial(replay.segment, name) for name in replay.segment_names()}

    @contextmanager
    def _timed(self, role: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds[role] += time.perf_counter() - started

    def _counters(self, update: Update | None) -> State:
        """Returns all that is counted; `update` is under way and not yet published."""
        return {
            "num_steps": self.num_steps,
            "num_updates": self.num_updates,
            "coverage": self.coverage.state_dict() if self.coverage is not None else None,
            "means": self.means.state_dict(),
            "pending": None if update is None else _describe(update),
        }

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


def _describe(update: Update) -> State:
    names, values = list(update.metrics), list(update.metrics.values())
    return {"ids": update.ids, "priorities": update.priorities, "names": names, "values": values}
