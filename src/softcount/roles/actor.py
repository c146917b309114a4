"""The actor: owns environments, recurrent states and a behaviour; turns replies into traces.

At every step it asks the inference worker for a policy and features of its observations,
gets the intrinsic reward of arriving there from the memory, and steps its environments.
What it asks at time t is o_t, a_{t−1}, r^e_t and r^i_{t−1}: the intrinsic reward comes one
step late, because embedding and policy leave the worker together. What is decided once per
episode, and how a policy becomes an action, is the behaviour's.

Environments that cannot save their state start new episodes when an actor is restored.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from softcount.agents.protocols import Behaviour
from softcount.envs.worlds import Portraits, World, describe_worlds, portray, split_places
from softcount.types import (
    Array,
    Features,
    State,
    Step,
    TimeStep,
    VectorEnv,
    load_rng,
    map_arrays,
    no_action,
    rng_state,
)


class Request(NamedTuple):
    """What an actor asks of the inference worker, for all its environments; leaves `[B, ...]`."""

    observation: Any
    prev_action: Array  # a_{t-1}, zeros on FIRST
    reward: Array  # r^e_t
    prev_intrinsic: Array  # r^i_{t-1}, 0 on FIRST
    is_first: Array
    condition: Array  # what the behaviour tells the network
    state: Any  # recurrent state of the agent
    feature_state: Any  # recurrent state of the representation


class Arrival(NamedTuple):
    """Where all environments of an actor are now, for whom pays and counts."""

    timestep: TimeStep
    env_ids: Array  # numbers of the environments among those of all actors
    task_ids: Array


class Reply(NamedTuple):
    """What the inference worker answers; leaves `[B, ...]`."""

    policy: Array  # of each row's condition, [B, P]
    features: Features
    state: Any
    feature_state: Any


class Episode(NamedTuple):
    """What is known of an episode once it has ended."""

    extrinsic_return: float
    intrinsic_return: float
    length: int
    task: int
    condition: int


class Actor:
    """Steps a set of environments; everything an episode needs to remember is here."""

    def __init__(
        self,
        env: VectorEnv,
        behaviour: Behaviour,
        *,
        state: Any,
        feature_state: Any,
        seed: int,
        env_ids: Array | None = None,
    ) -> None:
        self.env = env
        self.env_ids = np.arange(env.num_envs) if env_ids is None else env_ids
        self.behaviour = behaviour
        self.rng = np.random.default_rng(seed)
        self.timestep: TimeStep = env.reset(seed)
        self.state, self.feature_state = state, feature_state
        self._at_start = state, feature_state
        self.prev_action = no_action(env.action_spec, env.num_envs)
        self.prev_intrinsic = np.zeros(env.num_envs, np.float32)
        self.totals = np.zeros((3, env.num_envs))  # extrinsic return, intrinsic return, length
        self.episodes: list[Episode] = []
        behaviour.start(self.timestep.is_first)

    def request(self) -> Request:
        """Returns what the next decision depends on."""
        t = self.timestep
        return Request(
            t.observation,
            self.prev_action,
            t.reward,
            self.prev_intrinsic,
            t.is_first,
            self.behaviour.condition(),
            self.state,
            self.feature_state,
        )

    def arrival(self) -> Arrival:
        """Returns what has just been arrived at."""
        return Arrival(self.timestep, self.env_ids, self.env.task_ids)

    def num_places(self) -> int | None:
        """How many places the world has; None where it does not know, −1 where it has none at all."""
        return num_places(self.env, self.timestep)

    def task_names(self) -> tuple[str, ...]:
        """Names the tasks of its environments."""
        return self.env.task_names

    def tasks_of(self, places: Array) -> Array:
        """Returns the task that each place lies in."""
        return split_places(self.env, places)[0]

    def worlds(self, places: Array) -> list[World]:
        """Returns what there is to know of every task's world, with charts of its places."""
        return describe_worlds(self.env, places)

    def portraits(self, looks: int, seed: int) -> Portraits | None:
        """Returns observations of every place, each `looks` times; None where the world cannot show them."""
        return portray(self.env, looks, seed)

    def for_evaluation(self, num_envs: int) -> Behaviour:
        """Returns how an evaluator is to play, by what is known now."""
        return self.behaviour.for_evaluation(num_envs)

    def close(self) -> None:
        """Closes its environments."""
        self.env.close()

    def step(self, reply: Reply, intrinsic: Array) -> tuple[Step, Any]:
        """Acts; returns the row of the trace that is now complete, and the state before it."""
        t, state_before = self.timestep, self.state
        action, extras = self.behaviour.act(reply.policy, self.rng)
        extras["prev_intrinsic"] = self.prev_intrinsic
        extras["task"] = self.env.task_ids
        if t.place is not None:
            extras["place"] = t.place  # ground truth, read by true counts only
        row = Step(
            t.observation,
            self.prev_action,
            t.reward,
            intrinsic,
            t.is_first,
            t.is_last,
            t.is_terminal,
            action,
            extras,
        )
        self.totals += np.stack([t.reward, intrinsic, np.ones_like(intrinsic)])
        self._end_episodes(t.is_last)

        self.timestep = self.env.step(action)
        self.state, self.feature_state = reply.state, reply.feature_state
        is_first = self.timestep.is_first
        self.prev_action = action.copy()
        self.prev_action[is_first] = 0
        self.prev_intrinsic = np.where(is_first, 0, intrinsic).astype(np.float32)
        self.behaviour.start(is_first)
        return row, state_before

    def take_episodes(self) -> list[Episode]:
        """Hands over the episodes that ended since the last call."""
        episodes, self.episodes = self.episodes, []
        return episodes

    def metrics(self, episodes: list[Episode]) -> dict[str, float]:
        """Returns what the behaviour says of the episodes that ended since the last time.

        Worlds that count frames of their own, as emulators do, report them too.
        """
        metrics = self.behaviour.metrics(np.array([episode.condition for episode in episodes], np.int64))
        num_frames = getattr(self.env, "num_frames", None)
        return metrics if num_frames is None else {**metrics, "charts/frames": num_frames}

    def _end_episodes(self, is_last: Array) -> None:
        condition = self.behaviour.condition()
        self.behaviour.end(is_last, self.totals[0])
        for i in np.flatnonzero(is_last).tolist():
            extrinsic, intrinsic, length = self.totals[:, i].tolist()
            task = int(self.env.task_ids[i])
            # The row of the first observation is not a step taken.
            self.episodes.append(Episode(extrinsic, intrinsic, int(length) - 1, task, int(condition[i])))
        self.totals[:, is_last] = 0.0

    def keeps_episodes(self) -> bool:
        """Whether the worlds can be saved within an episode; else a resumed run begins new ones."""
        return self._env_state() is not None

    def _env_state(self) -> State | None:
        try:
            return self.env.get_state()
        except NotImplementedError:
            return None

    def state_dict(self) -> State:
        return {
            "env": self._env_state(),
            "timestep": {name: part for name, part in self.timestep._asdict().items() if part is not None},
            "state": self.state,
            "feature_state": self.feature_state,
            "prev_action": self.prev_action.copy(),
            "prev_intrinsic": self.prev_intrinsic.copy(),
            "totals": self.totals.copy(),
            "behaviour": self.behaviour.state_dict(),
            "rng": rng_state(self.rng),
            "episodes": [list(episode) for episode in self.episodes],
        }

    def load_state_dict(self, state: State) -> None:
        self.behaviour.load_state_dict(state["behaviour"])
        load_rng(self.rng, state["rng"])
        self.episodes = [Episode(*episode) for episode in state["episodes"]]
        if state["env"] is None:
            self._start_anew()
            return
        self.env.set_state(state["env"])
        self.timestep = TimeStep(**map_arrays(np.array, state["timestep"]))
        self.state = _as_tuples(state["state"])
        self.feature_state = _as_tuples(state["feature_state"])
        for name in ("prev_action", "prev_intrinsic", "totals"):
            setattr(self, name, np.array(state[name]))

    def _start_anew(self) -> None:
        """Starts new episodes in worlds that were not seen before."""
        self.timestep = self.env.reset(int(self.rng.integers(2**31)))
        self.state, self.feature_state = self._at_start
        self.prev_action = np.zeros_like(self.prev_action)
        self.prev_intrinsic = np.zeros_like(self.prev_intrinsic)
        self.totals = np.zeros_like(self.totals)
        self.behaviour.start(self.timestep.is_first)


def num_places(env: VectorEnv, timestep: TimeStep) -> int | None:
    """How many places a world has; None where it does not know, −1 where it has none at all."""
    return -1 if timestep.place is None else env.num_places


def _as_tuples(tree: Any) -> Any:
    """Recurrent states are tuples; what was written to disk comes back as lists."""
    return tuple(_as_tuples(part) for part in tree) if isinstance(tree, list | tuple) else np.array(tree)
