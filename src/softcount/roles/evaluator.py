"""The evaluator: plays episodes with little noise and changes nothing it plays with.

It plays as the actors' behaviour says an evaluator should, one episode in each of its
environments, so that short episodes count no more than long ones. The network sees the
same inputs as in acting; what the memory would pay, it says without learning from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from softcount.agents.protocols import Behaviour
from softcount.roles.actor import Actor, Episode
from softcount.roles.inference import Inference
from softcount.roles.memory_server import MemoryServer
from softcount.types import VectorEnv, map_arrays


@dataclass(frozen=True)
class Evaluation:
    """One episode of every environment, and what the first of them saw."""

    episodes: list[Episode]
    frames: list[Any]
    intrinsics: list[float]  # what arriving at each frame would have been paid
    places: set[int]

    @property
    def mean_return(self) -> float:
        return float(np.mean([episode.extrinsic_return for episode in self.episodes]))

    @property
    def success_rate(self) -> float:
        """Share of episodes with a positive extrinsic return."""
        return float(np.mean([episode.extrinsic_return > 0 for episode in self.episodes]))

    def of_task(self, task: int) -> Evaluation:
        """Returns the part of one task."""
        episodes = [episode for episode in self.episodes if episode.task == task]
        return Evaluation(episodes, self.frames, self.intrinsics, self.places)


class Player(Protocol):
    """Who knows how to play without exploring."""

    def for_evaluation(self, num_envs: int) -> Behaviour: ...


class Evaluator:
    """Plays one episode in each of its environments."""

    def __init__(self, env: VectorEnv, inference: Inference) -> None:
        self.env, self.inference = env, inference

    def close(self) -> None:
        """Closes its environments."""
        self.env.close()

    def __call__(
        self, whom: Player, memory: MemoryServer, *, seed: int, keep_frames: bool = False
    ) -> Evaluation:
        """Plays as `whom` would be evaluated: an actor, or a behaviour of its own."""
        num_envs = self.env.num_envs
        actor = Actor(
            self.env,
            whom.for_evaluation(num_envs),
            state=self.inference.initial_state(num_envs),
            feature_state=self.inference.initial_feature_state(num_envs),
            seed=seed,
        )
        memory.begin_evaluation()
        is_over = np.zeros(num_envs, bool)
        evaluation = Evaluation([], [], [], set())
        while not is_over.all():
            timestep = actor.timestep
            if timestep.place is not None:
                evaluation.places.update(timestep.place[~is_over & (timestep.place >= 0)].tolist())
            reply = self.inference.evaluate(actor.request())
            features = reply.features._replace(place=timestep.place)
            rewards = memory.evaluate(features, actor.env_ids, timestep.is_first, self.env.task_ids)
            if not is_over[0]:
                evaluation.intrinsics.append(float(rewards[0]))
                if keep_frames:
                    evaluation.frames.append(map_arrays(lambda x: x[0].copy(), timestep.observation))
            ended = np.flatnonzero(timestep.is_last)
            actor.step(reply, rewards)
            for env_id, episode in zip(ended, actor.take_episodes(), strict=True):
                if not is_over[env_id]:
                    evaluation.episodes.append(episode)
                    is_over[env_id] = True
        return evaluation
