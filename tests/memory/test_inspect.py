"""The numbers and pictures of a memory, against arithmetic by hand."""

import math
import sys

import numpy as np
import pytest

from softcount import RecodeConfig, RecodeMemory
from softcount.memory import inspect

CONFIG = RecodeConfig(size=8, dim=2, neighbours=2, warmup_atoms=4, insertion_probability=0.0)


@pytest.fixture
def memory():
    """Four atoms at the corners of a square of side 3, the first visited three more times."""
    memory = RecodeMemory(CONFIG, engine="numpy")
    memory.observe([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0], [3.0, 3.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    return memory


def test_the_summary_says_what_is_there(memory):
    numbers = inspect.summary(memory)
    g = CONFIG.embedding_discount
    counts = [g**6 + g**2 + g + 1, g**5, g**4, g**3]
    total = sum(counts)
    entropy = -sum(c / total * math.log(c / total) for c in counts)
    assert numbers["num_atoms"] == 4
    assert numbers["fill"] == 0.5
    assert numbers["num_observed"] == 7
    assert numbers["total_count"] == pytest.approx(total, rel=1e-12)
    assert numbers["effective_atoms"] == pytest.approx(math.exp(entropy), rel=1e-12)
    assert [numbers[f"age_p{p}"] for p in (0, 10, 50, 90, 100)] == pytest.approx([4, 4.3, 5.5, 6.7, 7])
    assert numbers["log_count_p100"] == pytest.approx(math.log(counts[0]))
    assert numbers["log_count_p0"] == pytest.approx(math.log(counts[1]))
    assert numbers["d2_ema"] == memory.d2_ema
    assert numbers["bytes_per_atom"] == memory.bytes / 8
    assert all(isinstance(value, float) for value in numbers.values())


def test_an_empty_memory_has_a_summary_too():
    numbers = inspect.summary(RecodeMemory(CONFIG, engine="numpy"))
    assert numbers["num_atoms"] == numbers["effective_atoms"] == numbers["age_p50"] == 0.0


def test_the_effective_number_of_atoms_runs_from_one_to_all():
    assert inspect.effective_number(np.full(7, -1e6)) == pytest.approx(7)
    assert inspect.effective_number(np.array([0.0, -1e6, -1e6])) == pytest.approx(1)
    assert inspect.effective_number(np.log([1.0, 1.0, 1e-300])) == pytest.approx(2)


def test_the_count_histogram_counts_all_atoms_in_decades(memory):
    numbers, edges = inspect.count_histogram(memory, num_bins=10)
    assert numbers.sum() == 4
    assert numbers[-1] == 1
    assert numbers[0] == 3
    assert edges[-1] == pytest.approx(np.log10(memory.counts.max()))


def test_the_projection_finds_the_two_widest_directions():
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    hidden = rng.standard_normal((500, 6)) * [0.1, 5.0, 0.1, 2.0, 0.1, 0.1]
    flat = inspect.project_2d(hidden @ axes.T + 7.0)
    left, singular, _ = np.linalg.svd(hidden - hidden.mean(0))
    np.testing.assert_allclose(np.abs(flat), np.abs(left[:, :2] * singular[:2]), atol=1e-9)
    assert flat.std(0) == pytest.approx([5, 2], rel=0.1)
    np.testing.assert_allclose(flat, inspect.project_2d(hidden @ axes.T + 7.0))


def test_points_can_be_projected_with_the_axes_of_others():
    reference = np.array([[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, -0.5, 0.0]])
    flat = inspect.project_2d(np.array([[3.0, 4.0, 9.0]]), onto=reference)
    np.testing.assert_allclose(flat, [[3.0, 4.0]], atol=1e-12)


def test_lines_project_too():
    np.testing.assert_allclose(inspect.project_2d(np.array([[1.0], [3.0]])), [[-1.0, 0.0], [1.0, 0.0]])
    with pytest.raises(ValueError, match=r"\(0, 3\)"):
        inspect.project_2d(np.zeros((0, 3)))


def test_nearest_atoms_and_coverage(memory):
    reference = np.array([[0.1, 0.0], [2.9, 3.1], [1.5, 1.4], [0.0, 2.0]])
    index, d2 = inspect.nearest_atoms(memory.atoms, reference)
    assert index.tolist() == [0, 3, 0, 2]
    np.testing.assert_allclose(d2, [0.01, 0.02, 4.21, 1.0], rtol=1e-6)
    assert inspect.coverage(memory, reference, radius2=0.015) == 0.25
    assert inspect.coverage(memory, reference, radius2=1.0) == 0.75
    assert inspect.coverage(memory, memory.atoms) == 1.0
    radius2 = CONFIG.far_tolerance * memory.d2_ema
    edge = np.array([[-0.999 * radius2**0.5, 0.0], [-1.001 * radius2**0.5, 0.0]])
    assert inspect.coverage(memory, edge) == 0.5
    assert inspect.coverage(RecodeMemory(CONFIG, engine="numpy"), reference) == 0.0


def test_pictures_show_every_atom(memory, tmp_path):
    figure = inspect.draw_memory(memory)
    figure.savefig(tmp_path / "memory.png")
    assert (tmp_path / "memory.png").stat().st_size > 10_000
    by_counts, by_ages = figure.axes[0].collections[0], figure.axes[1].collections[0]
    np.testing.assert_array_equal(by_counts.get_offsets(), memory.atoms)
    np.testing.assert_array_equal(by_counts.get_array(), memory.counts)
    np.testing.assert_array_equal(by_ages.get_array(), memory.ages)
    assert by_counts.get_sizes().argmax() == 0
    assert sum(patch.get_height() for patch in figure.axes[3].patches) == 4
    with pytest.raises(ValueError, match="by is 'size'"):
        inspect.draw_atoms(figure.axes[0], memory, by="size")


def test_without_matplotlib_the_extra_to_install_is_named(memory, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"\.\[plots\]"):
        inspect.draw_memory(memory)


def test_axes_are_turned_to_those_before():
    rng = np.random.default_rng(0)
    flat = rng.normal(size=(200, 2)) @ np.array([[1.0, 0.0], [0.0, 1.01]])  # which axis is first is chance
    points = np.pad(flat, ((0, 0), (0, 3)))
    before = inspect.principal_axes(points)
    angle = np.linspace(0, np.pi, 7)
    for a in angle:
        turned = before @ np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]])
        np.testing.assert_allclose(inspect.principal_axes(points, like=turned), turned, atol=1e-9)
    np.testing.assert_allclose(
        inspect.project_2d(points, axes=before), inspect.project_2d(points), atol=1e-12
    )
    other = inspect.principal_axes(rng.normal(size=(50, 5)), like=before)
    np.testing.assert_allclose(other.T @ other, np.eye(2), atol=1e-9)
