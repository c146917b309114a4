"""The roles of a free run as those see them who report, judge and draw: methods that ask other processes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softcount.agents.protocols import Behaviour
from softcount.envs.worlds import Portraits, World
from softcount.launch.build import AGENTS, parse_agent, seeds_of
from softcount.launch.ray.shares import join
from softcount.roles.actor import Episode
from softcount.types import Array, Features, Observation

if TYPE_CHECKING:
    from softcount.launch.ray.free import FreeLoop


class FarRoles:
    """One of each; those that are many speak with one voice."""

    def __init__(self, loop: FreeLoop) -> None:
        self.actor, self.inference, self.replay = FarActors(loop), FarInference(loop), FarSource(loop)
        self.memory: Any = loop.memory


class FarActors:
    """All actors."""

    def __init__(self, loop: FreeLoop) -> None:
        self._loop = loop

    def task_names(self) -> tuple[str, ...]:
        return self._loop.setup.specs.task_names

    def num_places(self) -> int | None:
        return self._loop.num_places

    def keeps_episodes(self) -> bool:
        return bool(self._first("keeps_episodes"))

    def take_episodes(self) -> list[Episode]:
        return [e for host in self._loop.actors for e in self._loop.ask(host.take_episodes.remote)]

    def tasks_of(self, places: Array) -> Array:
        return self._first("tasks_of", places)  # type: ignore[no-any-return]

    def worlds(self, places: Array) -> list[World]:
        return self._first("worlds", places)  # type: ignore[no-any-return]

    def portraits(self, looks: int, seed: int) -> Portraits | None:
        return self._first("portraits", looks, seed)  # type: ignore[no-any-return]

    def _first(self, method: str, *asked: Any) -> Any:
        """All know the same of the world."""
        return self._loop.ask(lambda: getattr(self._loop.actors[0], method).remote(*asked))

    def behaviour(self) -> Behaviour:
        """What all actors know of episodes, as one behaviour."""
        loop = self._loop
        states = [{"behaviour": loop.ask(host.behaviour_state.remote)} for host in loop.actors]
        config = loop.config
        make = AGENTS[str(parse_agent(config.agent).agent)].behaviour
        behaviour = make(config, loop.setup.specs, seeds_of(config.seed), np.arange(config.num_envs))
        behaviour.load_state_dict(join(states, loop.shares)["behaviour"])
        return behaviour

    def for_evaluation(self, num_envs: int) -> Behaviour:
        return self.behaviour().for_evaluation(num_envs)

    def metrics(self, episodes: list[Episode]) -> dict[str, float]:
        conditions = np.array([episode.condition for episode in episodes], np.int64)
        metrics = self.behaviour().metrics(conditions)
        frames = [self._loop.ask(host.num_frames.remote) for host in self._loop.actors]
        return metrics if None in frames else {**metrics, "charts/frames": sum(frames)}


class FarInference:
    """One of the inference workers; all have the same parameters."""

    def __init__(self, loop: FreeLoop) -> None:
        self._loop = loop

    def embed(self, observation: Observation) -> Features:
        return self._loop.ask(lambda: self._loop.inference[0].embed.remote(observation))  # type: ignore[no-any-return]


class FarSource:
    """The replay, as of the last `look`."""

    def __init__(self, loop: FreeLoop) -> None:
        self._loop = loop

    def metrics(self) -> dict[str, float]:
        return self._loop.replay_metrics
