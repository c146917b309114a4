"""Copies of an Eight Rooms task, stepped and drawn together (`types.VectorEnv`).

A new level is drawn for every episode, from the seed, the copy's number and the number of its episode; a
fixed `layout` is one level for ever. The large apple ends an episode for good, the time limit cuts it.
`place` is ground truth: the stage and, where the layout is fixed, the cell of one metre.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from softcount.envs.eight_rooms import core
from softcount.envs.eight_rooms.level import NUM_MARKS, Level
from softcount.envs.eight_rooms.levels import VARIANTS, Variant, generate
from softcount.envs.eight_rooms.tasks import TASKS, Worlds
from softcount.envs.nine_actions import ACTIONS, IMAGE, action_table
from softcount.envs.spaces import checked_actions
from softcount.types import (
    ActionSpec,
    Array,
    ArraySpec,
    ContinuousActions,
    DiscreteActions,
    Observation,
    ObservationSpec,
    State,
    TimeStep,
)

MAP = 32
"""Metres along a side of the map of places."""
NEAREST, REACH = 0.7, 2.0


@dataclass(frozen=True, kw_only=True)
class EightRoomsConfig:
    """Which task in which size, and how the agent acts and sees."""

    task: str = "wall_sensor"
    """One of the eight names in `tasks.TASKS`."""
    variant: Variant = "full"
    """`tiny`, `small` or `full`."""
    layout: int | None = None
    """A number: one level for ever. None: a new level for every episode."""
    assist: int = 0
    """Where episodes start: 0 as they should, 1 key in hand, 2 doors open, 3 in view of the apple."""
    width: int = 96
    """Pixels across."""
    height: int = 72
    """Pixels down; the field of view is made for 4:3."""
    action_repeat: int = 4
    """Ticks of 1/30 s for which an action is held."""
    actions: Literal["discrete", "continuous"] = "discrete"
    """An index into `table`, or all nine values."""
    table: tuple[Mapping[str, float], ...] = field(default_factory=action_table)
    """The discrete actions; what an entry leaves out is 0."""
    observation: Literal["image", "all"] = "image"
    """The image alone, or a dict of it and the four senses."""
    max_steps: int | None = None
    """Agent steps after which an episode is cut; None: the task's own limit."""
    limit_is_terminal: bool = False
    """Whether that cut counts as an end for good (no bootstrap) instead of a time limit."""
    threads: int = 1
    """Threads that step and draw copies; they change no bit."""

    def __post_init__(self) -> None:
        expected: dict[str, tuple[Any, ...]] = {
            "task": tuple(TASKS),
            "variant": VARIANTS,
            "assist": (0, 1, 2, 3),
            "actions": ("discrete", "continuous"),
            "observation": ("image", "all"),
        }
        for name, values in expected.items():
            if getattr(self, name) not in values:
                known = ", ".join(repr(value) for value in values)
                raise ValueError(f"{name} is {getattr(self, name)!r}; expected one of {known}")
        least = {"width": 8, "height": 6, "action_repeat": 1, "threads": 1}
        least |= {
            name: low for name, low in (("max_steps", 1), ("layout", 0)) if getattr(self, name) is not None
        }
        for name, low in least.items():
            if getattr(self, name) < low:
                raise ValueError(f"{name} is {getattr(self, name)}; expected at least {low}")
        for entry in self.table:
            for name, value in entry.items():
                if name not in ACTIONS:
                    raise ValueError(f"no action is called {name!r}; expected one of {', '.join(ACTIONS)}")
                if not ACTIONS[name][0] <= value <= ACTIONS[name][1]:
                    raise ValueError(
                        f"{name} is {value}; expected from {ACTIONS[name][0]} to {ACTIONS[name][1]}"
                    )

    @property
    def limit(self) -> int:
        """Agent steps of an episode."""
        return TASKS[self.task].limit(self.variant) if self.max_steps is None else self.max_steps

    @property
    def observation_spec(self) -> ObservationSpec:
        """What one copy sees."""
        image = ArraySpec((self.height, self.width, 3), "uint8")
        if self.observation == "image":
            return image
        scalar = ArraySpec((), "float32")
        senses = {"HAND_FORCE": scalar, "HAND_IS_HOLDING": scalar, "HAND_DISTANCE": scalar}
        return {IMAGE: image, "ACCELERATION": ArraySpec((3,), "float32"), **senses}

    @property
    def action_spec(self) -> ActionSpec:
        """What one copy does."""
        if self.actions == "discrete":
            return DiscreteActions(len(self.table))
        low, high = zip(*ACTIONS.values(), strict=True)
        return ContinuousActions(tuple(low), tuple(high))


