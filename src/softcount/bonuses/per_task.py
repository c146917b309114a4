"""One bonus for each task, behind the interface of one.

The paper does not say whether tasks share a memory. Shared, a place of one task can look known from
another; apart, each task explores as if it were alone. Rows go to the bonus of their task, in order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from softcount.bonuses.checks import check_batch
from softcount.bonuses.plain import PlainBonus
from softcount.memory import RecodeMemory
from softcount.types import Array, Bonus, Features, Observation, State, map_arrays, take_rows


class PerTask(PlainBonus):
    """Sends each row to the bonus of its task.

    >>> from softcount.bonuses.place_count import PlaceCount
    >>> bonus = PerTask([PlaceCount(), PlaceCount()], ["one", "two"])
    >>> same_place, tasks = Features(place=np.array([3, 3, 3])), np.array([0, 1, 0])
    >>> bonus.observe(same_place, np.arange(3), np.zeros(3, bool), tasks).round(3).tolist()
    [1.0, 1.0, 0.7070000171661377]
    """

    def __init__(self, bonuses: Sequence[Bonus], names: Sequence[str]) -> None:
        if not bonuses or len(bonuses) != len(names):
            raise ValueError(
                f"{len(bonuses)} bonuses were given for {len(names)} tasks; expected one for each"
            )
        self.bonuses, self.names = list(bonuses), list(names)
        self.paid_in, self.lasts = bonuses[0].paid_in, bonuses[0].lasts
        self.wants_observations = bonuses[0].wants_observations
        self._last_tasks = np.zeros(0, np.int64)  # of the last observe, for `keep`

    @property
    def is_paying(self) -> bool:
        return any(bonus.is_paying for bonus in self.bonuses)

    @property
    def num_founded(self) -> int:  # type: ignore[override]
        return sum(bonus.num_founded for bonus in self.bonuses)

    def can_read(self, features: Features) -> bool:
        return self.bonuses[0].can_read(features)

    def observe(
        self, features: Features, env_ids: Array, is_first: Array, task_ids: Array | None = None
    ) -> Array:
        """Pays every row by its own task's bonus."""
        num = next(len(part) for part in features if part is not None)
        batch = check_batch(num, env_ids, is_first)
        tasks = self._checked(task_ids, num)
        self._last_tasks = tasks
        return self._spread(
            tasks,
            lambda bonus, rows: bonus.observe(
                take_rows(features, rows), batch.env_ids[rows], batch.is_first[rows]
            ),
        )

    def score(self, features: Features, env_ids: Array | None = None, task_ids: Array | None = None) -> Array:
        """Returns what each row would be paid now; nothing changes."""
        num = next(len(part) for part in features if part is not None)
        ids = np.arange(num) if env_ids is None else np.asarray(env_ids)
        return self._spread(
            self._checked(task_ids, num),
            lambda bonus, rows: bonus.score(take_rows(features, rows), ids[rows]),
        )

    def keep(self, observation: Observation) -> None:
        for task, bonus in enumerate(self.bonuses):
            rows = np.flatnonzero(self._last_tasks == task)
            if len(rows):
                bonus.keep(map_arrays(lambda x, r=rows: x[r], observation))

    def founding_observations(self, start: int, stop: int) -> Observation:
        """Returns those of atoms `start … stop − 1`, counted through the tasks."""
        parts: list[Any] = []
        for bonus, first in zip(self.bonuses, self._borders()[:-1]):
            one, two = max(start - first, 0), min(stop - first, bonus.num_founded)
            if one < two:
                parts.append(bonus.founding_observations(one, two))
        return map_arrays(lambda *leaves: np.concatenate(leaves), *parts)

    def move_atoms(self, features: Features) -> None:
        borders = self._borders()
        for bonus, start, stop in zip(self.bonuses, borders[:-1], borders[1:]):
            if start < stop:
                bonus.move_atoms(take_rows(features, np.arange(start, stop)))

    def twin(self) -> PerTask:
        return PerTask([bonus.twin() for bonus in self.bonuses], self.names)

    def metrics(self) -> dict[str, float]:
        """The mean over tasks, and each task's own numbers after its name."""
        return self._gather([bonus.metrics() for bonus in self.bonuses])

    def describe(self) -> dict[str, float]:
        return self._gather([bonus.describe() for bonus in self.bonuses])

    def memories(self) -> dict[str, RecodeMemory]:
        pairs = zip(self.names, self.bonuses, strict=True)
        return {task: memory for task, bonus in pairs for memory in bonus.memories().values()}

    def state_dict(self) -> State:
        return {"tasks": [bonus.state_dict() for bonus in self.bonuses]}

    def load_state_dict(self, state: State) -> None:
        if len(state["tasks"]) != len(self.bonuses):
            raise ValueError(f"the state is of {len(state['tasks'])} tasks; expected {len(self.bonuses)}")
        for bonus, part in zip(self.bonuses, state["tasks"], strict=True):
            bonus.load_state_dict(part)

    def _borders(self) -> list[int]:
        return [0, *np.cumsum([bonus.num_founded for bonus in self.bonuses]).tolist()]

    def _spread(self, tasks: Array, ask: Callable[[Bonus, Array], Array]) -> Array:
        paid = np.zeros(len(tasks), np.float32)
        for task, bonus in enumerate(self.bonuses):
            rows = np.flatnonzero(tasks == task)
            if len(rows):
                paid[rows] = ask(bonus, rows)
        return paid

    def _checked(self, task_ids: Array | None, num: int) -> Array:
        if task_ids is None:
            raise ValueError("task_ids is None; a bonus per task needs the task of every row")
        tasks = np.asarray(task_ids)
        if tasks.shape != (num,) or (num and not 0 <= tasks.min() <= tasks.max() < len(self.bonuses)):
            raise ValueError(
                f"task_ids are {tasks.tolist()}; expected {num} numbers from 0 to {len(self.bonuses) - 1}"
            )
        return tasks

    def _gather(self, parts: list[dict[str, float]]) -> dict[str, float]:
        names = dict.fromkeys(name for part in parts for name in part)
        gathered = {name: float(np.mean([part[name] for part in parts if name in part])) for name in names}
        for task, part in zip(self.names, parts, strict=True):
            gathered |= {f"{name}/{task}": x for name, x in part.items()}
        return gathered
