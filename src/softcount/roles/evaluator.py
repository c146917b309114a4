"""The evaluator: plays episodes with little noise and changes nothing it plays with.

It plays the mixture whose mean return is best over all bandits, with ε = 0.01, one
episode in each of its environments, so that short episodes count no more than long
ones. The network sees the same inputs as in acting; intrinsic rewards come from a
scorer that leaves the shared memory as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from softcount.roles.actor import Actor, Episode, FixedMixture
from softcount.roles.inference import Inference
from softcount.types import Array, Features, VectorEnv, map_arrays


@dataclass(frozen=True)
class Evaluation:
    """One episode of every environment, and what the first of them saw."""

    episodes: list[Episode]
    frames: list[Any]
    places: set[int]

    @property
    def mean_return(self) -> float:
        return float(np.mean([episode.extrinsic_return for episode in self.episodes]))

    @property
    def success_rate(self) -> float:
        """Share of episodes with a positive extrinsic return."""
        return float(np.mean([episode.extrinsic_return > 0 for episode in self.episodes]))


class Evaluator:
    """Plays one episode in each of its environments."""

    def __init__(self, env: VectorEnv, inference: Inference, *, epsilon: float = 0.01) -> None:
        self.env, self.inference, self.epsilon = env, inference, epsilon

    def __call__(
        self,
        mixture: int,
        score: Callable[[Features, Array, Array, Array | None], Array],
        *,
        seed: int,
        keep_frames: bool = False,
    ) -> Evaluation:
        num_envs = self.env.num_envs
        actor = Actor(
            self.env,
            bandits=[FixedMixture(mixture)] * num_envs,
            epsilon=np.full(num_envs, self.epsilon),
            state=self.inference.initial_state(num_envs),
            feature_state=self.inference.initial_feature_state(num_envs),
            seed=seed,
        )
        is_over = np.zeros(num_envs, bool)
        evaluation = Evaluation([], [], set())
        while not is_over.all():
            timestep = actor.timestep
            if keep_frames and not is_over[0]:
                evaluation.frames.append(map_arrays(lambda x: x[0].copy(), timestep.observation))
            if timestep.place is not None:
                evaluation.places.update(timestep.place[~is_over & (timestep.place >= 0)].tolist())
            reply = self.inference(actor.request())
            rewards = score(reply.features, actor.env_ids, timestep.is_first, timestep.place)
            ended = np.flatnonzero(timestep.is_last)
            actor.step(reply, rewards)
            for env_id, episode in zip(ended, actor.take_episodes(), strict=True):
                if not is_over[env_id]:
                    evaluation.episodes.append(episode)
                    is_over[env_id] = True
        return evaluation
