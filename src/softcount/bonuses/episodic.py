"""The episodic half of NGU as a bonus: EMM in the paper's taxonomy.

    r = 1 / (√Σ_k K(e, e_k) + c),   over the k nearest embeddings of this episode

Each environment has a memory of its own that its next FIRST observation empties; that
observation is then the first one remembered, and paid 0. As in [NGU] the reward is not
divided by anything (Decision 57).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from softcount.bonuses.checks import check_batch, take_embedding
from softcount.bonuses.normalise import NormaliserConfig, make_normaliser
from softcount.bonuses.plain import PlainBonus
from softcount.memory.episodic import EpisodicConfig, EpisodicMemory
from softcount.types import Array, Features, State


@dataclass(frozen=True, kw_only=True)
class EpisodicBonusConfig:
    """Memory and normalisation of EMM; the defaults are NGU's."""

    memory: EpisodicConfig = field(default_factory=EpisodicConfig)
    """The episodic memory's constants."""
    normaliser: NormaliserConfig = field(default_factory=lambda: NormaliserConfig(kind="none"))
    """What its rewards are divided by."""


class Episodic(PlainBonus):
    """Pays embeddings unlike those of the same episode.

    >>> config = EpisodicBonusConfig(memory=EpisodicConfig(dim=2, neighbours=1))
    >>> bonus = Episodic(config, num_envs=1)
    >>> here, there = Features(embedding=np.float32([[0, 0]])), Features(embedding=np.float32([[1, 0]]))
    >>> row = np.array([0])
    >>> [round(bonus.observe(f, row, np.array([first])).item(), 2)
    ...  for f, first in ((here, True), (there, False), (here, False), (there, True))]
    [0.0, 90.58, 1.0, 0.0]
    """

    lasts: Literal["life", "episode"] = "episode"

    def __init__(self, config: EpisodicBonusConfig | None = None, *, num_envs: int = 1) -> None:
        self.config = config or EpisodicBonusConfig()
        self.memory = EpisodicMemory(self.config.memory, num_envs)
        self.normaliser = make_normaliser(self.config.normaliser)
        self._metrics: dict[str, float] = {}

    def can_read(self, features: Features) -> bool:
        return features.embedding is not None

    def observe(
        self, features: Features, env_ids: Array, is_first: Array, task_ids: Array | None = None
    ) -> Array:
        """Compares each row with its episode so far, then remembers it; FIRST rows are paid 0."""
        embedding = take_embedding(features, "Episodic")
        batch = check_batch(len(embedding), env_ids, is_first)
        raw = self.memory.observe(embedding, batch.env_ids, batch.is_first)
        is_paid = ~batch.is_first
        paid = np.zeros(len(raw), np.float32)
        paid[is_paid] = self.normaliser.normalise(raw[is_paid], batch.env_ids[is_paid])
        self._metrics = {"reward": float(paid.mean()), "raw_reward": float(raw.mean())}
        return paid

    def score(self, features: Features, env_ids: Array | None = None, task_ids: Array | None = None) -> Array:
        """Returns what each row would be paid now in the episodes of `env_ids`; nothing changes."""
        embedding = take_embedding(features, "Episodic")
        ids = np.arange(len(embedding)) if env_ids is None else np.asarray(env_ids)
        return self.normaliser.apply(self.memory.score(embedding, ids)).astype(np.float32)

    def metrics(self) -> dict[str, float]:
        return {**self._metrics, "reward_scale": self.normaliser.scale}

    def state_dict(self) -> State:
        return {
            "memory": self.memory.state_dict(),
            "normaliser": self.normaliser.state_dict(),
            "metrics": dict(self._metrics),
        }

    def load_state_dict(self, state: State) -> None:
        self.memory.load_state_dict(state["memory"])
        self.normaliser.load_state_dict(state["normaliser"])
        self._metrics = dict(state.get("metrics", {}))
