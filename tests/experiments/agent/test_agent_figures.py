"""Figures made of training runs: their jobs, and what they draw and say of rows made by hand."""

import numpy as np
import pytest

from experiments.agent import bonuses, clusters, discount, knobs, noise, removal_rules, representations
from experiments.agent.coverage import area, coverage_at
from experiments.memory import ages, cost
from softcount.memory import RecodeConfig


def row(name, seed=0, first_seen=(1, 40, 90, 0), length=5.0):
    snapshots = [
        {
            "step": step,
            "visits": [step, *rest],
            "scores": [0.1, 0.2, 0.3, 0.4],
            "atoms": atoms,
            "counts": [float(x) for x in atoms],
            "episodic_length": length,
        }
        for step, rest, atoms in ((50, [5, 0, 0], [4, 0, 0, 0]), (100, [9, 3, 0], [1, 1, 2, 0]))
    ]
    return {
        "name": name, "seed": seed, "steps": 100, "num_places": 4, "cells": [[0, 0], [0, 1], [1, 0], [1, 1]],
        "map_shape": [2, 2], "first_seen": list(first_seen), "first_goal": None, "snapshots": snapshots,
        "ages": [1, 100, 200, 1000], "config": {"num_envs": 8},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("module", "num"),
    [(bonuses, 7), (noise, 6), (removal_rules, 3), (discount, 4), (representations, 10), (knobs, 13)],
)
def test_every_comparison_has_three_seeds_of_everything_and_draws_coverage(module, num):
    todo = module.FIGURE.jobs()
    names = [job.settings["name"] for job in todo]
    assert len(set(names)) == num
    assert {names.count(name) for name in names} == {3}
    assert [job.seed for job in todo] == sorted(job.seed for job in todo)  # seeds outermost
    rows = [row(name, first_seen=(1, 2 + i, 0, 0)) for i, name in enumerate(dict.fromkeys(names))]
    figure = module.FIGURE.plot(rows)
    drawn = [line.get_ydata() for axes in figure.axes for line in axes.lines]
    if module is knobs:
        assert any(np.allclose(ys, area(rows[0])) for ys in drawn if len(ys) == 1)
    else:
        expected = coverage_at(rows[0], np.linspace(0, 100, 301))
        assert np.array_equal(drawn[0], expected)
    assert len(module.FIGURE.describe(rows)) == num + (3 if module is noise else 0)


def test_noise_is_told_by_what_it_leaves_of_an_agents_own_coverage():
    rows = [
        row("colours-RND", first_seen=(1, 1, 1, 1)),
        row("noise-RND", first_seen=(1, 1, 0, 0)),
        row("colours-RND", seed=1, first_seen=(1, 1, 0, 0)),
        row("noise-RND", seed=1, first_seen=(1, 1, 0, 0)),
        row("noise-RECODE-AP"),  # nothing to compare it with
    ]
    assert noise.describe(rows)[-1] == "RND: area with noise over area without 0.50 / 1.00"
    assert sum("over area without" in line for line in noise.describe(rows)) == 1
    left, right = noise.plot(rows).axes
    assert left.lines[0].get_ydata()[-1] == 1.0
    assert right.lines[0].get_ydata()[-1] == 0.5


def test_what_is_compared_differs_as_its_name_says():
    configs = {job.settings["name"]: job for job in discount.FIGURE.jobs()}
    assert list(configs) == list(discount.LABELS)
    assert discount.SETTINGS["moving-discount-off"]["recode.memory.count_discount"] == 1.0
    assert discount.SETTINGS["moving-discount-on"]["trainer.acting"] == "latest"
    assert set(removal_rules.RULES.values()) == {"inverse_square", "inverse", "smallest"}


def test_evenness_is_the_effective_share_of_places():
    assert clusters.evenness([5, 5, 5, 5]) == 1.0
    assert clusters.evenness([7, 0, 0, 0]) == 0.25
    assert clusters.evenness([0, 0]) == 0.0
    p = np.array([0.5, 0.25, 0.25])
    assert clusters.evenness([2, 1, 1, 0]) == pytest.approx(np.exp(-(p * np.log(p)).sum()) / 4)


