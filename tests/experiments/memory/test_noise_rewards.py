"""How rewards are filed under visits, on a case worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.memory.noise_rewards import CHUNK, EDGES, by_visits, plot


def test_rewards_are_filed_under_visits_and_measured_by_places_never_visited():
    t = np.array([0, 1, CHUNK, CHUNK + 1])
    visits = np.array([0, 9, 10, 3])
    recode, rnd = np.array([8.0, 4.0, 2.0, 6.0]), np.array([1.0, 3.0, 5.0, 7.0])
    t_new = np.array([0, 5, CHUNK])
    filed = by_visits(
        [t, visits, recode, rnd], [t_new, np.array([6.0, 10.0, 4.0]), np.array([2.0, 2.0, 10.0])]
    )
    assert EDGES[:3].tolist() == [0, 10, 20]
    assert filed["visits"][:3] == [pytest.approx(4.0), 10.0, None]
    assert filed["recode_ap"][:3] == [pytest.approx(6.0), 2.0, None]
    assert filed["rnd"][:3] == [pytest.approx(11 / 3), 5.0, None]
    # a new place is worth 8 and 2 in the first chunk, 4 and 10 in the second
    assert filed["recode_ap_over_new"][:3] == [pytest.approx((8 / 8 + 4 / 8 + 6 / 4) / 3), 2 / 4, None]
    assert filed["rnd_over_new"][:3] == [pytest.approx((1 / 2 + 3 / 2 + 7 / 10) / 3), 5 / 10, None]


def test_the_picture_shows_rewards_against_few_visits_and_against_new_places():
    run = {"visits": [4.0, 10.0, None, 50.0]}
    for name in ("recode_ap", "rnd"):
        run |= {name: [8.0, 4.0, None, 2.0], f"{name}_over_new": [0.9, 0.5, None, 0.1]}
    run["rnd"] = [6.0, 6.0, None, 3.0]
    figure = plot([run, run])
    left, right = figure.axes
    assert [line.get_ydata().tolist() for line in left.lines] == 2 * [[1, 0.5, 0.25]] + 2 * [[1, 1, 0.5]]
    assert right.lines[0].get_xdata().tolist() == [4, 10, 50]
    assert right.lines[0].get_ydata().tolist() == [0.9, 0.5, 0.1]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["RECODE-AP", "RND"]
