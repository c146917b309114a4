"""RECODE as a bonus: Algorithm 1's reward, normalised (§3, "Approximating visitation counts").

    paid = r / σ(r),   r = 1 / (√N(e) + n₀) from the memory

While the memory warms up it pays 0, and those raw rewards stay out of the statistics:
an empty memory's 1/n₀ = 100s would rule the scale for as long as it remembers
(Decision 53). A FIRST observation is absorbed, paid 0 and left out likewise: no action
led to it. One memory serves all environments and all tasks (Decision 55).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from softcount.bonuses.checks import check_batch, take_embedding
from softcount.bonuses.normalise import NormaliserConfig, make_normaliser
from softcount.bonuses.plain import PlainBonus
from softcount.memory import Observed, RecodeConfig, RecodeMemory
from softcount.memory.memory import EngineName
from softcount.types import Array, Features, State
from softcount.validation import at_least, check_fields


@dataclass(frozen=True, kw_only=True)
class RecodeBonusConfig:
    """Memory and normalisation of RECODE; the defaults are the paper's Atari table."""

    memory: RecodeConfig = field(default_factory=RecodeConfig)
    """Algorithm 1's constants."""
    normaliser: NormaliserConfig = field(default_factory=NormaliserConfig)
    """What its rewards are divided by."""
    reembed_every: int = 0
    """Every so many updates, put each atom where the observation that founded it is embedded now.
    Costs |M| observations, also in each checkpoint; 0 never does, as in the paper. Decision 146."""

    def __post_init__(self) -> None:
        check_fields(self, reembed_every=at_least(0))


class Recode(PlainBonus):
    """Pays little-visited embeddings: RECODE's memory with its normaliser.

    >>> config = RecodeBonusConfig(memory=RecodeConfig(size=50, dim=2, warmup_atoms=2),
    ...                            normaliser=NormaliserConfig(kind="none"))
    >>> bonus = Recode(config, seed=0, engine="numpy")
    >>> features = Features(embedding=np.float32([[0, 0], [0, 0], [0, 0], [9, 9]]))
    >>> bonus.observe(features, np.arange(4), np.zeros(4, bool)).round(2).tolist()
    [0.0, 0.0, 0.5, 100.0]
    """

    def __init__(
        self,
        config: RecodeBonusConfig | None = None,
        *,
        seed: int = 0,
        engine: EngineName = "auto",
        num_threads: int = 1,
    ) -> None:
        self.config = config or RecodeBonusConfig()
        self._engine: tuple[EngineName, int] = engine, num_threads
        self.memory = RecodeMemory(self.config.memory, seed=seed, engine=engine, num_threads=num_threads)
        self.normaliser = make_normaliser(self.config.normaliser)
        self.observed: Observed | None = None  # what the memory did with the last batch
        self._described: dict[str, float] | None = {}  # None until somebody asks what the last batch was like
        self._last: tuple[Array, Array, Observed] | None = None

    @property
    def is_paying(self) -> bool:
        """Whether the memory has left its warm-up."""
        return len(self.memory) >= self.config.memory.num_warmup

    def can_read(self, features: Features) -> bool:
        return features.embedding is not None

    def observe(
        self, features: Features, env_ids: Array, is_first: Array, task_ids: Array | None = None
    ) -> Array:
        """Scores and learns every row in sequence; pays what counts."""
        embedding = take_embedding(features, "Recode")
        batch = check_batch(len(embedding), env_ids, is_first)
        num_before = len(self.memory)
        raw, observed = self.memory.observe(embedding, details=True)
        # In warm-up every row becomes an atom, so the number of atoms each row met is known.
        is_warm = num_before + np.arange(len(raw)) >= self.config.memory.num_warmup
        is_paid = is_warm & ~batch.is_first
        paid = np.zeros(len(raw), np.float32)
        paid[is_paid] = self.normaliser.normalise(raw[is_paid], batch.env_ids[is_paid])
        self.observed, self._described, self._last = observed, None, (paid.copy(), raw, observed)
        return paid

    def score(self, features: Features, env_ids: Array | None = None, task_ids: Array | None = None) -> Array:
        """Returns what each row would be paid now; nothing changes."""
        embedding = take_embedding(features, "Recode")
        if not self.is_paying:
            return np.zeros(len(embedding), np.float32)
        return self.normaliser.apply(self.memory.score(embedding)).astype(np.float32)

    def metrics(self) -> dict[str, float]:
        return {
            **self._of_last(),
            "reward_scale": self.normaliser.scale,
            "atoms": float(len(self.memory)),
            "d2_ema": self.memory.d2_ema,
            "observed": float(self.memory.num_observed),
        }

    def twin(self) -> Recode:
        engine, num_threads = self._engine
        other = Recode(self.config, engine=engine, num_threads=num_threads)
        other.load_state_dict(self.state_dict())
        return other

    def memories(self) -> dict[str, RecodeMemory]:
        return {"": self.memory}

    def describe(self) -> dict[str, float]:
        return {
            "occupied": len(self.memory) / self.memory.config.size,
            "insertions": self._of_last().get("inserted_fraction", 0.0),
            "d_ema": float(np.sqrt(self.memory.d2_ema)),
            "age_p50": float(np.median(self.memory.ages)) if len(self.memory) else 0.0,
        }

    def state_dict(self) -> State:
        return {
            "memory": self.memory.state_dict(),
            "normaliser": self.normaliser.state_dict(),
            "metrics": dict(self._of_last()),
        }

    def load_state_dict(self, state: State) -> None:
        self.memory.load_state_dict(state["memory"])
        self.normaliser.load_state_dict(state["normaliser"])
        self._described = dict(state.get("metrics", {}))

    def _of_last(self) -> dict[str, float]:
        """What the last batch was like; asked at reports, so that no step pays for it."""
        if self._described is None:
            assert self._last is not None
            self._described = _describe(*self._last)
        return self._described


def _describe(paid: Array, raw: Array, observed: Observed) -> dict[str, float]:
    """What the last batch looked like."""
    return {
        "reward": float(paid.mean()),
        "raw_reward": float(raw.mean()),
        "soft_count": float(observed.soft_count.mean()),
        "far_fraction": float(observed.is_far.mean()),
        "inserted_fraction": float(observed.is_inserted.mean()),
    }
