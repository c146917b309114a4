"""The on-policy source: whole unrolls, each learned from once, in batches.

    rows    0 ........ T          T = unroll_length; the last row only bootstraps
    unroll  ├──────────┤
                       ├──────────┤      and is the first of the next unroll

When T + 1 rows of every environment are there, the unroll is cut into `num_envs / batch_size`
batches, in a random order of environments; with several tasks every batch holds equally many of each.
Batches are handed out once and forgotten. There are no priorities.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import numpy as np

from softcount.types import (
    Array,
    Observation,
    Sample,
    Sequence,
    State,
    Step,
    leaves_of,
    load_rng,
    map_arrays,
    rng_state,
)


class OnPolicyQueue:
    """A `types.Source` that forgets what was learned from.

    >>> queue = OnPolicyQueue(unroll_length=2, batch_size=1, num_envs=2, seed=0)
    >>> no, none = np.zeros(2, bool), np.zeros(2, np.float32)
    >>> for t in range(3):
    ...     seen = np.array([t, 10 + t], np.float32)
    ...     queue.add(Step(seen, none, none, none, no, no, no, none, {"task": np.zeros(2, int)}), ())
    >>> batches = [queue.sample().sequence.steps.observation[:, 0].tolist() for _ in range(2)]
    >>> sorted(batches), queue.due()
    ([[0.0, 1.0, 2.0], [10.0, 11.0, 12.0]], False)
    """

    def __init__(
        self, unroll_length: int, batch_size: int, num_envs: int, *, seed: int, is_strict: bool = False
    ) -> None:
        if unroll_length < 1:
            raise ValueError(f"unroll_length is {unroll_length}; expected at least 1")
        if batch_size < 1 or num_envs % batch_size:
            raise ValueError(
                f"batch_size is {batch_size}; expected a divisor of the {num_envs} environments of a run"
            )
        self.unroll_length, self.batch_size, self.num_envs = unroll_length, batch_size, num_envs
        self.rng = np.random.default_rng(seed)
        self._is_strict = is_strict
        self._rows: list[Step] = []  # of the open unroll
        self._state: Any = ()  # recurrent state before its first row
        self._batches: deque[Sequence] = deque()
        self._waiting: list[tuple[Array, Step, Any]] = []  # rows of some environments, until all are there
        self.num_unrolls = 0

    def add(self, row: Step, state: Any, env_ids: Array | None = None) -> None:
        """Takes in one row of every environment and the recurrent state before it.

        Rows of some environments wait until all others have sent theirs.
        """
        if env_ids is None or len(env_ids) == self.num_envs:
            self._add(row, state)
            return
        self._waiting.append((np.asarray(env_ids), _plain(row), state))
        while (whole := self._take_whole()) is not None:
            self._add(*whole)

    def _take_whole(self) -> tuple[Step, Any] | None:
        """Takes the oldest waiting rows of all environments; None while some are missing."""
        taken, missing = [], np.ones(self.num_envs, bool)
        for i, (env_ids, _, _) in enumerate(self._waiting):
            if missing[env_ids].all():
                taken.append(i)
                missing[env_ids] = False
        if missing.any():
            return None
        parts = [self._waiting[i] for i in taken]
        self._waiting = [part for i, part in enumerate(self._waiting) if i not in taken]
        order = np.argsort(np.concatenate([env_ids for env_ids, _, _ in parts]))
        rows, states = [row for _, row, _ in parts], [state for _, _, state in parts]
        return tuple(map_arrays(lambda *leaves: np.concatenate(leaves)[order], *x) for x in (rows, states))  # type: ignore[return-value]

    def _add(self, row: Step, state: Any) -> None:
        if not self._rows:
            self._state = state
        self._rows.append(row)
        if len(self._rows) == self.unroll_length + 1:
            self._cut()
            self._rows, self._state = [row], state  # the last row is the first of the next unroll

    def due(self) -> bool:
        """Says whether a batch is waiting."""
        return bool(self._batches)

    def backlog(self) -> float:
        """How many batches are waiting."""
        return float(len(self._batches))

    def is_strict(self) -> bool:
        """Says whether all that was learned is to act before the next row comes."""
        return self._is_strict

    def rows_to_batch(self) -> int:
        """How many rows of every environment are missing from the open unroll."""
        return self.unroll_length + 1 - len(self._rows)

    def is_on_policy(self) -> bool:
        """An unroll is of all environments."""
        return True

    def sample(self) -> Sample:
        """Hands out the next batch and forgets it."""
        if not self._batches:
            raise ValueError("the queue holds no batch; ask `due` first")
        sequence = self._batches.popleft()
        return Sample(sequence, np.full(self.batch_size, -1), None)

    def reprioritise(self, ids: Array, priorities: Array) -> None:
        raise TypeError("a queue has no order; expected an agent that returns no priorities")

    def num_parts(self) -> int:
        """One part: the rows of the open unroll, and those of the batches that wait."""
        return len(self._batches) + bool(self._rows)

    def part(self, number: int) -> Observation:
        """Returns the observations of a waiting batch, or of the open unroll, `[N, ...]`."""
        if number < len(self._batches):
            steps = self._batches[number].steps
            return map_arrays(lambda x: x.reshape(-1, *x.shape[2:]), steps.observation)
        rows = [row.observation for row in self._rows]
        return map_arrays(lambda *leaves: np.concatenate(leaves), *rows)

    def share_of(self, task_ids: Array) -> int:
        """How many traces of each task a batch holds; an error where it cannot be equally many."""
        tasks, counts = np.unique(task_ids, return_counts=True)
        if len(set(counts.tolist())) > 1 or self.batch_size % len(tasks):
            raise ValueError(
                f"batch_size is {self.batch_size} and the tasks have {counts.tolist()} environments; "
                f"expected equally many of each task, and a batch that {len(tasks)} divides"
            )
        return self.batch_size // len(tasks)

    def metrics(self) -> dict[str, float]:
        return {"unrolls": float(self.num_unrolls), "batches": float(len(self._batches))}

    def state_dict(self) -> State:
        return {
            "rows": [_as_state(row) for row in self._rows],
            "state": leaves_of(map_arrays(np.array, self._state)),
            "batches": [
                {"steps": _as_state(batch.steps), "state": leaves_of(map_arrays(np.array, batch.state))}
                for batch in self._batches
            ],
            "num_unrolls": self.num_unrolls,
            "rng": rng_state(self.rng),
        }

    def segment_names(self) -> list[str]:
        """An unroll is small, so that all of it is state."""
        return []

    def segment(self, name: str) -> State:
        raise KeyError(name)

    def load_state_dict(self, state: State, segments: Mapping[str, State]) -> None:
        self._rows = [_from_state(row) for row in state["rows"]]
        self._state = tuple(np.array(leaf) for leaf in state["state"])
        self._batches = deque(
            Sequence(_from_state(batch["steps"]), tuple(np.array(leaf) for leaf in batch["state"]))
            for batch in state["batches"]
        )
        self.num_unrolls = int(state["num_unrolls"])
        load_rng(self.rng, state["rng"])

    def _cut(self) -> None:
        """Turns the open unroll into batches."""
        steps: Step = map_arrays(lambda *leaves: np.stack(leaves), *map(_plain, self._rows))
        for envs in self._order(self._rows[0].extras["task"]).reshape(-1, self.batch_size):
            batch: Step = map_arrays(lambda x, e=envs: x[:, e], steps)
            state = map_arrays(lambda x, e=envs: x[e], self._state)
            self._batches.append(Sequence(batch, state))
        self.num_unrolls += 1

    def _order(self, task_ids: Array) -> Array:
        """Returns environments at random, every batch with equally many of each task."""
        shuffled = self.rng.permutation(self.num_envs)
        share, tasks = self.share_of(task_ids), np.unique(task_ids)
        apart = [shuffled[task_ids[shuffled] == task].reshape(-1, share) for task in tasks]
        return np.concatenate(apart, axis=1).ravel()


def _plain(row: Step) -> Step:
    return row._replace(extras=dict(row.extras))


def _as_state(steps: Step) -> State:
    return {**steps._asdict(), "extras": dict(steps.extras)}


def _from_state(state: State) -> Step:
    return Step(**map_arrays(np.array, state))
