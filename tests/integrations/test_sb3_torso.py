"""SB3's policy reads small grids by the torso that a bonus would choose."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("stable_baselines3")
from gymnasium import spaces
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from softcount.envs.disco_maze import DiscoMazeConfig
from softcount.envs.disco_maze_gym import DiscoMazeEnv
from softcount.integrations.sb3_torso import TorsoExtractor


def test_the_torso_sees_the_picture_as_the_environment_showed_it():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (5, 7, 9, 3), dtype=np.uint8)
    space = spaces.Box(0, 255, (3, 7, 9), np.uint8)
    extractor = TorsoExtractor(space)
    shown = torch.from_numpy(images.transpose(0, 3, 1, 2).copy()).float() / 255  # SB3's way
    assert torch.equal(extractor(shown), extractor.torso(torch.from_numpy(images)))
    with pytest.raises(ValueError, match="expected images"):
        TorsoExtractor(spaces.Box(0, 1, (4,), np.float32))


def test_ppo_learns_with_it():
    env = make_vec_env(lambda: DiscoMazeEnv(DiscoMazeConfig(size=7, lethal=False)), n_envs=4)
    kwargs = {"features_extractor_class": TorsoExtractor, "share_features_extractor": False}
    model = PPO("MlpPolicy", env, n_steps=16, batch_size=32, policy_kwargs=kwargs, device="cpu")
    before = [p.clone() for p in model.policy.pi_features_extractor.parameters()]
    model.learn(64)
    after = model.policy.pi_features_extractor.parameters()
    assert any(not torch.equal(one, two) for one, two in zip(before, after, strict=True))
