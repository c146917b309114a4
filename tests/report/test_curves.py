"""Series, thinning and clocks."""

import pytest

from softcount.report.curves import curves, final_numbers, steps_of_finals, thin


def test_thinning_keeps_ends_and_extremes_in_order():
    points = [(i, float(i % 7)) for i in range(5000)]
    points[1234] = (1234, 99.0)
    points[4321] = (4321, -99.0)
    kept = thin(points, limit=100)
    assert len(kept) <= 102
    assert kept == sorted(kept)
    assert {(0, 0.0), (1234, 99.0), (4321, -99.0), points[-1]} <= set(kept)
    assert thin(points[:100], limit=100) == points[:100]


def test_thinning_keeps_a_stretch_without_numbers_as_a_gap():
    points = [(i, None if 400 <= i < 600 else 1.0 * i) for i in range(1000)]
    kept = thin(points, limit=20)
    assert any(y is None for _, y in kept)


def test_a_number_that_is_not_finite_is_a_gap_and_an_absent_one_is_no_point():
    rows = [{"step": 1, "a": 1.0}, {"step": 2, "a": None}, {"step": 3}, {"step": 4, "a": 2.0}]
    assert curves(rows)["series"]["a"] == {"at": [0, 1, 3], "y": [1.0, None, 2.0]}
    assert final_numbers([*rows, {"step": 5, "a": None}])["step"] == 5


def test_hours_go_on_when_a_run_is_resumed_by_a_process_with_a_new_clock():
    rows = [{"step": i, "time/elapsed": seconds} for i, seconds in enumerate((1800, 3600, 360, 720))]
    assert curves(rows)["hours"] == pytest.approx([0.5, 1.0, 1.1, 1.2])


def test_final_numbers_are_the_last_known_ones():
    rows = [
        {"step": 0, "charts/SPS": 20.0, "eval/return": 7.0},
        {"step": 1, "charts/SPS": 10.0, "eval/return": 3.0},
        {"step": 2, "charts/SPS": 30.0, "eval/return": None},
        {"step": 3, "charts/SPS": 20.0},
    ]
    finals = final_numbers(rows)
    assert (finals["eval/return"], finals["speed"], finals["coverage/places"]) == (3.0, 20.0, None)
    assert set(final_numbers([]).values()) == {None}


def test_final_numbers_say_at_which_step_they_were_taken():
    rows = [
        {"step": 10, "eval/return": 1.0, "coverage/places": 3},
        {"step": 20, "eval/return": None, "coverage/places": 5},
        {"step": 30, "coverage/places": 5},
    ]
    assert steps_of_finals(rows) == {"coverage/places": 30, "eval/return": 10}
    assert steps_of_finals([]) == {}
