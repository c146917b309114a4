"""RLlib with a bonus: a learner connector, and a memory that all learners can share.

    config.learners(learner_connector=lambda o, a: [IntrinsicConnector(o, a, name="RECODE-AP", num_envs=8)])

The connector pays each episode before advantages are computed, so that the loss sees the bonus. It works
on copies: what environment runners report stays the game's own return. For on-policy algorithms (PPO,
APPO, IMPALA); replayed batches would be paid again. With `memory="some name"` the bonus lives in a Ray
actor of this name, which several learners share. `IntrinsicRewardWrapper` serves the other algorithms, as
a vector environment (docs/drop_in/rllib.md).
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

import numpy as np

from softcount.hints import install

try:
    import ray
    from ray.rllib.connectors.connector_v2 import ConnectorV2
except ImportError as error:
    raise ImportError(f"this needs RLlib: {install('rllib')}, in an environment of its own") from error

from softcount.integrations.reward import IntrinsicReward
from softcount.integrations.schedules import Fading
from softcount.types import Array, map_arrays


class Chunk(NamedTuple):
    """A piece of one episode: T steps, T + 1 observations."""

    episode: str
    observations: list[Any]
    actions: list[Any]
    is_terminated: bool  # whether the episode ends for good with the last step


class EpisodeMemory:
    """A bonus that is shown pieces of episodes, in any order of episodes.

    Each running episode has a stream of its own among `num_envs`; the one that was silent longest makes
    room for a new one.
    """

    def __init__(self, name: str, observation_space: Any, action_space: Any, num_envs: int, **options: Any):
        if isinstance(options.get("weight"), Fading):
            raise ValueError("the rewards of episodes are not counted here; expected a weight by steps")
        self.bonus = IntrinsicReward(
            name, observation_space, action_space, num_envs=num_envs, autoreset_mode="same_step", **options
        )
        self._streams: dict[str, int] = {}  # by episode, longest silent first

    def pay(self, chunks: list[Chunk]) -> list[Array]:
        """Returns the bonus of each step of each piece; pieces of one episode come in its order."""
        paid = [np.zeros(len(chunk.actions), np.float32) for chunk in chunks]
        waiting = list(range(len(chunks)))
        while waiting:  # at once: as many different episodes as there are streams
            group: list[int] = []
            names: set[str] = set()
            for i in waiting:
                if len(names) < self.bonus.num_envs and chunks[i].episode not in names:
                    group.append(i)
                    names.add(chunks[i].episode)
            self._pay_side_by_side([chunks[i] for i in group], [paid[i] for i in group])
            waiting = [i for i in waiting if i not in group]
        return paid

    def _pay_side_by_side(self, chunks: list[Chunk], paid: list[Array]) -> None:
        streams = np.array([self._stream(chunk) for chunk in chunks])
        lengths = np.array([len(chunk.actions) for chunk in chunks])
        self.bonus.resume(_stack([chunk.observations[0] for chunk in chunks]), streams)  # pieces may be lost
        for t in range(int(lengths.max(initial=0))):
            rows = np.flatnonzero(lengths > t)
            here = [chunks[row] for row in rows]
            is_over = np.array([chunk.is_terminated and t + 1 == len(chunk.actions) for chunk in here])
            rewards = self.bonus.step(
                _stack([chunk.observations[t] for chunk in here]),
                np.stack([chunk.actions[t] for chunk in here]),
                _stack([chunk.observations[t + 1] for chunk in here]),
                is_over,
                np.zeros(len(here), bool),
                env_ids=streams[rows],
            )
            for row, reward in zip(rows, rewards, strict=True):
                paid[row][t] = reward

    def _stream(self, chunk: Chunk) -> int:
        """The stream of an episode; a new episode begins one."""
        stream = self._streams.pop(chunk.episode, None)
        if stream is None:
            taken = set(self._streams.values())
            free = next((i for i in range(self.bonus.num_envs) if i not in taken), None)
            stream = self._streams.pop(next(iter(self._streams))) if free is None else free
            self.bonus.reset(np.arange(self.bonus.num_envs) == stream)
        self._streams[chunk.episode] = stream
        return stream

    def metrics(self) -> dict[str, float]:
        return self.bonus.metrics()

    def save(self, path: str) -> None:
        """Writes the bonus's whole state."""
        self.bonus.save(path)

    def load(self, path: str) -> None:
        """Continues a saved bonus; running episodes begin anew."""
        self.bonus.load(path)
        self.bonus.reset()
        self._streams = {}


class IntrinsicConnector(ConnectorV2):  # type: ignore[misc]
    """Adds the bonus to the rewards of the episodes that a learner is given."""

    def __init__(
        self,
        input_observation_space: Any = None,
        input_action_space: Any = None,
        *,
        name: str,
        num_envs: int,
        memory: str | None = None,
        **options: Any,
    ) -> None:
        super().__init__(input_observation_space, input_action_space)
        self._arguments = {"name": name, "num_envs": num_envs, **options}
        self._actor_name = memory
        self._memory: Any = None
        if input_observation_space is not None:
            self._build(input_observation_space, input_action_space)

    def _build(self, observation_space: Any, action_space: Any) -> None:
        spaces = {"observation_space": observation_space, "action_space": action_space}
        if self._actor_name is None:
            self._memory = EpisodeMemory(**self._arguments, **spaces)
            return
        actor: Any = ray.remote(EpisodeMemory)
        self._memory = actor.options(name=self._actor_name, get_if_exists=True, lifetime="detached").remote(
            **self._arguments, **spaces
        )

    def __call__(self, *, rl_module: Any = None, episodes: list[Any], batch: Any, **kwargs: Any) -> Any:
        """Replaces each episode by a copy whose rewards hold the bonus."""
        if self._memory is None:  # RLlib does not always say the spaces before
            module = next(iter(rl_module.values())) if hasattr(rl_module, "values") else rl_module
            self._build(module.observation_space, module.action_space)
        for i, episode in enumerate(episodes):
            episodes[i] = copy.deepcopy(episode)
        own = list(self.single_agent_episode_iterator(episodes, agents_that_stepped_only=False))
        chunks = [_chunk(episode) for episode in own]
        for episode, rewards in zip(own, self._ask("pay", chunks), strict=True):
            for t, reward in enumerate(rewards):
                total = float(episode.get_rewards(t)) + float(reward)
                episode.set_rewards(new_data=total, at_indices=t)
        return batch

    def metrics(self) -> dict[str, float]:
        """What the bonus says of itself."""
        metrics: dict[str, float] = self._ask("metrics")
        return metrics

    def _ask(self, method: str, *arguments: Any) -> Any:
        call = getattr(self._memory, method)
        return ray.get(call.remote(*arguments)) if self._actor_name else call(*arguments)


def _chunk(episode: Any) -> Chunk:
    """A piece of an episode without the step that RLlib adds to the end of each for bootstrapping."""
    num = len(episode) - 1
    observations = [episode.get_observations(t) for t in range(num + 1)]
    actions = [episode.get_actions(t) for t in range(num)]
    return Chunk(episode.id_.split("_")[0], observations, actions, bool(episode.is_terminated))


def _stack(observations: list[Any]) -> Any:
    return map_arrays(lambda *rows: np.stack(rows), *observations)
