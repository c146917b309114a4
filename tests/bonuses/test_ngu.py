"""NGU: the episodic reward times the clipped factor of surprise."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import bonuses as oracle

from softcount.bonuses import Episodic, EpisodicBonusConfig, Ngu, NguConfig
from softcount.memory.episodic import EpisodicConfig
from softcount.types import Features

MEMORY = EpisodicConfig(dim=2, neighbours=2)


def stream(steps=80, seed=0):
    rng = np.random.default_rng(seed)
    embeddings = rng.normal(size=(steps, 1, 2)).astype(np.float32)
    errors = rng.gamma(0.3, 3.0, (steps, 1)).astype(np.float32)
    is_first = rng.random((steps, 1)) < 0.05
    is_first[0] = True
    return embeddings, errors, is_first


def test_the_episodic_reward_is_multiplied_by_the_clipped_standardised_error():
    embeddings, errors, is_first = stream()
    ngu, episodic = Ngu(NguConfig(memory=MEMORY)), Episodic(EpisodicBonusConfig(memory=MEMORY))
    paid, plain = [], []
    for e, err, first in zip(embeddings, errors, is_first):
        paid.append(ngu.observe(Features(e, err), np.zeros(1, int), first)[0])
        plain.append(episodic.observe(Features(e), np.zeros(1, int), first)[0])
    factors = np.ones(len(paid))
    factors[~is_first[:, 0]] = oracle.modulators(errors[~is_first].astype(float).tolist(), 5.0)
    np.testing.assert_allclose(paid, np.array(plain) * factors, rtol=1e-4)
    assert factors.max() == 5.0
    assert 1.0 < factors.mean() < 2.0  # neither constant 1 nor always at the limit


def test_equal_errors_leave_the_episodic_reward_alone():
    embeddings, errors, is_first = stream()
    ngu, episodic = Ngu(NguConfig(memory=MEMORY)), Episodic(EpisodicBonusConfig(memory=MEMORY))
    for e, err, first in zip(embeddings, np.full_like(errors, 0.3), is_first):
        one = ngu.observe(Features(e, err), np.zeros(1, int), first)
        np.testing.assert_array_equal(one, episodic.observe(Features(e), np.zeros(1, int), first))


def test_a_limit_below_one_and_missing_or_unequal_parts_are_refused():
    with pytest.raises(ValueError, match=r"largest_factor is 0\.5"):
        NguConfig(largest_factor=0.5)
    ngu, row, no = Ngu(NguConfig(memory=MEMORY)), np.zeros(1, int), np.zeros(1, bool)
    with pytest.raises(ValueError, match=r"Ngu needs features\.surprise"):
        ngu.observe(Features(np.zeros((1, 2), np.float32)), row, no)
    with pytest.raises(ValueError, match="1 embeddings and 2 surprises"):
        ngu.observe(Features(np.zeros((1, 2), np.float32), np.zeros(2)), row, no)
