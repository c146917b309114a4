"""The features by which a policy of Stable-Baselines3 acts, for a value head of the bonus's own."""

from __future__ import annotations

from typing import Any

import torch
from stable_baselines3.common.preprocessing import preprocess_obs
from torch import nn


class PolicyFeatures(nn.Module):
    """What an actor-critic policy makes of observations before it chooses; its parameters are the policy's.

    >>> from stable_baselines3 import PPO
    >>> features = PolicyFeatures(PPO("MlpPolicy", "CartPole-v1", device="cpu").policy)
    >>> features(torch.zeros(2, 4)).shape, features.out_features
    (torch.Size([2, 64]), 64)
    """

    def __init__(self, policy: Any) -> None:
        super().__init__()
        if hasattr(policy, "lstm_actor") or not hasattr(policy, "mlp_extractor"):
            kind = type(policy).__name__
            raise TypeError(f"the bonus has no value head on a {kind}; use values='own'")
        self.extractor = policy.pi_features_extractor
        self.hidden = policy.mlp_extractor.policy_net
        self.out_features = int(policy.mlp_extractor.latent_dim_pi)
        self._space, self._scales = policy.observation_space, policy.normalize_images

    def forward(self, observation: Any) -> torch.Tensor:
        """Returns features `[N, out_features]` of observations as SB3 has them."""
        prepared = preprocess_obs(observation, self._space, normalize_images=self._scales)
        features: torch.Tensor = self.hidden(self.extractor(prepared))
        return features
