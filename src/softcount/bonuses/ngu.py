"""Never Give Up's bonus: novel in the episode, times surprising in the whole life [NGU].

    r = r_episodic · clip(α, 1, L),   α = 1 + (err − μ_err) / σ_err

err is the RND error of the observation, μ and σ the mean and standard deviation of all
errors so far, the present one included. α never lowers the episodic reward and raises it
at most L-fold. It is not err/σ, which is positive and mostly below 1 and so a constant
after clipping: see `docs/drop_in/open_ngus.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from softcount.bonuses.checks import check_batch, take_embedding, take_surprise
from softcount.bonuses.plain import PlainBonus
from softcount.memory.episodic import EpisodicConfig, EpisodicMemory
from softcount.types import Array, Features, State
from softcount.validation import at_least, check_fields


@dataclass(frozen=True, kw_only=True)
class NguConfig:
    """The episodic memory and the limit of the modulator; the defaults are NGU's."""

    memory: EpisodicConfig = field(default_factory=EpisodicConfig)
    """The episodic memory's constants."""
    largest_factor: float = 5.0
    """L, the most that surprise multiplies the episodic reward with."""

    def __post_init__(self) -> None:
        check_fields(self, largest_factor=at_least(1))


class Ngu(PlainBonus):
    """Pays what is new in the episode, more so where it surprises.

    >>> bonus = Ngu(NguConfig(memory=EpisodicConfig(dim=1, neighbours=1)), num_envs=1)
    >>> def see(x, err, first):
    ...     features = Features(embedding=np.float32([[x]]), surprise=np.float32([err]))
    ...     return round(bonus.observe(features, np.array([0]), np.array([first])).item(), 2)
    >>> see(0, 1.0, True), see(0, 1.0, False), see(0, 1.0, False), see(0, 3.0, False)
    (0.0, 1.0, 1.0, 2.41)
    """

    lasts: Literal["life", "episode"] = "episode"

    def __init__(self, config: NguConfig | None = None, *, num_envs: int = 1) -> None:
        self.config = config or NguConfig()
        self.memory = EpisodicMemory(self.config.memory, num_envs)
        self.num_errors = 0
        self.error_mean = 0.0
        self.error_squares = 0.0  # Σ (err − mean)²
        self._metrics: dict[str, float] = {}

    def can_read(self, features: Features) -> bool:
        return features.embedding is not None and features.surprise is not None

    def observe(
        self, features: Features, env_ids: Array, is_first: Array, task_ids: Array | None = None
    ) -> Array:
        """Multiplies both novelties of each row, in sequence; FIRST rows are remembered and paid 0."""
        embedding, surprise = take_embedding(features, "Ngu"), take_surprise(features, "Ngu")
        batch = check_batch(len(embedding), env_ids, is_first)
        if len(surprise) != len(embedding):
            raise ValueError(f"features hold {len(embedding)} embeddings and {len(surprise)} surprises")
        raw = self.memory.observe(embedding, batch.env_ids, batch.is_first)
        factors = np.ones(len(raw))
        for row in np.flatnonzero(~batch.is_first):
            self._add_error(float(surprise[row]))
            factors[row] = self._factor(surprise[row : row + 1])[0]
        paid = np.where(batch.is_first, 0.0, raw * factors).astype(np.float32)
        self._metrics = {
            "reward": float(paid.mean()),
            "episodic_reward": float(raw.mean()),
            "factor": float(factors.mean()),
            "error": float(surprise.mean()),
        }
        return paid

    def score(self, features: Features, env_ids: Array | None = None, task_ids: Array | None = None) -> Array:
        """Returns what each row would be paid now in the episodes of `env_ids`; nothing changes."""
        embedding, surprise = take_embedding(features, "Ngu"), take_surprise(features, "Ngu")
        ids = np.arange(len(embedding)) if env_ids is None else np.asarray(env_ids)
        raw: Array = self.memory.score(embedding, ids)
        return (raw * self._factor(surprise)).astype(np.float32)

    def _add_error(self, error: float) -> None:
        self.num_errors += 1
        delta = error - self.error_mean  # Welford
        self.error_mean += delta / self.num_errors
        self.error_squares += delta * (error - self.error_mean)

    def _factor(self, errors: Array) -> Array:
        """Returns clip(α, 1, L) under the statistics as they are; 1 while all errors were equal."""
        std = math.sqrt(self.error_squares / self.num_errors) if self.num_errors > 0 else 0.0
        if std == 0.0:
            return np.ones(len(errors))
        return np.clip(1.0 + (errors - self.error_mean) / std, 1.0, self.config.largest_factor)

    def metrics(self) -> dict[str, float]:
        return {**self._metrics, "error_mean": self.error_mean}

    def state_dict(self) -> State:
        return {
            "memory": self.memory.state_dict(),
            "num_errors": self.num_errors,
            "error_mean": self.error_mean,
            "error_squares": self.error_squares,
            "metrics": dict(self._metrics),
        }

    def load_state_dict(self, state: State) -> None:
        self.memory.load_state_dict(state["memory"])
        self.num_errors = int(state["num_errors"])
        self.error_mean, self.error_squares = float(state["error_mean"]), float(state["error_squares"])
        self._metrics = dict(state.get("metrics", {}))
