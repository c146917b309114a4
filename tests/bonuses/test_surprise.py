"""RND's, RNDonAP's and BYOL-Explore's rewards from errors."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import bonuses as oracle

from softcount.bonuses import BYOL_EXPLORE, RND, RND_ON_AP, Surprise
from softcount.types import Features

RNG = np.random.default_rng(1)
ERRORS = RNG.gamma(1.0, 1.0, 300).astype(np.float32)
ENV_IDS = np.arange(300) % 3
IS_FIRST = RNG.random(300) < 0.05


def test_rnd_divides_by_the_deviation_of_returns_and_skips_first_rows():
    paid = Surprise(RND).observe(Features(surprise=ERRORS), ENV_IDS, IS_FIRST)
    errors = ERRORS.astype(float)[~IS_FIRST].tolist()
    expected = np.zeros(300)
    expected[~IS_FIRST] = oracle.return_std(errors, ENV_IDS[~IS_FIRST].tolist(), 0.99, 100)
    np.testing.assert_allclose(paid, expected, rtol=1e-5)


def test_rnd_on_ap_divides_by_the_deviation_of_the_errors_themselves():
    paid = Surprise(RND_ON_AP).observe(Features(surprise=ERRORS), ENV_IDS, IS_FIRST)
    expected = np.zeros(300)
    expected[~IS_FIRST] = oracle.reward_std(ERRORS.astype(float)[~IS_FIRST].tolist(), 1e-5, 100)
    np.testing.assert_allclose(paid, expected, rtol=1e-5)


def test_byol_explore_pays_in_learning_what_exceeds_the_moving_mean():
    bonus = Surprise(BYOL_EXPLORE)
    assert bonus.paid_in == "learning"
    paid = [
        bonus.observe(Features(surprise=ERRORS[i : i + 100]), ENV_IDS[i : i + 100], np.zeros(100, bool))
        for i in (0, 100, 200)
    ]
    batches = [ERRORS[i : i + 100].astype(float).tolist() for i in (0, 100, 200)]
    np.testing.assert_allclose(np.stack(paid), oracle.prioritised(batches, 0.01), rtol=1e-5, atol=1e-7)


def test_a_surprise_that_is_not_a_number_is_refused_and_changes_nothing():
    bonus = Surprise(RND)
    before = bonus.state_dict()
    with pytest.raises(ValueError, match=r"features.surprise\[1\] is nan"):
        bonus.observe(Features(surprise=np.array([1.0, np.nan])), np.arange(2), np.zeros(2, bool))
    np.testing.assert_equal(bonus.state_dict(), before)


def test_a_missing_surprise_is_explained():
    with pytest.raises(
        ValueError, match="which is None; expected one; RND gives none before its first update"
    ):
        Surprise().observe(Features(embedding=np.ones((1, 2))), np.zeros(1, int), np.zeros(1, bool))
