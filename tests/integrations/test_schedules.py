"""Weights over a run."""

from __future__ import annotations

import pytest

from softcount.integrations.schedules import Constant, Geometric, Linear, Steps, as_schedule


def test_a_number_is_constant():
    assert as_schedule(0.3)(10**9) == 0.3
    assert as_schedule(Constant(2.0))(5) == 2.0


def test_linear_is_constant_outside_its_steps_and_straight_between():
    weight = Linear(1.0, 0.2, first_step=10, last_step=20)
    assert [weight(step) for step in (0, 10, 15, 20, 99)] == pytest.approx([1, 1, 0.6, 0.2, 0.2])


def test_steps_hold_from_their_step_on():
    weight = Steps((0, 1.0), (5, 0.5), (9, 0.0))
    assert [weight(step) for step in (0, 4, 5, 8, 9, 100)] == [1, 1, 0.5, 0.5, 0, 0]


def test_geometric_is_the_weight_of_rlexplore():
    assert Geometric(2.0, 0.1)(3) == pytest.approx(2 * 0.9**3)


@pytest.mark.parametrize("stairs", [(), ((1, 1.0),), ((0, 1.0), (0, 2.0)), ((0, 1.0), (5, 1.0), (3, 1.0))])
def test_stairs_that_do_not_rise_from_zero_are_refused(stairs):
    with pytest.raises(ValueError, match="expected 0 and then rising steps"):
        Steps(*stairs)


def test_other_weights_are_refused():
    with pytest.raises(TypeError, match="weight is 'big'"):
        as_schedule("big")
    with pytest.raises(ValueError, match="last_step is 3"):
        Linear(1.0, 0.0, first_step=3, last_step=3)
