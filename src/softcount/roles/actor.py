"""The actor: owns environments, recurrent states and bandits; turns replies into traces.

At every step it asks the inference worker for a policy and features of its observations,
gets the intrinsic reward of arriving there from the memory, and steps its environments.
What it asks at time t is o_t, a_{t−1}, r^e_t and r^i_{t−1}: the intrinsic reward comes one
step late, because embedding and policy leave the worker together. A mixture is chosen by
a bandit, one per environment, at each episode start and kept to its end [MEME].

Environments that cannot save their state start new episodes when an actor is restored.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from softcount.agents.meme.bandit import Bandit, Statistics, merge
from softcount.agents.meme.policies import act
from softcount.types import Array, Features, State, Step, TimeStep, VectorEnv, map_arrays


class Request(NamedTuple):
    """What an actor asks of the inference worker, for all its environments; leaves `[B, ...]`."""

    observation: Any
    prev_action: Array  # a_{t-1}, zeros on FIRST
    reward: Array  # r^e_t
    prev_intrinsic: Array  # r^i_{t-1}, 0 on FIRST
    is_first: Array
    mixture: Array  # which mixture acts
    state: Any  # recurrent state of the agent
    feature_state: Any  # recurrent state of the representation


class Reply(NamedTuple):
    """What the inference worker answers; leaves `[B, ...]`."""

    logits: Array  # distilled policy of each row's mixture, [B, A]
    features: Features
    state: Any
    feature_state: Any


class Episode(NamedTuple):
    """What is known of an episode once it has ended."""

    mixture: int
    extrinsic_return: float
    intrinsic_return: float
    length: int


class FixedMixture:
    """Stands where a bandit stands when the mixture is already chosen: for evaluation."""

    def __init__(self, mixture: int) -> None:
        self.mixture = mixture

    def choose(self) -> int:
        return self.mixture

    def update(self, arm: int, episode_return: float) -> None:
        """Learns nothing."""

    def statistics(self) -> Statistics:
        raise TypeError("a fixed mixture has no statistics")

    def state_dict(self) -> State:
        return {"mixture": self.mixture}

    def load_state_dict(self, state: State) -> None:
        self.mixture = int(state["mixture"])


class Actor:
    """Steps a set of environments; everything an episode needs to remember is here."""

    def __init__(
        self,
        env: VectorEnv,
        *,
        bandits: Sequence[Bandit | FixedMixture],
        epsilon: Array,
        state: Any,
        feature_state: Any,
        seed: int,
    ) -> None:
        self.env = env
        self.env_ids = np.arange(env.num_envs)
        self.epsilon = epsilon
        self.bandits = bandits
        self.rng = np.random.default_rng(seed)
        self.timestep: TimeStep = env.reset(seed)
        self.state, self.feature_state = state, feature_state
        self._at_start = state, feature_state
        self.prev_action = np.zeros(env.num_envs, np.int64)
        self.prev_intrinsic = np.zeros(env.num_envs, np.float32)
        self.mixture = np.zeros(env.num_envs, np.int64)
        self.totals = np.zeros((3, env.num_envs))  # extrinsic return, intrinsic return, length
        self.episodes: list[Episode] = []
        self._start_episodes()

    def request(self) -> Request:
        """Returns what the next decision depends on."""
        t = self.timestep
        return Request(
            t.observation,
            self.prev_action,
            t.reward,
            self.prev_intrinsic,
            t.is_first,
            self.mixture,
            self.state,
            self.feature_state,
        )

    def step(self, reply: Reply, intrinsic: Array) -> tuple[Step, Any]:
        """Acts; returns the row of the trace that is now complete, and the state before it."""
        t, state_before = self.timestep, self.state
        action, log_prob = act(reply.logits, self.mixture, self.epsilon, self.rng)
        extras: dict[str, Array] = {
            "mixture": self.mixture,
            "prev_intrinsic": self.prev_intrinsic,
            "log_prob": log_prob,
        }
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
        self.prev_action = np.where(self.timestep.is_first, 0, action)
        self.prev_intrinsic = np.where(self.timestep.is_first, 0, intrinsic).astype(np.float32)
        self._start_episodes()
        return row, state_before

    def take_episodes(self) -> list[Episode]:
        """Hands over the episodes that ended since the last call."""
        episodes, self.episodes = self.episodes, []
        return episodes

    def statistics(self) -> Statistics:
        """Returns what all bandits together know of the mixtures."""
        return merge(bandit.statistics() for bandit in self.bandits)

    def _start_episodes(self) -> None:
        self.mixture = self.mixture.copy()  # requests and rows keep the one they were given
        for i in np.flatnonzero(self.timestep.is_first).tolist():
            self.mixture[i] = self.bandits[i].choose()

    def _end_episodes(self, is_last: Array) -> None:
        for i in np.flatnonzero(is_last).tolist():
            extrinsic, intrinsic, length = self.totals[:, i]
            mixture = int(self.mixture[i])
            self.bandits[i].update(mixture, extrinsic)
            # The row of the first observation is not a step taken.
            self.episodes.append(Episode(mixture, float(extrinsic), float(intrinsic), int(length) - 1))
        self.totals[:, is_last] = 0.0

    def state_dict(self) -> State:
        try:
            env = self.env.get_state()
        except NotImplementedError:
            env = None
        return {
            "env": env,
            "timestep": {name: part for name, part in self.timestep._asdict().items() if part is not None},
            "state": self.state,
            "feature_state": self.feature_state,
            "prev_action": self.prev_action.copy(),
            "prev_intrinsic": self.prev_intrinsic.copy(),
            "mixture": self.mixture.copy(),
            "totals": self.totals.copy(),
            "bandits": [bandit.state_dict() for bandit in self.bandits],
            "rng": json.dumps(self.rng.bit_generator.state),
            "episodes": [list(episode) for episode in self.episodes],
        }

    def load_state_dict(self, state: State) -> None:
        if len(state["bandits"]) != len(self.bandits):
            raise ValueError(
                f"the state is of {len(state['bandits'])} environments; this actor has {len(self.bandits)}"
            )
        for bandit, part in zip(self.bandits, state["bandits"], strict=True):
            bandit.load_state_dict(part)
        self.rng.bit_generator.state = json.loads(state["rng"])
        self.episodes = [Episode(*episode) for episode in state["episodes"]]
        if state["env"] is None:
            self._start_anew()
            return
        self.env.set_state(state["env"])
        self.timestep = TimeStep(**map_arrays(np.array, state["timestep"]))
        self.state = _as_tuples(state["state"])
        self.feature_state = _as_tuples(state["feature_state"])
        for name in ("prev_action", "prev_intrinsic", "mixture", "totals"):
            setattr(self, name, np.array(state[name]))

    def _start_anew(self) -> None:
        """Starts new episodes in worlds that were not seen before."""
        self.timestep = self.env.reset(int(self.rng.integers(2**31)))
        self.state, self.feature_state = self._at_start
        self.prev_action = np.zeros_like(self.prev_action)
        self.prev_intrinsic = np.zeros_like(self.prev_intrinsic)
        self.totals = np.zeros_like(self.totals)
        self._start_episodes()


def _as_tuples(tree: Any) -> Any:
    """Recurrent states are tuples; what was written to disk comes back as lists."""
    return tuple(_as_tuples(part) for part in tree) if isinstance(tree, list | tuple) else np.array(tree)
