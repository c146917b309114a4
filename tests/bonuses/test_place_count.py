"""True counts: 1/√N in sequence, no place below zero."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import bonuses as oracle

from softcount.bonuses import PlaceCount
from softcount.types import Features


def test_each_visit_pays_one_over_the_root_of_visits_so_far_itself_included():
    rng = np.random.default_rng(0)
    places, is_first = rng.integers(-1, 9, 200), rng.random(200) < 0.2
    paid = PlaceCount().observe(Features(place=places), np.arange(200) % 8, is_first)
    np.testing.assert_allclose(paid, oracle.place_counts(places.tolist(), is_first.tolist()), rtol=1e-6)


def test_score_says_what_the_next_visit_would_pay_and_counts_nothing():
    bonus = PlaceCount()
    bonus.observe(Features(place=np.array([2, 2, 2])), np.arange(3), np.zeros(3, bool))
    np.testing.assert_allclose(bonus.score(Features(place=np.array([2, 0, 99, -1]))), [0.5, 1, 1, 0])
    assert bonus.metrics()["visits"] == 3
    assert bonus.observe(Features(place=np.array([2])), np.array([0]), np.array([False]))[0] == 0.5


def test_a_world_that_does_not_know_its_places_is_refused():
    assert not PlaceCount().can_read(Features())
    with pytest.raises(ValueError, match=r"true counts need features\.place"):
        PlaceCount().observe(Features(), np.zeros(0, int), np.zeros(0, bool))


def test_places_that_are_not_whole_numbers_are_refused():
    with pytest.raises(ValueError, match="expected whole numbers"):
        PlaceCount().observe(Features(place=np.array([0.5])), np.array([0]), np.array([False]))
    with pytest.raises(ValueError, match=r"shape \(1, 1\); expected whole numbers of shape \(B,\)"):
        PlaceCount().observe(Features(place=np.array([[3]])), np.array([0]), np.array([False]))
