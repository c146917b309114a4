"""An encoder for Stable-Baselines3's policies that reads what no convolution of theirs fits: small grids.

    PPO("MlpPolicy", env, policy_kwargs={"features_extractor_class": TorsoExtractor})

`CnnPolicy` needs 36 pixels a side, and `MlpPolicy` sees a picture as a list of numbers: where colours change
that mean nothing, it cannot tell where the agent is. Here a table is learned of what each colour means.
"""

from __future__ import annotations

from typing import Any

import torch
from gymnasium import spaces

from softcount.hints import install

try:
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
except ImportError as error:
    raise ImportError(f"this needs Stable-Baselines3: {install('sb3')}") from error

from softcount.integrations.defaults import choose_torso
from softcount.torsos import make_torso
from softcount.types import ArraySpec


class TorsoExtractor(BaseFeaturesExtractor):  # type: ignore[misc]
    """The torso that a bonus would choose for images, as SB3 shows them: channels first, from 0 to 1.

    >>> space = spaces.Box(0, 255, (3, 15, 15), "uint8")
    >>> TorsoExtractor(space)(torch.zeros(2, 3, 15, 15)).shape
    torch.Size([2, 128])
    """

    def __init__(self, observation_space: spaces.Box) -> None:
        if len(observation_space.shape) != 3 or observation_space.dtype != "uint8":
            raise ValueError(f"the space is {observation_space}; expected images of uint8")
        channels, height, width = observation_space.shape
        spec = ArraySpec((height, width, channels), "uint8")
        torso = make_torso(choose_torso(spec), spec)
        super().__init__(observation_space, torso.out_features)
        self.torso = torso

    def forward(self, observations: torch.Tensor) -> Any:
        """Returns features `[N, features_dim]`."""
        return self.torso((255 * observations.permute(0, 2, 3, 1)).round().to(torch.uint8))
