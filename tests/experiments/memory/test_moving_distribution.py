"""The figure shows what it says: the short memory follows, the long one remembers."""

import numpy as np
import pytest

from experiments.memory import moving_distribution as demo


@pytest.fixture(scope="module")
def row():
    return {"seed": 0, **demo.measure(seed=0)}


def test_blobs_circle_at_radius_three():
    rng = np.random.default_rng(0)
    for t, angle in [(0, 0.5), (400, 0.5 + 4 * np.pi / 3)]:
        points = demo.blobs(t, 20_000, rng)
        mean = points.mean(axis=0)
        assert np.arctan2(mean[1], mean[0]) % (2 * np.pi) == pytest.approx(angle, abs=0.02)
        assert np.linalg.norm(points, axis=1).mean() == pytest.approx(3.0, abs=0.05)


def test_the_short_memory_follows_and_the_long_one_remembers(row):
    short, long = row["memories"].values()
    assert np.mean(short["trail"][-100:]) < 0.5
    assert np.mean(long["trail"][-100:]) > 2.0


def test_counts_of_the_short_memory_lie_where_the_data_are(row):
    fractions = []
    for record in row["memories"].values():
        atoms, counts = np.array(record["atoms"][-1]), np.array(record["counts"][-1])
        near = ((atoms[:, None] - np.array(row["data"][-1])[None]) ** 2).sum(-1).min(axis=1) < 0.5**2
        fractions.append(counts[near].sum() / counts.sum())
    assert fractions[0] > 0.9
    assert fractions[1] < 0.5


def test_maps_show_atoms_and_the_panel_below_every_seed(row):
    backwards = {name: {**x, "trail": x["trail"][::-1]} for name, x in row["memories"].items()}
    rows = [row, {**row, "seed": 1, "memories": backwards}]
    panels = demo.plot(rows).axes
    first = next(iter(row["memories"].values()))
    np.testing.assert_allclose(panels[0].collections[0].get_offsets(), first["atoms"][0])
    below = next(axes for axes in panels if axes.get_ylabel() == "distance of means")
    np.testing.assert_array_equal(below.lines[1].get_ydata(), first["trail"][::-1])
    near, far = np.mean(first["trail"][-100:]), np.mean(first["trail"][:100])
    assert demo.describe(rows)[0].endswith(f"the last 100 steps {near:.2f} / {far:.2f}")
