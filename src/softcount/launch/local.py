"""All roles in one process: the loop of the architecture figure, in its order.

    env ──▶ actor ──▶ inference ──▶ memory ──▶ replay ──▶ learner ──▶ (parameters, priorities)

The learner works beside the actors, on its own thread: an update starts when the replay
ratio asks for it and is published when the next one starts, or at once where the source
is strict. That is a fixed place in the stream of steps, so results do not depend on which
of the two is faster, nor on whether they overlap at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from softcount.launch.acting import act
from softcount.launch.learning import Learning
from softcount.roles.actor import Actor
from softcount.roles.evaluator import Evaluator
from softcount.roles.inference import Inference
from softcount.roles.learner import Learner, Update
from softcount.roles.memory_server import MemoryServer
from softcount.types import Source, State


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


class StateLost(RuntimeError):
    """A role was lost with what only checkpoints have besides: all go back to the last one."""


class LocalLoop(Learning):
    """Steps the roles; whatever it counts or waits for is part of its state."""

    roles: Roles
    evaluator: Evaluator | None = None  # one of its own, where it brings one

    def __init__(
        self, roles: Roles, *, relabel: bool = False, overlap: bool = True, reembed_every: int = 0
    ) -> None:
        super().__init__(
            roles, relabel=relabel, reembed_every=reembed_every, num_places=roles.actor.num_places()
        )
        self._keeps_observations = roles.memory.wants_observations()
        self._submit = ThreadPoolExecutor(1, "learner").submit if overlap else _submit_at_once
        roles.inference.load(roles.learner.parameters())

    def step(self) -> None:
        """Takes one step in every environment, and starts the learning that this makes due."""
        actor, inference, memory, replay, _ = vars(self.roles).values()
        acted = act(actor, inference, memory, keeps_observations=self._keeps_observations, timed=self._timed)
        with self._timed("replay"):
            replay.add(acted.row, acted.state)
        self._count(acted.now.place, acted.now.is_first, acted.intrinsic)
        while replay.due():
            self._publish(acts=not replay.is_strict())
            self._start_update()
        if replay.is_strict():
            self._publish()

    def _publish(self, *, acts: bool = True) -> None:
        """Waits for the update under way, then lets it act and reorder the replay.

        Where another update follows before anything acts, its parameters need not travel.
        """
        if self.pending is None:
            return
        with self._timed("learner_wait"):
            update = self.pending.result()
        self._take_in(update)
        self.pending = None
        moves_atoms = self.is_reembedding_due()
        if acts or moves_atoms:
            with self._timed("inference"):
                self.roles.inference.load(self.roles.learner.parameters())
        if moves_atoms:
            with self._timed("memory"):
                self._move_atoms()

    def _start_update(self) -> None:
        sample, targets = self._next_batch()
        with self._timed("learner_wait"):  # all of it where nothing overlaps
            self.pending = self._submit(self._learn, sample, targets)

    def look(self) -> None:
        """Brings what is counted up to date: here it always is."""

    def close(self) -> None:
        """Closes the environments."""
        self.roles.actor.close()

    def state_dict(self) -> State:
        """Returns everything; waits for the update under way, whose result is kept unpublished."""
        update = self.pending.result() if self.pending is not None else None
        return {
            "loop": self._counters(update),
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


@contextmanager
def _loading(part: str) -> Iterator[None]:
    """Names the part whose state a role cannot take, whatever the role stumbles over."""
    try:
        yield
    except Exception as error:  # states come from files, and roles raise many kinds on odd ones
        reason = f"it lacks {error}" if isinstance(error, KeyError) else str(error) or repr(error)
        raise Misfit(part, reason) from error


def _submit_at_once(function: Callable[..., Update], *arguments: Any) -> Future[Update]:
    future: Future[Update] = Future()
    future.set_result(function(*arguments))
    return future
