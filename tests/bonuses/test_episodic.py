"""EMM: the episodic memory's rewards, paid as they are, except for FIRST observations."""

from __future__ import annotations

import numpy as np
import pytest
from oracles.bonuses import by_mean
from oracles.ngu import Episodic as EpisodicOracle

from softcount.bonuses import Episodic, EpisodicBonusConfig, NormaliserConfig
from softcount.memory.episodic import EpisodicConfig
from softcount.types import Features

CONFIG = EpisodicBonusConfig(memory=EpisodicConfig(dim=2, neighbours=3))


def stream(steps=60, num_envs=3, seed=0):
    rng = np.random.default_rng(seed)
    embeddings = rng.integers(0, 4, (steps, num_envs, 2)).astype(np.float32)
    embeddings += 0.01 * rng.normal(size=embeddings.shape).astype(np.float32)
    is_first = rng.random((steps, num_envs)) < 0.06
    is_first[0] = True
    return embeddings, is_first


def test_each_environment_is_paid_by_its_own_episode():
    embeddings, is_first = stream()
    bonus = Episodic(CONFIG, num_envs=3)
    paid = np.stack(
        [bonus.observe(Features(embedding=e), np.arange(3), f) for e, f in zip(embeddings, is_first)]
    )
    for env_id in range(3):
        oracle = EpisodicOracle(k=3)
        for t in range(len(paid)):
            if is_first[t, env_id]:
                oracle.reset()
            expected = oracle.observe(embeddings[t, env_id].tolist())
            expected = 0.0 if is_first[t, env_id] else expected
            assert paid[t, env_id] == pytest.approx(expected, rel=1e-4)
    assert (paid > 0).mean() > 0.5


def test_a_normaliser_divides_what_is_paid_and_skips_first_rows():
    embeddings, is_first = stream()
    config = EpisodicBonusConfig(memory=CONFIG.memory, normaliser=NormaliserConfig(kind="mean", step=0.3))
    plain, scaled = Episodic(CONFIG, num_envs=3), Episodic(config, num_envs=3)
    raw, paid = (
        np.stack(
            [bonus.observe(Features(embedding=e), np.arange(3), f) for e, f in zip(embeddings, is_first)]
        )
        for bonus in (plain, scaled)
    )
    assert (paid[is_first] == 0).all()
    np.testing.assert_allclose(paid[~is_first], by_mean(raw[~is_first].tolist(), 0.3), rtol=1e-5)
