"""What is drawn and counted of training runs, on rows made by hand."""

import numpy as np
import pytest

from experiments.agent import coverage
from experiments.drawing import new_figure


def row(name, seed, first_seen, visits, scores=None, first_goal=None):
    snapshot = {"step": 100, "visits": visits} | ({} if scores is None else {"scores": scores})
    early = {"step": 50, "visits": [1, 0, 0, 0]} | ({} if scores is None else {"scores": [1, 2, 3, 4]})
    return {
        "name": name, "seed": seed, "steps": 100, "num_places": 4, "first_seen": first_seen,
        "first_goal": first_goal, "snapshots": [early, snapshot],
    }  # fmt: skip


ROWS = [
    row("A", 0, [10, 0, 50, 100], [90, 0, 9, 1], [0.1, 0.9, 0.2, 0.5], first_goal=100),
    row("A", 1, [20, 0, 0, 0], [100, 0, 0, 0], [0.5, 0.1, 0.2, 0.3]),
    row("B", 0, [100, 0, 0, 0], [100, 0, 0, 0]),
]


def test_agreement_is_one_where_rarer_places_are_paid_more():
    assert coverage.agreement(ROWS[0]["snapshots"][1]) == pytest.approx(1.0)
    assert coverage.agreement({"visits": [1, 2, 3], "scores": [0.1, 0.2, 0.3]}) == pytest.approx(-1.0)
    assert coverage.agreement({"visits": [1]}) is None


def test_contrast_is_the_median_over_moments_of_the_first_half_of_new_over_known_pay():
    def contrast(*moments, steps=100):
        names = ("step", "visits", "scores")
        return coverage.contrast(
            {"steps": steps, "snapshots": [dict(zip(names, moment)) for moment in moments]}
        )

    early = 10, [5, 4, 1, 0, 0, 0], [0.1, 0.2, 0.5, 2, 3, 4]  # 3 over 0.2
    later = 50, [5, 4, 1, 1, 0, 0], [0.1, 0.2, 0.3, 0.3, 1, 2]  # 1.5 over 0.25
    too_late = 60, [5, 4, 1, 1, 0, 0], [0.1, 0.2, 0.3, 0.3, 9, 9]
    assert contrast(early) == pytest.approx(15)
    assert contrast(early, later, too_late) == pytest.approx((15 + 6) / 2)
    assert contrast(too_late, steps=120) == pytest.approx(36)
    all_known, nothing_paid = (20, [1, 2], [0.5, 0.1]), (30, [1, 0], [0, 0])
    assert contrast(all_known, nothing_paid, too_late) is None
    assert contrast(all_known, early) == pytest.approx(15)
    assert coverage.contrast(ROWS[2]) is None  # of a bonus that scores no places


def test_coverage_counts_places_from_the_step_they_were_seen_at():
    np.testing.assert_array_equal(
        coverage.coverage_at(ROWS[0], np.array([9, 10, 49, 50, 99, 100])), [0, 0.25, 0.25, 0.5, 0.5, 0.75]
    )


def test_the_area_is_the_mean_coverage_over_the_run():
    """By hand: 0 until 10, a quarter until 50, a half until 100."""
    assert coverage.area(ROWS[0]) == pytest.approx(0.4 * 0.25 + 0.5 * 0.5, abs=2e-3)
    assert coverage.area(ROWS[2]) == pytest.approx(0.0, abs=1e-3)


def test_curves_are_one_thin_line_a_seed_and_a_thick_mean():
    axes = new_figure(3, 3).subplots()
    coverage.draw_coverage(axes, ROWS, {"A": "first"})
    lines = axes.lines
    assert [line.get_linewidth() for line in lines] == [0.7, 0.7, 2, 0.7, 2]
    np.testing.assert_allclose(lines[2].get_ydata()[-1], (0.75 + 0.25) / 2)
    np.testing.assert_allclose(lines[0].get_xdata()[[0, -1]], [0, 100])
    assert axes.get_legend_handles_labels()[1] == ["first (2 seeds)", "B (1 seed)"]


def test_agreement_is_drawn_for_bonuses_that_score_places():
    axes = new_figure(3, 3).subplots()
    coverage.draw_agreement(axes, ROWS, {})
    first, second, mean = axes.lines[:3]
    expected = [[coverage.agreement(s) for s in r["snapshots"]] for r in ROWS[:2]]
    np.testing.assert_allclose([first.get_ydata(), second.get_ydata()], expected)
    np.testing.assert_allclose(mean.get_ydata(), np.mean(expected, axis=0))
    assert len(axes.lines) == 4  # the fourth is the line at nought


def test_a_line_of_text_has_every_seed():
    first, second = coverage.describe_runs(ROWS, {"A": "first"})
    assert first == (
        "first: places 3 / 1 of 4; area 0.35 / 0.20; goal first at 100 / -; ρ 1.00 / -0.77; "
        "new over known 3.0 / 3.0"
    )
    assert second == "B: places 1 of 4; area 0.00; goal first at -"
