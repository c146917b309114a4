"""Comparing what a bonus pays with what true counts would pay."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from launch.test_local import TINY, assert_same, everything, loop_of

from softcount.config import with_fields
from softcount.measure.bonus_accuracy import compare, judge, place_noise
from softcount.presets import suited


def judge_loop(loop, seed):
    roles = loop.roles
    return judge(roles.actor, roles.inference, roles.memory, loop.coverage, seed)


def test_true_counts_agree_with_themselves_and_their_opposite_disagrees():
    visits = np.array([1, 4, 100, 0, 9])
    paid = np.where(visits > 0, 1 / np.sqrt(np.maximum(visits, 1)), 1.0)[None]
    measures = compare(paid, visits)
    assert measures["correlation"] == pytest.approx(1.0)
    assert measures["visited"] == pytest.approx((1 / 3 + 1 / 2) / 2, abs=1e-6)
    assert measures["unvisited"] == 1.0
    assert compare(1 / paid, visits)["correlation"] == pytest.approx(-1.0)


def test_looks_are_averaged_per_place_before_places_are_compared():
    paid = np.array([[0.0, 1.0, 0.1, 0.9], [0.4, 1.0, 0.3, 0.9]])
    assert compare(paid, np.array([3, 0, 0, 0])) == {
        "visited": 0.2,
        "unvisited": 0.9,
        "unvisited_least": 0.2,  # the least of the means, not of the looks
        "overlooked": 1.0,
    }


def test_one_place_that_is_paid_too_little_is_found_whatever_the_scale_of_the_rewards():
    visits = np.array([100, 100, 100, 4, 0])
    paid = np.array([[0.1, 0.1, 0.1, 0.05, 1.0]])  # the fourth deserves 0.5, a tenth of what true counts pay
    assert compare(paid, visits)["overlooked"] == pytest.approx(10.0)
    assert compare(7 * paid, visits)["overlooked"] == pytest.approx(10.0)
    paid[0, 3] = 5.0  # too much is no harm
    assert compare(paid, visits)["overlooked"] == pytest.approx(1.0)


def test_noise_is_measured_against_the_nearest_other_place():
    # Three places on a line at 0, 3 and 10; each look is off by one to either side.
    centres = np.array([0.0, 3.0, 10.0])
    looks = np.stack([centres - 1, centres + 1])[..., None]
    assert place_noise(looks) == pytest.approx([1 / 9, 1 / 9, 1 / 49])


def test_judging_a_run_changes_nothing_in_it():
    loop = loop_of(replace(TINY, steps=200), False)
    for _ in range(60):
        loop.step()
    before = copy.deepcopy(everything(loop))
    first = judge_loop(loop, seed=3)
    assert first == judge_loop(loop, seed=3)
    assert {"truth/correlation", "truth/visited", "truth/unvisited", "truth/noise"} <= set(first)
    assert 0 < first["truth/visited"] <= 1
    assert 0 < first["truth/unvisited"] <= 1
    assert_same(before, everything(loop))


def test_true_counts_are_judged_to_be_right():
    loop = loop_of(replace(TINY, agent="MEME-COUNT"), False)
    for _ in range(60):
        loop.step()
    measures = judge_loop(loop, seed=3)
    assert measures["truth/correlation"] > 0.99
    assert measures["truth/unvisited"] > measures["truth/visited"]
    assert "truth/noise" not in measures  # they have no embedding


def test_a_goal_that_the_memory_is_never_shown_does_not_count():
    loop = loop_of(replace(TINY, agent="MEME-COUNT"), False)
    for _ in range(60):
        loop.step()
    loop.coverage.visits[loop.roles.actor.env.terminal_places] = 500
    assert judge_loop(loop, seed=3)["truth/correlation"] > 0.99
    loop.roles.memory.terminal_observations = "paid"
    assert judge_loop(loop, seed=3)["truth/correlation"] < 0.9


@pytest.mark.parametrize("name", ["MEME-NGU-AP", "MEME-EMM-AP", "MEME-BYOL-Explore"])
def test_bonuses_that_cannot_score_places_are_not_judged(name):
    assert judge_loop(loop_of(with_fields(TINY, {"agent": name, "meme.relabel": False}), False), seed=0) == {}


def test_a_memory_that_warms_up_is_not_judged():
    loop = loop_of(TINY, False)
    assert judge_loop(loop, seed=0) == {}
    for _ in range(10):
        loop.step()
    assert judge_loop(loop, seed=0) != {}


def test_surprise_is_not_judged_before_it_can_be_told():
    loop = loop_of(suited(TINY, "MEME-RND"), False)
    while loop.num_updates == 0:
        assert judge_loop(loop, seed=0) == {}
        loop.step()
    assert "truth/visited" in judge_loop(loop, seed=0)


def test_a_world_with_noise_is_judged_with_noise():
    config = replace(TINY, env="noisy-disco-maze", env_options={"size": 7, "layout": 1})
    loop = loop_of(config, False)
    for _ in range(10):
        loop.step()
    assert judge_loop(loop, seed=0)["truth/noise"] > 0


def test_a_run_without_bonus_has_nothing_to_judge():
    loop = loop_of(replace(TINY, agent="MEME"), False)
    assert judge_loop(loop, seed=0) == {}