class EightRooms:
    """Copies of one task.

    >>> env = EightRooms(EightRoomsConfig(task="wall_sensor", variant="tiny"), num_envs=2, seed=0)
    >>> step = env.reset()
    >>> step.observation.shape, env.action_spec, env.num_places
    ((2, 72, 96, 3), DiscreteActions(num=38), 3)
    >>> env.step(np.array([1, 0])).reward.tolist()
    [0.0, 0.0]
    """

    def __init__(
        self, config: EightRoomsConfig | None = None, *, num_envs: int = 1, seed: int = 0, rank: int = 0
    ) -> None:
        if num_envs < 1:
            raise ValueError(f"num_envs is {num_envs}; expected at least 1")
        self.config = cfg = config or EightRoomsConfig()
        self.num_envs = num_envs
        self.task_ids = np.zeros(num_envs, np.int64)
        self.task_names: tuple[str, ...] = (f"eight-rooms/{cfg.task}",)
        self.observation_spec: ObservationSpec = cfg.observation_spec
        self.action_spec: ActionSpec = cfg.action_spec
        self.task = TASKS[cfg.task]
        self.batch = core.Batch(num_envs, cfg.width, cfg.height, threads=cfg.threads, rank=rank)
        self.worlds = Worlds(
            self.batch.states,
            np.zeros((num_envs, NUM_MARKS, 2), np.float32),
            np.zeros((num_envs, self.batch.states["bodies"].shape[1], 2), np.float32),
        )
        self.num_places: int | None = self.task.num_stages * (1 if cfg.layout is None else MAP * MAP)
        self.is_over = np.ones(num_envs, bool)
        self._table = np.array(
            [[entry.get(name, 0.0) for name in ACTIONS] for entry in cfg.table], np.float32
        )
        self._fixed = None if cfg.layout is None else self.draw_level((cfg.layout,))
        self._seed = seed
        self._episodes = np.zeros(num_envs, np.int64)  # how many each copy has begun
        self._elapsed = np.zeros(num_envs, np.int64)
        self._limit = cfg.limit
        self._repeats = np.full(num_envs, cfg.action_repeat, np.int32)

    @property
    def map_shape(self) -> tuple[int, int]:
        """Rows and columns of the map that `cell_of` points into.

        Cells of a metre, or stages where levels change.
        """
        return (1, self.task.num_stages) if self._fixed is None else (MAP, MAP)

    def cell_of(self, place: int) -> tuple[int, int]:
        """Returns where on the map a place lies; all stages of a cell lie there."""
        return (0, place) if self._fixed is None else divmod(place % (MAP * MAP), MAP)

    @property
    def stage(self) -> Array:
        """How far each copy has come `[B]`."""
        return self.task.stage(self.worlds)

    @property
    def is_lost(self) -> Array:
        """Which copies cannot be solved any more `[B]`, for measurement only."""
        return self.task.is_lost(self.worlds)

    def draw_level(self, entropy: tuple[int, ...]) -> Level:
        """Draws the level of a seed."""
        cfg, rng = self.config, np.random.default_rng(np.random.SeedSequence(entropy))
        try:
            return generate(cfg.task, cfg.variant, rng, cfg.assist)
        except ValueError as error:
            raise ValueError(
                f"{cfg.task} {cfg.variant} cannot be drawn with seed {entropy}: {error}"
            ) from error

    def reset(self, seed: int | None = None) -> TimeStep:
        """Starts a new episode in every copy; a seed starts the sequence of levels anew."""
        if seed is not None:
            self._seed = seed
            self._episodes[:] = 0
        self.is_over[:] = True
        return self._advance(np.zeros((self.num_envs, len(ACTIONS)), np.float32))

    def step(self, actions: Array) -> TimeStep:
        """Acts in every copy; copies whose episode was over start a new one instead."""
        actions = checked_actions(actions, self.action_spec, self.num_envs)
        if not self._episodes.all():
            raise RuntimeError("step was called before reset")
        if self.config.actions == "discrete":
            return self._advance(self._table[actions])
        return self._advance(np.ascontiguousarray(actions, np.float32))

    def get_state(self) -> State:
        """Returns all that the future depends on."""
        cfg = self.config
        return {
            "suite": f"eight-rooms {core.version()}",
            "task": f"{cfg.task} {cfg.variant}",
            "states": self.batch.states.view(np.uint8).reshape(self.num_envs, -1).copy(),
            "marks": self.worlds.marks.copy(),
            "homes": self.worlds.homes.copy(),
            "is_over": self.is_over.copy(),
            "episodes": self._episodes.copy(),
            "elapsed": self._elapsed.copy(),
            "seed": self._seed,
        }

    def set_state(self, state: State) -> None:
        """Continues exactly where `get_state` was called."""
        cfg = self.config
        found = (state["suite"], state["task"], len(state["states"]))
        expected = (f"eight-rooms {core.version()}", f"{cfg.task} {cfg.variant}", self.num_envs)
        if found != expected:
            raise ValueError(f"the state's suite, task and number of copies are {found}; expected {expected}")
        self.batch.states.view(np.uint8).reshape(self.num_envs, -1)[:] = state["states"]
        self.worlds.marks[:] = state["marks"]
        self.worlds.homes[:] = state["homes"]
        self.is_over = np.array(state["is_over"])
        self._episodes, self._elapsed = np.array(state["episodes"]), np.array(state["elapsed"])
        self._seed = int(state["seed"])
        for slot in np.flatnonzero(self._episodes):
            self.batch.load(int(slot))

    def close(self) -> None:
        """Nothing to release."""

    def _advance(self, actions: Array) -> TimeStep:
        states, is_first = self.batch.states, self.is_over
        repeats, has_first = self._repeats, bool(is_first.any())
        if has_first:
            for slot in np.flatnonzero(is_first).tolist():
                self._begin(slot)
            repeats = np.where(is_first, np.int32(0), repeats)
        image = self.batch.step(actions, repeats)
        self._elapsed += 1
        reward = states["reward"].copy()
        if has_first:
            self._elapsed[is_first] = 0
            reward[is_first] = 0
        is_terminal = states["is_over"] > 0
        is_cut = self._elapsed >= self._limit
        if self.config.limit_is_terminal:
            is_terminal |= is_cut
        self.is_over = is_terminal | is_cut
        place = self._places()
        return TimeStep(self._observe(image), reward, is_first, self.is_over.copy(), is_terminal, place)

    def _begin(self, slot: int) -> None:
        entropy = (self._seed, slot, int(self._episodes[slot]))
        level = self.draw_level(entropy) if self._fixed is None else self._fixed
        self._episodes[slot] += 1
        self.batch.load(slot, level.state)
        self.worlds.marks[slot] = level.marks
        bodies = level.state["bodies"]
        self.worlds.homes[slot, :, 0], self.worlds.homes[slot, :, 1] = bodies["x"], bodies["y"]

    def _places(self) -> Array:
        stage = self.stage
        if self._fixed is None:
            return stage
        agent = self.batch.states["agent"]
        return np.asarray((stage * MAP + agent["y"].astype(np.int64)) * MAP + agent["x"].astype(np.int64))

    def _observe(self, image: Array) -> Observation:
        if self.config.observation == "image":
            return image
        return {IMAGE: image, **senses(self.batch.states)}


def senses(states: Array) -> dict[str, Array]:
    """Returns what is felt `[B]`.

    Acceleration (right, up, forward), and the hand's load, grip and distance.
    """
    agent = states["agent"]
    is_holding = agent["held"] >= 0
    distance = (agent["hand"] - np.float32(NEAREST)) / np.float32(REACH - NEAREST)
    return {
        "ACCELERATION": agent["acceleration"].copy(),
        "HAND_FORCE": np.where(is_holding, np.minimum(agent["lag"], np.float32(1)), np.float32(0)),
        "HAND_IS_HOLDING": is_holding.astype(np.float32),
        "HAND_DISTANCE": np.where(is_holding, np.clip(distance, 0, 1), np.float32(0)),
    }
