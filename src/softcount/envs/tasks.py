"""Several tasks at once: vector environments of equal specs side by side, as one.

The rows of a task are contiguous and the tasks keep their order, so `task_ids` is sorted:
0, 0, …, 1, 1, …. Whoever reads `task_ids` and `task_names` needs not know that there are parts.

Places of different tasks are different places. Where every task knows how many it has, they
are numbered through, task after task; where one does not, they take turns:

    global place = num_places of the tasks before + place     all numbers known
    global place = place · num_tasks + task                   otherwise

−1, nowhere, stays −1, and a task without places is nowhere. `split_places` is the inverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np

from softcount.envs.spaces import checked_actions
from softcount.types import Array, State, TimeStep, VectorEnv, map_arrays


def seeds_of_tasks(seed: int, num_tasks: int) -> list[int]:
    """Derives a seed for each task; those of the first tasks do not depend on how many follow.

    >>> seeds_of_tasks(0, 3)[:2] == seeds_of_tasks(0, 2) != seeds_of_tasks(1, 2)
    True
    """
    return [int(word) for word in np.random.SeedSequence(seed).generate_state(num_tasks)]


class TaskVector:
    """Vector environments of equal specs, one per task, behind `types.VectorEnv`.

    >>> from softcount.envs.disco_maze import DiscoMaze, DiscoMazeConfig
    >>> mazes = [DiscoMaze(DiscoMazeConfig(size=7, layout=layout), num_envs=2) for layout in (0, 1)]
    >>> env = TaskVector(mazes, ("first", "second"))
    >>> env.task_ids.tolist(), env.num_places
    ([0, 0, 1, 1], 34)
    >>> place = env.reset(seed=0).place
    >>> place.tolist(), [part.tolist() for part in env.split_places(place)]
    ([12, 12, 30, 30], [[0, 0, 1, 1], [12, 12, 13, 13]])
    """

    def __init__(self, envs: Sequence[VectorEnv], names: Sequence[str]) -> None:
        if not envs or len(envs) != len(names):
            raise ValueError(f"{len(envs)} environments and {len(names)} names; expected one name for each")
        if len(set(names)) < len(names):
            raise ValueError(f"the tasks are called {', '.join(names)}; expected different names")
        for env, name in zip(envs, names, strict=True):
            _check_equal("observations", names[0], envs[0].observation_spec, name, env.observation_spec)
            _check_equal("actions", names[0], envs[0].action_spec, name, env.action_spec)
        self.envs = list(envs)
        self.task_names = tuple(names)
        self.observation_spec = envs[0].observation_spec
        self.action_spec = envs[0].action_spec
        copies = [env.num_envs for env in envs]
        self.num_envs = sum(copies)
        self.task_ids = np.repeat(np.arange(len(envs)), copies)
        self._borders = np.cumsum(copies)[:-1]  # rows at which the next task begins
        known = [env.num_places for env in envs if env.num_places is not None]
        self.num_places = sum(known) if len(known) == len(envs) else None
        self._offsets = None if self.num_places is None else np.cumsum([0, *known[:-1]])

    @property
    def num_frames(self) -> int | None:
        """Frames that all tasks have played so far, where all of them count."""
        counts = [getattr(env, "num_frames", None) for env in self.envs]
        return None if None in counts else sum(counts)  # type: ignore[arg-type]

    def reset(self, seed: int | None = None) -> TimeStep:
        """Starts a new episode in every copy; a seed gives each task its own, derived from it."""
        if seed is None:
            return self._join([env.reset() for env in self.envs])
        seeds = seeds_of_tasks(seed, len(self.envs))
        return self._join([env.reset(part) for env, part in zip(self.envs, seeds, strict=True)])

    def step(self, actions: Array) -> TimeStep:
        """Gives every task the actions of its rows."""
        actions = checked_actions(actions, self.action_spec, self.num_envs)
        parts = np.split(actions, self._borders)
        return self._join([env.step(part) for env, part in zip(self.envs, parts, strict=True)])

    def split_places(self, places: Array) -> tuple[Array, Array]:
        """Returns the task of each global place and the place as that task numbers it; −1 gives −1 twice."""
        places = np.asarray(places)
        top = int(places.max(initial=-1))
        if self.num_places is not None and top >= self.num_places:
            raise ValueError(f"place {top} was given; expected less than {self.num_places}")
        if self._offsets is None:
            within, task = np.divmod(places, len(self.envs))
        else:
            task = np.searchsorted(self._offsets, places, side="right") - 1
            within = places - self._offsets[task]
        return np.where(places < 0, -1, task), np.where(places < 0, -1, within)

    def get_state(self) -> State:
        """Returns the states of all tasks; each must be able to save its own."""
        parts = []
        for env, name in zip(self.envs, self.task_names, strict=True):
            try:
                parts.append(env.get_state())
            except NotImplementedError as error:
                raise NotImplementedError(f"the task {name} cannot be saved: {error}") from error
        return {"tasks": list(self.task_names), "parts": parts}

    def set_state(self, state: State) -> None:
        """Continues exactly where `get_state` was called."""
        found, expected = ", ".join(state["tasks"]), ", ".join(self.task_names)
        if found != expected:
            raise ValueError(f"the state is of the tasks {found}; expected {expected}")
        for env, part in zip(self.envs, state["parts"], strict=True):
            env.set_state(part)

    def close(self) -> None:
        """Closes every task, also where another fails to."""
        with ExitStack() as stack:
            for env in self.envs:
                stack.callback(env.close)

    def _join(self, steps: list[TimeStep]) -> TimeStep:
        rows: TimeStep = map_arrays(
            lambda *parts: np.concatenate(parts), *(step._replace(place=None) for step in steps)
        )
        if all(step.place is None for step in steps):
            return rows
        places = [self._global_places(task, step) for task, step in enumerate(steps)]
        return rows._replace(place=np.concatenate(places))

    def _global_places(self, task: int, step: TimeStep) -> Array:
        if step.place is None:
            return np.full(self.envs[task].num_envs, -1)
        if self._offsets is None:
            places = step.place * len(self.envs) + task
        else:
            places = step.place + self._offsets[task]
        return np.where(step.place < 0, -1, places)


def _check_equal(what: str, first: str, spec: object, second: str, other: object) -> None:
    if spec != other:
        raise ValueError(
            f"{what} of {first} are {spec}, of {second} {other}; expected tasks with equal specs"
        )
