"""The bonus in other people's loops.

`IntrinsicReward` serves any loop; `gymnasium`, `sb3`, `torchrl` and `rlexplore` put it where
the users of those libraries expect it. Each adapter is imported from its own module, so
that none needs the libraries of the others.
"""

from softcount.hints import install

try:
    import gymnasium
    import torch
except ImportError as error:
    raise ImportError(
        f"drop-in use needs {error.name}: {install('torch', 'envs')} (or sb3, torchrl)"
    ) from error

from softcount.integrations.config import PLAIN_WORLD, SMALL_WORLD, IntrinsicRewardConfig
from softcount.integrations.reward import IntrinsicReward
from softcount.integrations.schedules import Constant, Fading, Linear, Steps

__all__ = [
    "PLAIN_WORLD",
    "SMALL_WORLD",
    "Constant",
    "Fading",
    "IntrinsicReward",
    "IntrinsicRewardConfig",
    "Linear",
    "Steps",
]
