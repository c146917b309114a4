"""What is told of a run: success over the last fifth, the first goal, and the places that are none."""

from __future__ import annotations

import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")
from experiments.drop_in import loops


def watched(*steps):
    """A watcher of 100 steps that saw episodes `(step, place, return)`; None: none ended."""
    watch = loops.watcher(100)
    for step, place, reward in steps:
        watch.num_timesteps = step
        info = {"place": place} | ({} if reward is None else {"episode": {"r": reward}})
        watch.locals = {"infos": [info]}
        watch._on_step()
    return watch


def test_success_is_that_of_the_last_fifth():
    watch = watched((20, 1, 1.0), (79, 1, 1.0), (80, 1, 1.0), (81, 1, 0.0), (90, 1, 1.0))
    assert watch.late == [False, True]


def test_the_first_goal_is_the_first_reward_not_the_first_end():
    assert watched((10, 1, 0.0), (15, 1, None), (20, 1, 1.0), (30, 1, 1.0)).first_success == 20
    assert watched((10, 1, 0.0)).first_success is None


def test_the_curve_has_places_and_the_mean_of_the_last_hundred_returns():
    ends = [(1, 7, 1.0)] * 50 + [(2, 8, 0.0)] * 60 + [(5, -1, None)]
    curve = watched(*ends).curve
    assert curve == [{"step": 5, "episodic_return": 0.4, "places": 2}]
