"""Training runs behind the figures: what is asked of them, and that a stopped one goes on."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from kept_results import read_kept, resolved
from launch.test_local import TINY

from experiments import runs
from experiments.agent import maze_runs
from experiments.agent.coverage import agreement
from experiments.figure import all_figures
from experiments.jobs import path_of
from softcount.config import with_fields
from softcount.config_json import from_json
from softcount.envs.disco_maze import AGENT, PALETTE
from softcount.launch.build import make_env
from softcount.runs.run import make_loop

ROOT = Path(__file__).parents[3]
MAZE = {"size": 7, "layout": 1, "observation": "palette"}
SMALL = replace(TINY, env_options=MAZE, steps=80, report_every=20, checkpoint_seconds=1e9, evaluate_every=0)


def loop_of(config, steps):
    loop = make_loop(with_fields(config, {"meme.relabel": False, "overlap": False}))
    for _ in range(steps):
        loop.step()
    return loop


def test_every_place_is_seen_from_itself():
    env = make_env(SMALL, 1, 0)
    views = maze_runs.views_of_places(SMALL)
    assert len(views) == maze_runs.DRAWINGS
    for view in views:
        found = [tuple(np.argwhere(image == AGENT)[0]) for image in view]
        assert found == [env.cell_of(place) for place in range(env.num_places)]
    assert not np.array_equal(views[0], views[1])  # walls are drawn anew


def test_noise_and_windows_are_seen_as_the_agent_sees_them():
    noisy = replace(SMALL, env="noisy-disco-maze", env_options={"size": 7, "layout": 1})
    first, second = maze_runs.views_of_places(noisy)[:2]
    assert first.shape[1:] == (14, 7, 3)
    assert (first[:, 7:] != second[:, 7:]).mean() > 0.9
    is_agent = (first[:, :7] == PALETTE[AGENT]).all(axis=-1)
    assert (is_agent.sum(axis=(1, 2)) == 1).all()
    window = maze_runs.views_of_places(replace(SMALL, env_options=MAZE | {"window": 3}))[0]
    assert window.shape[1:] == (3, 3)
    assert (window[:, 1, 1] == AGENT).all()


def test_a_snapshot_asks_the_memory_about_every_place():
    loop = loop_of(SMALL, 40)
    views = maze_runs.views_of_places(SMALL)
    snapshot = maze_runs.take_snapshot(loop, views)
    (memory,) = loop.roles.memory.bonus.memories().values()
    inference = loop.roles.inference
    embeddings = [inference.embed(view).embedding for view in views]
    paid = [memory.score(e).astype(np.float32) for e in embeddings]  # as bonuses pay
    scores = np.mean(paid, axis=0, dtype=np.float64)
    assert snapshot["scores"] == scores.round(6).tolist()
    assert snapshot["visits"] == loop.coverage.visits.tolist()
    assert sum(snapshot["atoms"]) == len(memory)
    assert sum(snapshot["counts"]) == pytest.approx(memory.counts.sum(), abs=0.01)
    atom = memory.atoms[0].astype(float)
    nearest = min(
        range(len(views[0])), key=lambda place: min(((e[place] - atom) ** 2).sum() for e in embeddings)
    )
    assert snapshot["atoms"][nearest] >= 1


def test_true_counts_agree_with_themselves_and_episodic_bonuses_score_no_places():
    loop = loop_of(replace(SMALL, agent="MEME-COUNT"), 30)
    snapshot = maze_runs.take_snapshot(loop, maze_runs.views_of_places(SMALL))
    # counts leave out last observations, which this preset does not show to the memory
    visits = np.zeros(len(snapshot["scores"]))
    visits[: len(loop.roles.memory.bonus.counts)] = loop.roles.memory.bonus.counts
    paid = np.float32((visits + 1.0) ** -0.5).astype(np.float64)  # as bonuses pay, in single precision
    assert snapshot["scores"] == paid.round(6).tolist()
    assert agreement(snapshot) > 0.9
    episodic = loop_of(with_fields(SMALL, {"agent": "MEME-EMM-AP", "meme.relabel": False}), 3)
    assert set(maze_runs.take_snapshot(episodic, maze_runs.views_of_places(SMALL))) == {"visits"}


def test_a_summary_says_where_places_are_and_when_each_was_seen(tmp_path):
    summary = runs.train_here(SMALL, tmp_path / "run", maze_runs.Places())
    maze = make_env(SMALL, 1, 0)
    assert summary["num_places"] == maze.num_places == len(summary["cells"])
    assert [maze.distances[tuple(cell)] for cell in summary["cells"]] == summary["distances"]
    seen = [first > 0 for first in summary["first_seen"]]
    assert seen == [visits > 0 for visits in summary["snapshots"][-1]["visits"]]
    assert from_json(json.dumps(summary["config"])) == SMALL
    assert len(summary["ages"]) == sum(summary["snapshots"][-1]["atoms"])


def test_other_bonuses_learn_as_in_their_papers_and_only_shared_ones_are_relabelled():
    recode, ngu, rnd = (maze_runs.maze_config(f"MEME-{x}", 2) for x in ("RECODE-AP", "NGU-AP", "RND"))
    assert recode.trainer.acting == "slow"
    assert (ngu.trainer.acting, ngu.trainer.schedule) == ("latest", "constant")
    assert (recode.meme.relabel, ngu.meme.relabel, rnd.meme.relabel) == (True, False, True)
    assert recode.recode.normaliser.kind == "none"
    assert rnd.surprise is None
    assert recode.env_options["layout"] == 12


def test_committed_results_are_of_the_configurations_that_the_figures_have_now(monkeypatch):
    monkeypatch.setattr(runs, "train", lambda config, folder, **_: config)
    figures = [figure for figure in all_figures().values() if figure.folder == maze_runs.FOLDER]
    jobs = {job.key: job for figure in figures for job in figure.jobs()}
    results = {key: ROOT / path_of(maze_runs.FOLDER, key) for key in jobs}
    kept = {key: json.loads(path.read_text()) for key, path in results.items() if path.exists()}
    assert len(kept) > 100
    for key, row in kept.items():
        assert resolved(read_kept(row["config"])) == resolved(jobs[key].measure()), key
