"""True counts in other people's loops: what is counted, what is paid, in both kinds of wrapper."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from experiments.drop_in.counts import CountingVectorEnv, counting_vec_env


class Corridor(gymnasium.Env):
    """Places 0, 1, 2; one step right each time, the end pays 5."""

    observation_space = gymnasium.spaces.Box(0, 2, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = 0
        return np.zeros(1, np.float32), {"place": 0}

    def step(self, action):
        self.place += 1
        at_end = self.place == 2
        return np.full(1, self.place, np.float32), 5.0 * at_end, at_end, False, {"place": self.place}


def test_arrivals_are_paid_by_true_counts_and_restarts_are_not():
    envs = CountingVectorEnv(gymnasium.vector.SyncVectorEnv([Corridor]))
    envs.reset(seed=0)
    paid = [float(envs.step(np.array([1]))[-1]["intrinsic_reward"][0]) for _ in range(6)]
    # places 1, 2, (restart) 0, 1, 2, (restart) 0
    np.testing.assert_allclose(paid, [1, 1, 0, 2**-0.5, 2**-0.5, 0], rtol=1e-6)


def test_the_mixed_reward_of_sb3_has_both_parts_with_the_weight():
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    env = counting_vec_env(vec_env.DummyVecEnv([Corridor, Corridor]), weight=0.5)
    env.reset()
    _, rewards, _, infos = env.step(np.array([1, 1]))
    np.testing.assert_allclose(
        rewards, [0.5, 0.5 * 2**-0.5], rtol=1e-6
    )  # both at place 1, one after the other
    _, rewards, dones, infos = env.step(np.array([1, 1]))
    np.testing.assert_allclose(rewards, [5.5, 5 + 0.5 * 2**-0.5], rtol=1e-6)
    assert dones.all()
    assert infos[0]["extrinsic_reward"] == 5.0
    assert infos[0]["intrinsic_reward"] == 0.5
