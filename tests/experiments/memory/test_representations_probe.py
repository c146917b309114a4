"""The probes of the experiment, on cases worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.memory.representations_probe import SETTINGS, floors, linear_probe, nearest, plot, spread
from softcount.envs.walks import Walks


def test_probes_read_what_is_there_and_nothing_else():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=400)
    x = np.eye(3)[labels] + 0.1 * rng.normal(size=(400, 3))
    assert (nearest(x[:300], labels[:300], x[300:]) == labels[300:]).mean() > 0.98
    assert (linear_probe(x[:300], labels[:300], x[300:]) == labels[300:]).mean() > 0.98
    noise = rng.normal(size=(400, 3))
    assert (nearest(noise[:300], labels[:300], noise[300:]) == labels[300:]).mean() < 0.5


def test_spread_by_hand():
    x = np.array([[0.0], [2.0], [10.0], [10.0]])
    # centres 1 and 10; within: mean of 1 and 0; between: 2·var = 2·(4.5)²
    assert spread(x, np.array([0, 0, 1, 1])) == pytest.approx(0.5 / (2 * 4.5**2))


def test_floors_of_action_prediction_by_hand():
    # Two places; action 1 moves, 0 and 2 push a wall. Pushes come in pairs: a coin, then the same again.
    action = np.array([1, 0, 0, 1, 2, 2, 1, 2, 2, 1, 0, 0] * 10 + [1])[:, None]
    place = np.cumsum(np.concatenate([[0], action[:-1, 0] == 1]))[:, None] % 2
    never = np.zeros(action.shape, bool)
    walks = Walks(np.zeros((*action.shape, 1, 1), np.uint8), action, never, never, place)
    found = floors(walks)
    assert found["pair"] == pytest.approx(2 / 3 * np.log(2), abs=0.01)
    assert found["pair_and_previous_action"] == pytest.approx(1 / 3 * np.log(2), abs=0.01)
    # the place before a push: another for the first of a pair, this one for the second; both are coins
    assert found["pair_and_previous_place"] == pytest.approx(2 / 3 * np.log(2), abs=0.01)
    # after a push: once repeated, once a move; after a move: either push
    assert found["previous_action"] == pytest.approx(np.log(2), abs=0.01)


def test_the_picture_has_bars_of_means_dots_of_seeds_and_losses():
    kinds = SETTINGS["window"].kinds
    runs = [
        {
            "setting": "window", "kind": kind, "knn": 0.1 * i + 0.2 * seed, "knn_hidden_cells": 0.3,
            "linear": 0.4, "loss_curve": [1.0, 0.5 + seed], "floors": {"pair": 0.2, "history": 0.1},
        }
        for seed in range(2)
        for i, kind in enumerate(kinds)
    ]  # fmt: skip
    above, below = plot(runs).axes
    heights = [bar.get_height() for bar in above.patches]
    assert heights[::3] == pytest.approx([0.1 * i + 0.1 for i in range(len(kinds))])
    dots = [line.get_ydata()[0] for line in above.lines]
    assert dots == pytest.approx([0.1 * i + 0.2 * seed for i in range(len(kinds)) for seed in range(2)])
    curves = [list(line.get_ydata()) for line in below.lines if list(line.get_xdata()) == [10, 30]]
    assert curves.count([1.0, 1.5]) == sum(kind not in ("random", "autoencoder") for kind in kinds)
    levels = {line.get_ydata()[0] for line in below.lines if line.get_linestyle() == "--"}
    assert levels == {0.2, 0.1}  # AP is told by the pair, CASnotM by the past