def test_clusters_are_drawn_where_their_places_are():
    rows = [row("RECODE-AP", seed) for seed in range(2)]
    figure = clusters.plot(rows)
    maps = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    np.testing.assert_array_equal(maps[0], [[4, 0], [0, 0]])
    np.testing.assert_array_equal(maps[-1], [[1, 1], [2, 0]])
    curves = [axes.lines for axes in figure.axes if axes.lines]
    np.testing.assert_allclose(curves[0][0].get_ydata(), [0.25, clusters.evenness([1, 1, 2, 0])])
    text = clusters.describe(rows)
    assert text[0] == "evenness of atoms: 0.25 / 0.25 at first, 0.71 / 0.71 at the end"
    assert text[-1] == "places with an atom at the end: 3 / 3 of 4"


def test_ages_are_compared_with_what_a_fleet_sends_in_an_episode():
    """By hand: episodes of 5 steps of 8 actors are 40 embeddings; three of four atoms are older."""
    rows = [row("RECODE-AP")]
    assert ages.episode_of(rows[0]) == 40
    assert ages.describe(rows) == [
        "seed 0: 75% of atoms older than an episode (40 embeddings); median 4 episodes, oldest 25"
    ]
    axes = ages.plot(rows).axes[0]
    assert sum(patch.get_height() for patch in axes.patches) == 4
    assert axes.lines[0].get_xdata()[0] == 40


def test_the_stream_of_ages_counts_all_atoms():
    config = RecodeConfig(size=300, dim=4, insertion_probability=0.5, far_tolerance=0.0)
    found = ages.measure_stream(0, 64 * 40, config)
    numbers, edges = found["histogram"]
    assert found["atoms"] == 300
    assert sum(numbers) == round(300 * found["replaced"])
    assert found["replaced"] > 0.8  # about 1280 insertions into 300 slots
    assert edges[-1] == 64 * 40
    assert found["percentiles"] == sorted(found["percentiles"])
    rows = [{"seed": 0, **found}]
    steps = ages.plot_stream(rows).axes[0].patches[0].get_data()
    np.testing.assert_array_equal(steps.values, numbers)
    assert found["percentiles"][-1] <= 64 * 40  # of what was there before nothing is told
    assert ages.describe_stream([rows[0] | {"episode": 100.0, "percentiles": [1, 2, 300, 4, 500]}]) == [
        f"seed 0: {found['replaced']:.0%} of 300 atoms were inserted during the run; of these "
        f"{found['older_than_an_episode']:.0%} are older than an episode, "
        "median age 3 episodes, 95th percentile 5"
    ]


def test_costs_are_measured_per_embedding_and_drawn():
    small = cost.measure_recode(400, 0, seconds=0.01)
    episodic = cost.measure_episodic(100, 0, seconds=0.01)
    assert 0 < small["microseconds"] < 1e4
    assert small["bytes"] > 400 * 32 * 4
    assert episodic["bytes"] >= 64 * 100 * 32 * 4
    rows = [
        {"seed": 0, "bonus": "recode", "size": 400, "microseconds": 8.0, "bytes": 2**20},
        {"seed": 1, "bonus": "recode", "size": 400, "microseconds": 9.0, "bytes": 2**20},
        {"seed": 0, "bonus": "episodic", "size": 100, "microseconds": 40.0, "bytes": 2**21},
    ]
    left, right = cost.plot(rows).axes
    np.testing.assert_array_equal(left.lines[0].get_ydata(), [8, 9])
    np.testing.assert_array_equal(right.lines[1].get_ydata(), [2])
    assert cost.describe(rows) == [
        "recode 400: 8.0 / 9.0 µs per embedding, 1.0 MiB",
        "episodic 100: 40.0 µs per embedding, 2.0 MiB",
    ]
