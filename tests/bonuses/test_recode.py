"""RECODE as a bonus: warm-up, FIRST rows, and the division, against the oracle's Algorithm 1."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import bonuses as oracle

from softcount.bonuses import NormaliserConfig, Recode, RecodeBonusConfig
from softcount.memory import RecodeConfig, RecodeMemory
from softcount.types import Features

MEMORY = RecodeConfig(size=40, dim=3, neighbours=4, warmup_atoms=10)


def stream(n=120, seed=0):
    rng = np.random.default_rng(seed)
    places = rng.normal(size=(6, 3)) * 3
    embeddings = (places[rng.integers(0, 6, n)] + 0.1 * rng.normal(size=(n, 3))).astype(np.float32)
    return embeddings, np.arange(n) % 4, rng.random(n) < 0.1


def test_rewards_are_algorithm_1s_divided_by_their_moving_deviation():
    embeddings, env_ids, is_first = stream()
    config = RecodeBonusConfig(memory=MEMORY, normaliser=NormaliserConfig(step=0.02, num_gathered=5))
    paid = Recode(config, seed=3).observe(Features(embedding=embeddings), env_ids, is_first)

    raw = RecodeMemory(MEMORY, seed=3).observe(embeddings)
    is_counted = (np.arange(len(raw)) >= 10) & ~is_first
    expected = np.zeros(len(raw))
    expected[is_counted] = oracle.reward_std(raw[is_counted].tolist(), 0.02, 5)
    np.testing.assert_allclose(paid, expected, rtol=1e-5)
    assert paid.dtype == np.float32
    assert (paid[20:] > 0).sum() > 80


def test_warm_up_pays_zero_and_its_raw_rewards_stay_out_of_the_statistics():
    embeddings, env_ids, _ = stream()
    bonus = Recode(RecodeBonusConfig(memory=MEMORY), seed=0)
    paid = bonus.observe(Features(embedding=embeddings[:10]), env_ids[:10], np.zeros(10, bool))
    assert (paid == 0).all()
    assert bonus.normaliser.state_dict()["num"] == 0
    bonus.observe(Features(embedding=embeddings[10:12]), env_ids[10:12], np.zeros(2, bool))
    assert bonus.normaliser.state_dict()["num"] == 2


def test_first_rows_are_learnt_but_neither_paid_nor_counted_in_the_statistics():
    embeddings, env_ids, _ = stream()
    bonus = Recode(RecodeBonusConfig(memory=MEMORY, normaliser=NormaliserConfig(kind="mean")), seed=0)
    bonus.observe(Features(embedding=embeddings[:50]), env_ids[:50], np.zeros(50, bool))
    before = bonus.normaliser.state_dict()
    paid = bonus.observe(Features(embedding=embeddings[50:54]), env_ids[50:54], np.ones(4, bool))
    assert (paid == 0).all()
    assert bonus.memory.num_observed == 54
    assert bonus.normaliser.state_dict() == before


def test_cutting_a_stream_into_batches_changes_no_bit():
    embeddings, env_ids, is_first = stream()
    config = RecodeBonusConfig(memory=MEMORY, normaliser=NormaliserConfig(num_gathered=5))
    whole = Recode(config, seed=1).observe(Features(embedding=embeddings), env_ids, is_first)
    bonus = Recode(config, seed=1)
    ones = [
        bonus.observe(Features(embedding=embeddings[i : i + 1]), env_ids[i : i + 1], is_first[i : i + 1])
        for i in range(len(embeddings))
    ]
    np.testing.assert_array_equal(whole, np.concatenate(ones))


def test_score_is_zero_in_warm_up_and_the_scaled_raw_score_after():
    embeddings, env_ids, _ = stream()
    bonus = Recode(RecodeBonusConfig(memory=MEMORY, normaliser=NormaliserConfig(num_gathered=5)), seed=1)
    unscaled = Recode(RecodeBonusConfig(memory=MEMORY, normaliser=NormaliserConfig(kind="none")), seed=1)
    for warming_up in (bonus, unscaled):
        assert (warming_up.score(Features(embedding=embeddings[:3])) == 0).all()
    bonus.observe(Features(embedding=embeddings), env_ids, np.zeros(len(embeddings), bool))
    far = Features(embedding=np.full((1, 3), 50, np.float32))
    assert bonus.score(far)[0] == pytest.approx(100.0 / bonus.normaliser.scale)
    assert bonus.score(Features(embedding=embeddings[:1]))[0] < bonus.score(far)[0]


def test_a_missing_embedding_is_explained():
    with pytest.raises(ValueError, match=r"Recode needs features\.embedding"):
        Recode().observe(Features(surprise=np.ones(1)), np.zeros(1, int), np.zeros(1, bool))
