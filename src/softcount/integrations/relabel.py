"""The bonus of what a replay holds, under today's memory.

A replay keeps transitions for long, and what was new when it was stored is known now. So the bonus is not
stored with the reward but asked for whenever a batch is drawn:

    r = r_game + w · (score(o') − mean)

The running mean of the scores is taken off (`baseline="mean"`), because with one value function for both
rewards going on would be worth w · mean / (1 − γ), and a goal that ends the episode would be avoided
while it pays less than that (docs/agent/vmpo.md).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from softcount.integrations.reward import IntrinsicReward
from softcount.stats import MovingAverage
from softcount.types import Array

Baseline = Literal["mean", "none"]
MEAN_STEP = 0.01
"""How fast the mean follows: about the last hundred batches."""


class Relabel:
    """Scores batches of arrivals `[B, ...]` now.

    >>> from gymnasium.spaces import Box, Discrete
    >>> bonus = IntrinsicReward("RND", Box(-1, 1, (3,)), Discrete(2), num_envs=1)
    >>> Relabel(bonus)(np.zeros((4, 3))).tolist()
    [0.0, 0.0, 0.0, 0.0]
    """

    def __init__(self, bonus: IntrinsicReward, baseline: Baseline = "mean") -> None:
        if baseline not in ("mean", "none"):
            raise ValueError(f"baseline is {baseline!r}; expected 'mean' or 'none'")
        if bonus.bonus.paid_in == "learning" or bonus.bonus.lasts == "episode":
            raise ValueError(
                f"{bonus.recipe.name} depends on the episode or a sequence and cannot be asked again later; "
                "use RECODE-…, RND or RNDonAP here, or pay it as it happens (IntrinsicVecEnv)"
            )
        self.bonus = bonus
        self.baseline = baseline
        self.mean = MovingAverage(MEAN_STEP)

    def __call__(self, next_obs: Any) -> Array:
        """Returns what arriving at each is worth now, weighted; 0 until the bonus pays."""
        scores = self.bonus.score(next_obs)
        if self.baseline == "none" or not self.bonus.is_paying:
            return scores
        self.mean.add(float(scores.mean()))
        return (scores - np.float32(self.mean.value)).astype(np.float32)
