"""Agreement with rlax's episodic bonus, where it is right; skipped where rlax is not installed.

rlax starts with k zero vectors in its memory and adds its constant to the (negated) mean
distance. Given the same k zero vectors to begin with, and distances far above the constant,
both must pay the same. Near the constant rlax's divisor changes sign; ours must not.
"""

from __future__ import annotations

import numpy as np
import pytest
from oracles.ngu import Episodic as EpisodicOracle

from softcount.memory.episodic import EpisodicConfig, EpisodicMemory

rlax = pytest.importorskip("rlax")
K, DIM = 5, 4


def run_rlax(embeddings):
    rewards, state = [], None
    for e in embeddings:
        reward, state = rlax.episodic_memory_intrinsic_rewards(
            e[None], K, 1.0, intrinsic_reward_state=state, max_memory_size=K
        )
        rewards.append(float(reward[0]))
    return np.array(rewards)


def run_ours(embeddings):
    memory = EpisodicMemory(EpisodicConfig(dim=DIM, neighbours=K, capacity=K), num_envs=1)
    nothing = np.zeros((1, DIM), np.float32)
    for i in range(K):
        memory.observe(nothing, np.array([0]), np.array([i == 0]))
    return np.array([memory.observe(e[None], np.array([0]), np.array([False]))[0] for e in embeddings])


def run_oracle(embeddings):
    oracle = EpisodicOracle(capacity=K, k=K)
    for _ in range(K):
        oracle.observe([0.0] * DIM)
    return np.array([oracle.observe(e.tolist()) for e in embeddings])


def test_far_from_its_constant_rlax_pays_the_same():
    embeddings = 30 * np.random.default_rng(0).normal(size=(40, DIM)).astype(np.float32)
    np.testing.assert_allclose(run_ours(embeddings), run_rlax(embeddings), rtol=1e-3)


def test_near_its_constant_rlax_divides_by_the_wrong_sign_and_we_do_not():
    embeddings = 0.01 * np.random.default_rng(0).normal(size=(40, DIM)).astype(np.float32)
    np.testing.assert_allclose(run_ours(embeddings), run_oracle(embeddings), rtol=1e-4)
    # A turned sign makes every ratio negative, cut to 0: K = 1 for all k neighbours, nothing is ever new.
    np.testing.assert_allclose(run_rlax(embeddings), 1 / (np.sqrt(K) + 1e-3), rtol=1e-3)
    assert run_ours(embeddings).mean() > 10 * run_rlax(embeddings).mean()
