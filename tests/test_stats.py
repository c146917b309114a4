"""Running statistics against arithmetic on the whole history."""

import math
import statistics

import numpy as np
import pytest

from softcount.stats import MovingAverage, MovingMoments, RunningMoments

XS = [3.0, -1.0, 4.0, 1.0, -5.0, 9.0, 2.0, 6.0]


def weighted_mean(xs, step):
    """The bias-corrected moving average by its definition: weights (1 − step)^age."""
    weights = [(1 - step) ** age for age in range(len(xs) - 1, -1, -1)]
    return sum(w * x for w, x in zip(weights, xs)) / sum(weights)


@pytest.mark.parametrize("step", [1e-4, 0.1, 0.9, 1.0])
def test_a_moving_average_weighs_the_past_geometrically_from_the_first_sample_on(step):
    average = MovingAverage(step)
    assert average.value == 0.0
    for i, x in enumerate(XS, start=1):
        average.add(x)
        assert average.value == pytest.approx(weighted_mean(XS[:i], step), rel=1e-9)


def test_a_small_step_is_the_plain_mean_at_first():
    average = MovingAverage(1e-9)
    for x in XS:
        average.add(x)
    assert average.value == pytest.approx(sum(XS) / len(XS), rel=1e-6)


@pytest.mark.parametrize("step", [0.0, -0.1, 1.1, math.nan])
def test_a_step_out_of_range_is_named(step):
    with pytest.raises(ValueError, match=r"step is .*\(0, 1\]"):
        MovingAverage(step)


def test_moving_moments_are_those_of_the_weighted_history():
    moments = MovingMoments(0.2)
    assert (moments.mean, moments.std) == (0.0, 0.0)
    for i, x in enumerate(XS, start=1):
        moments.add(x)
        mean = weighted_mean(XS[:i], 0.2)
        var = weighted_mean([(x - mean) ** 2 for x in XS[:i]], 0.2)
        assert moments.mean == pytest.approx(mean, rel=1e-12)
        assert moments.std == pytest.approx(math.sqrt(var), rel=1e-9, abs=1e-7)


def test_the_spread_of_a_constant_is_never_nan():
    moments = MovingMoments(0.3)
    for _ in range(50):
        moments.add(0.1)
    assert 0.0 <= moments.std < 1e-8


def test_running_moments_do_not_depend_on_how_the_data_are_cut():
    data = np.random.default_rng(0).normal(1e6, 2.0, (100, 3))
    moments = RunningMoments((3,))
    for part in (data[:1], data[1:40], data[40:40], data[40:]):
        moments.add(part)
    assert moments.num == 100
    for j in range(3):
        column = data[:, j].tolist()
        assert moments.mean[j] == pytest.approx(statistics.fmean(column), rel=1e-14)
        assert moments.var[j] == pytest.approx(statistics.pvariance(column), rel=1e-6)
        assert moments.std[j] == pytest.approx(statistics.pstdev(column), rel=1e-6)


def test_running_moments_start_at_zero():
    moments = RunningMoments(())
    assert moments.mean == 0.0
    assert moments.var == 0.0


@pytest.mark.parametrize(
    ("make", "batch"),
    [
        (lambda: MovingAverage(0.1), False),
        (lambda: MovingMoments(0.1), False),
        (lambda: RunningMoments(()), True),
    ],
)
def test_states_continue_exactly(make, batch):
    one, other = make(), make()
    for x in XS[:4]:
        one.add(np.array([x]) if batch else x)
    other.load_state_dict(one.state_dict())
    for x in XS[4:]:
        one.add(np.array([x]) if batch else x)
        other.add(np.array([x]) if batch else x)
    assert one.state_dict() == other.state_dict()
    kept = one.state_dict()
    one.add(np.array([1.0]) if batch else 1.0)
    assert one.state_dict() != kept
