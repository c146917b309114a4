"""Scores of many runs put together: by hand, and from run folders."""

import json
from dataclasses import replace

import numpy as np
import pytest
from launch.test_local import TINY

from experiments import figure as figures
from experiments.agent import scores as aggregate
from experiments.agent.scores import Course
from softcount import scores
from softcount.runs.run import Run

RANGES = {"low": scores.Range(0.0, 10.0), "high": scores.Range(100.0, 200.0)}


def course(agent, task, seed, *returns):
    return Course(agent, task, seed, 100.0 * np.arange(1, 1 + len(returns)), np.array(returns, float))


COURSES = [
    course("A", "low", 0, 0, 5), course("A", "low", 1, 0, 20),
    course("A", "high", 0, 100, 150), course("A", "high", 1, 100, 50),
]  # fmt: skip


def test_a_score_is_that_of_the_last_evaluation():
    found = course("A", "low", 0, 3, 7).at(np.array([50.0, 100.0, 199.0, 200.0, 900.0]))
    np.testing.assert_array_equal(found, [np.nan, 3, 3, 7, 7])


def test_aggregates_are_those_of_the_normalised_scores():
    """By hand: HNS at the end are 0.5, 2 and 0.5, −0.5; capped 0.5, 1 and 0.5, 0."""
    found = aggregate.aggregate(COURSES, RANGES)
    own = found["agents"]["A"]
    assert (found["steps"][0], found["steps"][-1]) == (100, 200)
    assert own["final"] == {"low": [5, 20], "high": [150, 50]}
    assert own["mean"][0][0] == 0.0
    assert own["mean"][-1][0] == pytest.approx((0.5 + 2 + 0.5 - 0.5) / 4)
    assert own["capped"][-1][0] == pytest.approx(0.5)
    assert own["iqm"][-1][0] == pytest.approx(0.5)
    matrix = np.array([[0.5, 0.5], [2.0, -0.5]])  # seeds by tasks
    assert own["mean"][-1] == list(scores.with_interval(matrix, scores.mean))
    axes = aggregate.plot([found]).axes[1]
    np.testing.assert_allclose(axes.lines[0].get_ydata(), [x[0] for x in own["capped"]])
    assert "    low: 12.5 ± 7.5" in aggregate.describe([found])


def test_holes_and_unknown_tasks_are_refused():
    with pytest.raises(ValueError, match="A has no run of high seed 1"):
        aggregate.aggregate(COURSES[:3], RANGES)
    with pytest.raises(ValueError, match="no human score is known for maze"):
        aggregate.aggregate([course("A", "maze", 0, 1.0)], RANGES)
    late = Course("A", "low", 1, np.array([900.0]), np.array([1.0]))
    with pytest.raises(ValueError, match="ends at step 200, before another's first evaluation at 900"):
        aggregate.aggregate([*COURSES, late], RANGES)


def test_runs_are_read_and_their_scores_left(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(aggregate.SUITES, "atari", {TINY.env: scores.Range(0.0, 1.0)})
    with pytest.raises(ValueError, match=r"no evaluated runs below runs/paper.*--scale paper` trains them"):
        figures.make("scores_atari")
    for seed in range(2):
        config = replace(TINY, seed=seed, steps=200, report_every=100, evaluate_every=100)
        run = Run.create(tmp_path / "runs/paper/atari" / str(seed), config)
        last = [metrics["eval/return"] for _, metrics in run.train() if "eval/return" in metrics][-1]
        run.close()
    figures.make("scores_atari", say=lambda _: None)
    found = json.loads((tmp_path / "results/figures/scores_atari.json").read_text())
    assert found["agents"][TINY.agent]["final"][TINY.env][1] == pytest.approx(last)
    assert (tmp_path / "docs/images/figures/scores_atari.svg").exists()


def test_the_figures_of_scores_read_what_the_papers_runs_leave():
    from experiments.paper_scale import EXPERIMENTS

    for name, suite in (("scores_atari", "atari"), ("scores_dm_hard_8", "dm_hard_8")):
        (job,) = figures.find(name).jobs()
        assert job.key == name
        own, folders = job.measure.args
        assert own == suite
        for folder in folders:
            experiment = EXPERIMENTS[folder.name]
            config = next(experiment.runs())
            assert experiment.folder(config).startswith(f"{folder}/")
            assert config.env.split("/")[-1] in aggregate.SUITES[suite]
