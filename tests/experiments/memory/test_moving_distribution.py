"""The demo shows what it says: the short memory follows, the long one remembers."""

import json

import numpy as np
import pytest

from experiments.memory import moving_distribution as demo


@pytest.fixture(scope="module")
def results():
    return demo.run(seed=0)


def test_blobs_circle_at_radius_three():
    rng = np.random.default_rng(0)
    for t, angle in [(0, 0.5), (400, 0.5 + 4 * np.pi / 3)]:
        points = demo.blobs(t, 20_000, rng)
        mean = points.mean(axis=0)
        assert np.arctan2(mean[1], mean[0]) % (2 * np.pi) == pytest.approx(angle, abs=0.02)
        assert np.linalg.norm(points, axis=1).mean() == pytest.approx(3.0, abs=0.05)


def test_the_short_memory_follows_and_the_long_one_remembers(results):
    records, _ = results
    short, long = records.values()
    assert np.mean(short.trail[-100:]) < 0.5
    assert np.mean(long.trail[-100:]) > 2.0


def test_counts_of_the_short_memory_lie_where_the_data_are(results):
    records, data = results
    fractions = []
    for record in records.values():
        atoms, counts = record.atoms[-1].astype(float), record.counts[-1]
        near = ((atoms[:, None] - data[-1][None]) ** 2).sum(-1).min(axis=1) < 0.5**2
        fractions.append(counts[near].sum() / counts.sum())
    assert fractions[0] > 0.9
    assert fractions[1] < 0.5


def test_the_picture_is_saved_and_explained(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "NUM_STEPS", 20)
    monkeypatch.setattr(demo, "MOMENTS", (5, 20))
    demo.main(["--out", str(tmp_path), "--images", str(tmp_path / "images"), "--seeds", "0", "4"])
    found = json.loads((tmp_path / "moving_distribution.json").read_text())
    for name, trails in found["trails"].items():
        for seed, trail in zip((0, 4), trails, strict=True):
            np.testing.assert_allclose(trail, demo.run(seed)[0][name].trail, atol=1e-4)
    assert (tmp_path / "images" / "moving_distribution.svg").exists()
    assert "centre of mass" in capsys.readouterr().out


def test_maps_show_atoms_and_the_panel_below_every_seed(results):
    records, data = results
    trails = {name: [record.trail, record.trail[::-1]] for name, record in records.items()}
    panels = demo.draw(records, data, trails).axes
    first = next(iter(records.values()))
    np.testing.assert_allclose(panels[0].collections[0].get_offsets(), first.atoms[0])
    below = next(axes for axes in panels if axes.get_ylabel() == "distance of means")
    np.testing.assert_array_equal(below.lines[1].get_ydata(), first.trail[::-1])
