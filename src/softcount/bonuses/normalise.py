"""Reward normalisation: what a raw bonus is divided by before it is paid.

    reward_std    r / σ(r)                 the paper's presets (§3; Decision 53)
    return_std    r / σ(R),  R ← γR + r    [RND]: forward filter per environment, never reset
    mean          r / μ(r)                 keeps known places near 1 when counts even out
    prioritised   max(r/σ(r) − μ, 0)       [BYOL-Explore]: μ the moving mean of r/σ(r)
    none          r

Nothing is ever centred except by `prioritised`. All but the last two take rewards one
after the other: each enters the statistics and is then divided by them, so a stream may
be cut into batches anywhere. `prioritised` works on whole batches, as its paper does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from softcount.stats import MovingAverage, MovingMoments
from softcount.types import Array, State
from softcount.validation import above, at_least, between, check_fields

Kind = Literal["reward_std", "return_std", "mean", "prioritised", "none"]

LEAST_VARIATION = 0.01
"""A standard deviation below this share of the mean is taken for this share. Decision 54."""


@dataclass(frozen=True, kw_only=True)
class NormaliserConfig:
    """How raw rewards are scaled.

    >>> NormaliserConfig().kind
    'reward_std'
    """

    kind: Kind = "reward_std"
    """Which rule, see the module's table."""
    step: float = 1e-5
    """Weight of a new reward in the moving statistics (of a new batch for `prioritised`)."""
    floor: float = 1e-8
    """The least divisor."""
    return_discount: float = 0.99
    """γ of the forward filter of `return_std`."""
    num_gathered: int = 100
    """Rewards that only enter the statistics and are paid 0, for the two standard deviations. Decision 54."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            step=between(0, 1, "(]"),
            floor=above(0),
            return_discount=between(0, 1, "[)"),
            num_gathered=at_least(0),
        )


class Normaliser(Protocol):
    """Scales rewards and remembers what it needs to do so."""

    def normalise(self, rewards: Array, env_ids: Array) -> Array: ...
    def apply(self, rewards: Array) -> Array: ...  # with the statistics as they are
    @property
    def scale(self) -> float: ...  # the divisor now
    def state_dict(self) -> State: ...
    def load_state_dict(self, state: State) -> None: ...


class RewardStd:
    """Divides by the bias-corrected moving standard deviation of the rewards themselves.

    >>> normaliser = RewardStd(NormaliserConfig(step=0.5, num_gathered=1))
    >>> normaliser.normalise(np.array([1.0, 4.0]), np.array([0, 0])).round(4).tolist()
    [0.0, 2.8284]
    """

    def __init__(self, config: NormaliserConfig) -> None:
        self.config = config
        self.moments = MovingMoments(config.step)
        self.num = 0

    @property
    def scale(self) -> float:
        return max(self.moments.std, LEAST_VARIATION * abs(self.moments.mean), self.config.floor)

    def normalise(self, rewards: Array, env_ids: Array) -> Array:
        return np.array([self._one(float(r)) for r in rewards])

    def _one(self, r: float) -> float:
        self.moments.add(r)
        self.num += 1
        return r / self.scale if self.num > self.config.num_gathered else 0.0

    def apply(self, rewards: Array) -> Array:
        return rewards / self.scale if self.num >= self.config.num_gathered else np.zeros(len(rewards))

    def state_dict(self) -> State:
        return {"moments": self.moments.state_dict(), "num": self.num}

    def load_state_dict(self, state: State) -> None:
        self.moments.load_state_dict(state["moments"])
        self.num = int(state["num"])


class ReturnStd:
    """Divides by the standard deviation of every discounted return R ← γR + r seen so far [RND]."""

    def __init__(self, config: NormaliserConfig) -> None:
        self.config = config
        self.returns = np.zeros(0)  # R of each environment, by id; grows as ids appear
        self.num = 0
        self.mean = 0.0
        self.sum_squares = 0.0  # Σ (R − mean)²

    @property
    def scale(self) -> float:
        std = math.sqrt(self.sum_squares / self.num) if self.num > 0 else 0.0
        return max(std, LEAST_VARIATION * abs(self.mean), self.config.floor)

    def normalise(self, rewards: Array, env_ids: Array) -> Array:
        if len(env_ids) > 0 and env_ids.max() >= len(self.returns):
            self.returns = np.pad(self.returns, (0, int(env_ids.max()) + 1 - len(self.returns)))
        return np.array([self._one(float(r), int(i)) for r, i in zip(rewards, env_ids, strict=True)])

    def _one(self, r: float, env_id: int) -> float:
        ret = self.config.return_discount * float(self.returns[env_id]) + r
        self.returns[env_id] = ret
        self.num += 1
        delta = ret - self.mean  # Welford
        self.mean += delta / self.num
        self.sum_squares += delta * (ret - self.mean)
        return r / self.scale if self.num > self.config.num_gathered else 0.0

    def apply(self, rewards: Array) -> Array:
        return rewards / self.scale if self.num >= self.config.num_gathered else np.zeros(len(rewards))

    def state_dict(self) -> State:
        return {
            "returns": self.returns.copy(),
            "num": self.num,
            "mean": self.mean,
            "sum_squares": self.sum_squares,
        }

    def load_state_dict(self, state: State) -> None:
        self.returns = np.array(state["returns"], np.float64)
        self.num = int(state["num"])
        self.mean, self.sum_squares = float(state["mean"]), float(state["sum_squares"])


class Mean:
    """Divides by the bias-corrected moving mean of the rewards."""

    def __init__(self, config: NormaliserConfig) -> None:
        self.config = config
        self.average = MovingAverage(config.step)

    @property
    def scale(self) -> float:
        return max(self.average.value, self.config.floor)

    def normalise(self, rewards: Array, env_ids: Array) -> Array:
        return np.array([self._one(float(r)) for r in rewards])

    def _one(self, r: float) -> float:
        self.average.add(r)
        return r / self.scale

    def apply(self, rewards: Array) -> Array:
        return rewards / self.scale if self.average.weight > 0 else np.zeros(len(rewards))

    def state_dict(self) -> State:
        return {"average": self.average.state_dict()}

    def load_state_dict(self, state: State) -> None:
        self.average.load_state_dict(state["average"])


class Prioritised:
    """Pays only what exceeds the moving mean of the scaled reward [BYOL-Explore]; whole batches."""

    def __init__(self, config: NormaliserConfig) -> None:
        self.config = config
        self.reward = MovingAverage(config.step)
        self.square = MovingAverage(config.step)
        self.scaled = MovingAverage(config.step)  # μ, of r/σ

    @property
    def scale(self) -> float:
        mean = self.reward.value
        std = math.sqrt(max(self.square.value - mean**2, 0.0))
        return max(std, LEAST_VARIATION * abs(mean), self.config.floor)

    def normalise(self, rewards: Array, env_ids: Array) -> Array:
        if len(rewards) == 0:
            return np.zeros(0)
        self.reward.add(float(rewards.mean()))
        self.square.add(float((rewards**2).mean()))
        self.scaled.add(float((rewards / self.scale).mean()))
        return self.apply(rewards)

    def apply(self, rewards: Array) -> Array:
        if self.reward.weight == 0:
            return np.zeros(len(rewards))
        return np.maximum(rewards / self.scale - self.scaled.value, 0.0)

    def state_dict(self) -> State:
        return {name: getattr(self, name).state_dict() for name in ("reward", "square", "scaled")}

    def load_state_dict(self, state: State) -> None:
        for name in ("reward", "square", "scaled"):
            getattr(self, name).load_state_dict(state[name])


class Identity:
    """Pays the raw reward."""

    scale = 1.0

    def __init__(self, config: NormaliserConfig) -> None:
        self.config = config

    def normalise(self, rewards: Array, env_ids: Array) -> Array:
        return rewards

    def apply(self, rewards: Array) -> Array:
        return rewards

    def state_dict(self) -> State:
        return {}

    def load_state_dict(self, state: State) -> None:
        pass


def make_normaliser(config: NormaliserConfig) -> Normaliser:
    """Builds the normaliser a config names."""
    return KINDS[config.kind](config)


KINDS: dict[str, Callable[[NormaliserConfig], Normaliser]] = {
    "reward_std": RewardStd,
    "return_std": ReturnStd,
    "mean": Mean,
    "prioritised": Prioritised,
    "none": Identity,
}
