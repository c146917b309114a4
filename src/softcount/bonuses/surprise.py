"""Surprise as a bonus: the representation's prediction error is the reward.

    [RND]            r = err / σ(R)                 R the discounted sum of err, per environment
    RNDonAP          r = err / σ(err)               (the paper's App. on RND, Decision 56)
    [BYOL-Explore]   r = max(l/σ(l) − μ, 0)         l from a sequence, so made in learning

The errors come with the features; this file only scales them. `paid_in` says who
must call `observe`: the actor with each observation, or the learner with each batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from softcount.bonuses.checks import check_batch, take_surprise
from softcount.bonuses.normalise import NormaliserConfig, make_normaliser
from softcount.bonuses.plain import PlainBonus
from softcount.types import Array, Features, State
from softcount.validation import check_fields


@dataclass(frozen=True, kw_only=True)
class SurpriseConfig:
    """How errors become rewards; the defaults are RND's."""

    normaliser: NormaliserConfig = field(default_factory=lambda: NormaliserConfig(kind="return_std"))
    """What errors are divided by."""
    paid_in: Literal["acting", "learning"] = "acting"
    """Who sees the error: the actor (RND) or the learner (BYOL-Explore)."""

    def __post_init__(self) -> None:
        check_fields(self)


RND = SurpriseConfig()
RND_ON_AP = SurpriseConfig(normaliser=NormaliserConfig(kind="reward_std"))
BYOL_EXPLORE = SurpriseConfig(normaliser=NormaliserConfig(kind="prioritised", step=0.01), paid_in="learning")


class Surprise(PlainBonus):
    """Pays prediction errors, scaled.

    >>> bonus = Surprise(SurpriseConfig(normaliser=NormaliserConfig(kind="none")))
    >>> features = Features(surprise=np.float32([0.5, 2.0]))
    >>> bonus.observe(features, np.arange(2), np.array([True, False])).tolist()
    [0.0, 2.0]
    """

    def __init__(self, config: SurpriseConfig | None = None) -> None:
        self.config = config or SurpriseConfig()
        self.paid_in: Literal["acting", "learning"] = self.config.paid_in
        self.normaliser = make_normaliser(self.config.normaliser)
        self._metrics: dict[str, float] = {}

    def can_read(self, features: Features) -> bool:
        return features.surprise is not None

    def observe(
        self, features: Features, env_ids: Array, is_first: Array, task_ids: Array | None = None
    ) -> Array:
        """Scales the surprise of each row; FIRST rows are paid 0 and stay out of the statistics."""
        surprise = take_surprise(features, "Surprise")
        batch = check_batch(len(surprise), env_ids, is_first)
        paid = np.zeros(len(surprise), np.float32)
        is_paid = ~batch.is_first
        paid[is_paid] = self.normaliser.normalise(surprise[is_paid], batch.env_ids[is_paid])
        self._metrics = {"reward": float(paid.mean()), "raw_reward": float(surprise.mean())}
        return paid

    def score(self, features: Features, env_ids: Array | None = None, task_ids: Array | None = None) -> Array:
        """Returns what each row would be paid now; nothing changes."""
        return self.normaliser.apply(take_surprise(features, "Surprise")).astype(np.float32)

    def metrics(self) -> dict[str, float]:
        return {**self._metrics, "reward_scale": self.normaliser.scale}

    def state_dict(self) -> State:
        return {"normaliser": self.normaliser.state_dict(), "metrics": dict(self._metrics)}

    def load_state_dict(self, state: State) -> None:
        self.normaliser.load_state_dict(state["normaliser"])
        self._metrics = dict(state.get("metrics", {}))
