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

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from softcount.types import Array, State


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
        raise NotImplementedError

    def choose(self) -> int:
        """Draws the arm of the next episode."""
        raise NotImplementedError

    def update(self, arm: int, episode_return: float) -> None:
        """Takes in the extrinsic return of an episode in which `arm` acted."""
        raise NotImplementedError

    def statistics(self) -> Statistics:
        """Returns counts and sums per arm, as far as they are remembered."""
        raise NotImplementedError

    def best_arm(self) -> int:
        """Returns the arm with the best remembered mean; see `best_arm` of several."""
        raise NotImplementedError

    def state_dict(self) -> State:
        raise NotImplementedError

    def load_state_dict(self, state: State) -> None:
        raise NotImplementedError


def merge(statistics: Iterable[Statistics]) -> Statistics:
    """Adds up what several bandits know."""
    raise NotImplementedError


def best_arm(statistics: Statistics) -> int:
    """Returns the arm with the best mean; without any pull, and in ties, the lowest (most exploiting)."""
    raise NotImplementedError
