"""The meta-controller: which mixture acts in the next episode.

One bandit per environment [Agent57]. Arms are mixtures, the reward of a pull is the
undiscounted extrinsic return of the episode it acted in. With probability ε an arm is
drawn at random, otherwise

    argmax_a  mean(a) + β √(1 / count(a)),        an arm without pulls counts as +∞,

where mean and count are over the last `window` episodes, or discounted once per episode
by `discount`  ([MEME], the default). The evaluator plays the best mean of all bandits
taken together.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from softcount.types import Array, State, load_rng, rng_state
from softcount.validation import at_least, between, check_fields


@dataclass(frozen=True, kw_only=True)
class BanditConfig:
    """How the meta-controller remembers and explores."""

    kind: Literal["discounted", "window"] = "discounted"
    """Forget by a discount per episode, or by a window of episodes."""
    discount: float = 0.999
    """Factor kept of all statistics per episode, for `discounted`."""
    window: int = 160
    """Number of latest episodes that count, for `window`."""
    bonus: float = 1.0
    """β: weight of the confidence bound."""
    epsilon: float = 0.5
    """ε: probability of a uniformly drawn arm."""
    normalise: bool = False
    """Divide means by the standard deviation of all remembered returns, so that β has a scale."""

    def __post_init__(self) -> None:
        check_fields(
            self, discount=between(0, 1, "(]"), window=at_least(1), bonus=at_least(0), epsilon=between(0, 1)
        )


class Statistics(NamedTuple):
    """What a bandit knows of its arms; statistics of several bandits add up."""

    counts: Array  # [N] discounted or windowed number of pulls
    sums: Array  # [N] of returns
    squares: Array  # [N] of squared returns


class Bandit:
    """An upper-confidence bandit over mixtures that forgets.

    >>> bandit = Bandit(2, BanditConfig(epsilon=0.0, bonus=0.1), seed=0)
    >>> for _ in range(9):
    ...     arm = bandit.choose()
    ...     bandit.update(arm, episode_return=float(arm))
    >>> bandit.best_arm()
    1
    """

    def __init__(self, num_arms: int, config: BanditConfig | None = None, seed: int = 0) -> None:
        self.config = config or BanditConfig()
        if num_arms < 1:
            raise ValueError(f"num_arms is {num_arms}; expected at least 1")
        self.num_arms = num_arms
        self.rng = np.random.default_rng(seed)
        self.discounted = Statistics(*(np.zeros(num_arms) for _ in range(3)))
        self.episodes: deque[tuple[int, float]] = deque(maxlen=self.config.window)

    def choose(self) -> int:
        """Draws the arm of the next episode."""
        if self.rng.random() < self.config.epsilon:
            return int(self.rng.integers(self.num_arms))
        bounds = upper_bounds(self.statistics(), self.config.bonus, self.config.normalise)
        return int(self.rng.choice(np.flatnonzero(bounds == bounds.max())))  # Decision 68.

    def update(self, arm: int, episode_return: float) -> None:
        """Takes in the extrinsic return of an episode in which `arm` acted."""
        if not 0 <= arm < self.num_arms:
            raise ValueError(f"arm is {arm}; expected 0 to {self.num_arms - 1}")
        if self.config.kind == "window":
            self.episodes.append((int(arm), float(episode_return)))
            return
        gains = (1.0, episode_return, episode_return**2)
        for statistic, gain in zip(self.discounted, gains, strict=True):
            statistic *= self.config.discount
            statistic[arm] += gain

    def statistics(self) -> Statistics:
        """Returns counts and sums per arm, as far as they are remembered."""
        if self.config.kind == "discounted":
            return Statistics(*(x.copy() for x in self.discounted))
        arms = [arm for arm, _ in self.episodes]
        returns = np.array([episode_return for _, episode_return in self.episodes])
        powers = (np.ones_like(returns), returns, returns**2)
        return Statistics(*(np.bincount(arms, x, self.num_arms) for x in powers))

    def best_arm(self) -> int:
        """Returns the arm with the best remembered mean; see the function of the same name."""
        return best_arm(self.statistics())

    def state_dict(self) -> State:
        return {
            "rng": rng_state(self.rng),
            "discounted": {name: x.copy() for name, x in self.discounted._asdict().items()},
            "arms": np.array([arm for arm, _ in self.episodes], np.int64),
            "returns": np.array([episode_return for _, episode_return in self.episodes], np.float64),
        }

    def load_state_dict(self, state: State) -> None:
        load_rng(self.rng, state["rng"])
        self.discounted = Statistics(**{name: np.array(x) for name, x in state["discounted"].items()})
        self.episodes.clear()
        self.episodes.extend(zip(state["arms"].tolist(), state["returns"].tolist(), strict=True))


def upper_bounds(statistics: Statistics, bonus: float, normalise: bool = False) -> Array:
    """Returns mean + β √(1/count) per arm, +∞ for an arm that was never pulled."""
    counts, sums, squares = statistics
    total = counts.sum()
    scale = 1.0
    if normalise and total > 0:
        variance = squares.sum() / total - (sums.sum() / total) ** 2
        scale = np.sqrt(variance) if variance > 1e-12 else 1.0
    pulled = np.maximum(counts, np.finfo(float).tiny)
    return np.where(counts > 0, sums / pulled / scale + bonus / np.sqrt(pulled), np.inf)


def merge(statistics: Iterable[Statistics]) -> Statistics:
    """Adds up what several bandits know."""
    return Statistics(*(np.sum(parts, axis=0) for parts in zip(*statistics, strict=True)))


def best_arm(statistics: Statistics) -> int:
    """Returns the arm with the best mean; without any pull, and in ties, the lowest (most exploiting)."""
    counts, sums, _ = statistics
    means = np.where(counts > 0, sums / np.maximum(counts, np.finfo(float).tiny), -np.inf)
    return int(means.argmax())
