"""The bonus in other people's loops.

`IntrinsicReward` serves any loop; `gymnasium`, `sb3`, `torchrl` and `rlexplore` put it where
the users of those libraries expect it. Each adapter is imported from its own module, so
that none needs the libraries of the others.
"""

from softcount.integrations.reward import SMALL_WORLD, IntrinsicReward, IntrinsicRewardConfig
from softcount.integrations.schedules import Constant, Linear, Steps

__all__ = ["SMALL_WORLD", "Constant", "IntrinsicReward", "IntrinsicRewardConfig", "Linear", "Steps"]
