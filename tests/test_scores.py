"""Aggregated scores: by hand, and against rliable itself."""

import numpy as np
import pytest

from softcount import scores
from softcount.envs.families import EIGHT_GAMES, EIGHT_TASKS


@pytest.fixture(scope="module")
def rliable():
    """The real library. Its dependency `arch` 7 calls a helper of pandas that pandas 3 has changed."""
    import pandas.util._decorators as decorators

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decorators, "deprecate_kwarg", lambda *_, **__: lambda function: function)
        from rliable import library, metrics
    return library, metrics


def test_a_random_policy_scores_nought_and_a_person_one_in_every_task():
    for ranges, names in ((scores.ATARI, EIGHT_GAMES), (scores.DM_HARD_8, EIGHT_TASKS)):
        assert tuple(ranges) == names
        for task, (random, human) in ranges.items():
            assert scores.human_normalised(random, task, ranges) == 0
            assert scores.human_normalised(human, task, ranges) == 1


def test_scores_are_capped_on_both_sides():
    assert scores.human_normalised(-300, "pitfall", scores.ATARI) == pytest.approx(-70.6 / 6693.1)
    assert scores.capped(-300, "pitfall", scores.ATARI) == 0
    assert scores.capped(26_910, "qbert", scores.ATARI) == 1
    assert scores.capped(6809.45, "qbert", scores.ATARI) == pytest.approx(0.5)


def test_the_papers_table_5_gives_its_aggregates():
    """By hand: RECODE-CASM is at or above human in five tasks and has 4.06/8.4 of it in Push Blocks."""
    table = {
        "NGU-AP": (0, 0, 3.33, 0, 0, 0, 0, 0),
        "RECODE-AP": (10, 12.41, 10, 1.07, 0, 0, 10, 0),
        "RECODE-CASM": (10, 12.86, 10, 4.06, 0, 9.72, 10, 0),
    }
    found = {
        agent: np.mean([scores.capped(x, task, scores.DM_HARD_8) for x, task in zip(row, EIGHT_TASKS)])
        for agent, row in table.items()
    }
    assert found["NGU-AP"] == pytest.approx(3.33 / 7.8 / 8)
    assert found["RECODE-AP"] == pytest.approx((4 + 1.07 / 8.4) / 8)
    assert found["RECODE-CASM"] == pytest.approx((5 + 4.06 / 8.4) / 8)


def test_the_interquartile_mean_of_eight_runs_is_that_of_the_middle_four():
    runs = np.array([[8.0, 1, 3, 1000], [2, -50, 4, 7]])
    assert scores.interquartile_mean(runs) == pytest.approx((2 + 3 + 4 + 7) / 4)


def test_six_runs_lose_one_at_each_end():
    assert scores.interquartile_mean(np.array([[1.0, 2, 3], [4, 9, 60]])) == pytest.approx(4.5)


@pytest.mark.parametrize("shape", [(3, 8), (6, 8), (5, 3), (1, 7)])
def test_aggregates_are_those_of_rliable(rliable, shape):
    _, metrics = rliable
    runs = np.random.default_rng(shape).normal(size=shape)
    assert scores.interquartile_mean(runs) == pytest.approx(metrics.aggregate_iqm(runs), rel=1e-12)
    assert scores.mean(runs) == pytest.approx(metrics.aggregate_mean(runs), rel=1e-12)


def test_intervals_are_those_of_rliable(rliable):
    library, metrics = rliable
    rng = np.random.default_rng(0)
    runs = rng.normal(size=(6, 8)) + np.arange(8)  # tasks differ, so that strata matter
    np.random.seed(1)  # noqa: NPY002 - what rliable draws from
    point, interval = library.get_interval_estimates(
        {"x": runs}, lambda x: np.array([metrics.aggregate_iqm(x)]), reps=1500
    )
    found = scores.with_interval(runs, num_samples=1500)
    width = interval["x"][1, 0] - interval["x"][0, 0]
    assert found.value == pytest.approx(point["x"][0], rel=1e-12)
    assert found.low == pytest.approx(interval["x"][0, 0], abs=0.06 * width)
    assert found.high == pytest.approx(interval["x"][1, 0], abs=0.06 * width)


def test_resampling_stays_within_tasks():
    """Tasks that differ without spread over seeds leave no uncertainty, however unlike they are."""
    found = scores.with_interval(np.tile([0.0, 10.0, 50.0], (4, 1)), scores.mean)
    assert found == (20.0, 20.0, 20.0)


def test_two_seeds_of_one_task_have_the_interval_of_their_four_samples():
    """Means of pairs drawn from {0, 1}: 0, ½, ½, 1; the middle half of the samples is ½."""
    wide = scores.with_interval(np.array([[0.0], [1.0]]), scores.mean, confidence=0.95)
    narrow = scores.with_interval(np.array([[0.0], [1.0]]), scores.mean, confidence=0.4)
    assert wide == (0.5, 0.0, 1.0)
    assert narrow == (0.5, 0.5, 0.5)


def test_bad_input_is_named():
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        scores.interquartile_mean(np.zeros(3))
    with pytest.raises(ValueError, match="confidence is 95"):
        scores.with_interval(np.zeros((2, 2)), confidence=95)
    with pytest.raises(ValueError, match="'pong'"):
        scores.capped(1.0, "pong", scores.ATARI)
