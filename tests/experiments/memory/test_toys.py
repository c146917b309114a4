"""The two toy figures: what is measured, on runs of seconds and by hand."""

import numpy as np
import pytest

from experiments.memory import discount_toy, removal_toy
from softcount import RecodeConfig, RecodeMemory


@pytest.fixture(scope="module")
def removal_rows():
    rows = []
    for job in removal_toy.jobs():
        if job.seed == 0:
            measured = removal_toy.measure(job.settings["removal"], job.settings["reading"], 0, (40, 120))
            rows.append({"seed": 0, **job.settings, **measured})
    return rows


def test_atoms_are_described_by_where_they_are_and_how_counts_vary():
    memory = RecodeMemory(RecodeConfig(size=4, dim=2), engine="numpy")
    memory.observe(np.float32([[10, 20], [60, 20], [90, 90], [30, 40]]))
    coordinate, in_corner, variation = removal_toy.describe_atoms(memory)
    counts = memory.counts
    assert coordinate == pytest.approx(45)
    assert in_corner == pytest.approx(0.5)
    assert variation == pytest.approx(counts.std() / counts.mean())


def test_the_removal_toy_keeps_course_and_states_at_its_moments(removal_rows):
    row = removal_rows[0]
    assert [point[0] for point in row["course"]] == list(range(20, 121, 20))
    assert [state["t"] for state in row["states"]] == [40, 120]
    atoms = np.array(row["states"][0]["atoms"])
    assert atoms.shape == (64, 2)
    assert atoms.max() <= 40  # the square had side t
    assert row["course"][-1][1] == pytest.approx(np.mean(row["states"][1]["atoms"]), abs=0.01)


def test_the_smallest_count_is_the_most_skewed_from_early_on(removal_rows):
    ends = {(r["reading"], r["removal"]): r["course"][-1] for r in removal_rows}
    for reading in removal_toy.READINGS:
        assert ends[reading, "smallest"][1] < ends[reading, "inverse_square"][1] < ends[reading, "inverse"][1]
        assert ends[reading, "smallest"][2] > ends[reading, "inverse_square"][2]


def test_the_removal_picture_shows_atoms_and_courses(removal_rows):
    figure = removal_toy.plot(removal_rows)
    scatters = [axes for axes in figure.axes if axes.collections]
    courses = [axes for axes in figure.axes if not axes.collections]
    assert len(scatters) == 3 * 2
    np.testing.assert_allclose(
        scatters[0].collections[0].get_offsets(), removal_rows[0]["states"][0]["atoms"]
    )
    assert len(courses) == 3 * len(removal_toy.READINGS)
    mean_line = courses[0].lines[1]  # after the one seed's thin line
    np.testing.assert_allclose(mean_line.get_ydata(), [point[1] for point in removal_rows[0]["course"]])
    text = removal_toy.describe(removal_rows)
    assert text[0] == (
        f"letter, 1/c²: mean coordinate {removal_rows[0]['course'][-1][1]:.1f}; "
        f"in corner {removal_rows[0]['course'][-1][2]:.2f}; variation {removal_rows[0]['course'][-1][3]:.2f}"
    )


def test_targets_of_the_discount_toy_are_those_of_uniform_squares():
    rng = np.random.default_rng(0)
    sides = 1 + np.sqrt(rng.integers(101, size=200_000))
    points = rng.random((200_000, 2)) * sides[:, None]
    assert discount_toy.ALL[0] == pytest.approx(points.mean(), abs=0.01)
    assert discount_toy.ALL[1] == pytest.approx((points < 5.5).all(axis=1).mean(), abs=0.01)
    assert discount_toy.LAST == (11 / 2, 0.25)


def test_discount_interpolates_between_the_last_square_and_all():
    rows = [{"seed": 0, "discount": d, **discount_toy.measure(d, 0)} for d in discount_toy.DISCOUNTS]
    centres = [row["centre"] for row in rows]
    assert centres[0] == pytest.approx(discount_toy.LAST[0], abs=0.3)
    assert centres[-1] == pytest.approx(discount_toy.ALL[0], abs=0.2)
    assert all(np.diff(centres) < 0)
    counts, atoms = np.array(rows[0]["counts"]), np.array(rows[0]["atoms"])
    assert rows[0]["centre"] == pytest.approx((counts @ atoms / counts.sum()).mean(), abs=1e-3)
    figure = discount_toy.plot(rows)
    below = figure.axes[len(rows)]
    drawn = [line.get_ydata()[0] for line in below.lines[: len(rows)]]
    np.testing.assert_allclose(drawn, centres)
    assert f"γ = 0.9: centre {centres[1]:.2f}; mass in corner" in discount_toy.describe(rows)[2]
