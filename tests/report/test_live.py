"""What is watched is what lies on disk now: the newer of what a run shows and what it saved."""

import shutil

import numpy as np
import pytest

from softcount import checkpoint, store
from softcount.report.live import LiveRuns
from softcount.report.read_run import find_runs
from softcount.runs import live


@pytest.fixture
def copy(run, tmp_path):
    shutil.copytree(run, tmp_path / "copy")
    return tmp_path / "copy"


def shown_by(copy, step, places, atoms):
    """Writes what a run would show at a step: this many places and atoms."""
    saved = checkpoint.read(copy / "checkpoints")
    coverage = dict(saved.parts["loop"]["coverage"])
    for name in ("places", "visits", "first_seen"):
        coverage[name] = coverage[name][:places]
    memory = dict(saved.parts["memory"]["memory"])
    for name in ("atoms", "log_counts", "births"):
        memory[name] = memory[name][:atoms]
    state = {"step": step, "coverage": coverage, "tasks": [""], "memories": [memory]}
    store.save(copy / live.FOLDER / live.SHOWN, state, kind="live")


def test_without_anything_shown_the_checkpoint_is_watched(copy):
    (run,) = LiveRuns([copy]).describe()["runs"]
    saved = checkpoint.read(copy / "checkpoints")
    assert run["checkpoint"] == saved.step == run["final"]["step"]
    assert run["worlds"][0]["visited"] == len(saved.parts["loop"]["coverage"]["places"])
    assert len(run["memories"][0]["x"]) == 30
    assert run["final_at"]["coverage/places"] == run["final"]["step"]


@pytest.mark.parametrize(("later", "is_taken"), [(8, True), (0, True), (-8, False)])
def test_the_newer_of_shown_and_saved_is_watched(copy, later, is_taken):
    saved = checkpoint.read(copy / "checkpoints")
    runs = LiveRuns([copy])
    runs.describe()
    shown_by(copy, saved.step + later, places=2, atoms=5)
    (run,) = runs.describe()["runs"]
    assert (run["checkpoint"] == saved.step + later) == is_taken
    assert (run["worlds"][0]["visited"] == 2) == is_taken
    assert (len(run["memories"][0]["x"]) == 5) == is_taken


def test_the_stamp_changes_with_what_lies_on_disk_and_with_nothing_else(copy):
    runs = LiveRuns([copy])
    before = runs.stamp()
    runs.describe()
    assert runs.stamp() == before
    with open(copy / "metrics.jsonl", "a") as file:
        file.write('{"step": 2000}\n')
    later = runs.stamp()
    assert later != before
    assert runs.describe()["runs"][0]["final"]["step"] == 2000
    shown_by(copy, 2000, places=2, atoms=5)
    assert runs.stamp() != later


def test_only_runs_that_still_train_are_asked_to_show_themselves(copy):
    LiveRuns([copy]).describe()
    assert not live.is_asked(copy)
    lines = (copy / "metrics.jsonl").read_text().splitlines(keepends=True)
    (copy / "metrics.jsonl").write_text("".join(lines[:3]))
    LiveRuns([copy]).describe()
    assert live.is_asked(copy)


def test_the_picture_of_atoms_does_not_turn_when_they_move_a_little(copy):
    saved = checkpoint.read(copy / "checkpoints")
    runs = LiveRuns([copy])
    points = []
    for step, atoms in ((saved.step, 30), (saved.step + 8, 27)):
        shown_by(copy, step, places=2, atoms=atoms)
        (memory,) = runs.describe()["runs"][0]["memories"]
        points.append({b: np.array([x, y]) for b, x, y in zip(memory["births"], memory["x"], memory["y"])})
    both = sorted(set(points[0]) & set(points[1]))
    assert len(both) == 27
    before, after = (np.array([each[birth] for birth in both]) for each in points)
    before, after = before - before.mean(axis=0), after - after.mean(axis=0)
    turn = (before * after).sum(axis=0) / (before**2).sum(axis=0)
    assert (turn > 0.9).all()  # neither axis has flipped or changed places


def test_a_run_without_checkpoint_says_so(copy):
    shutil.rmtree(copy / "checkpoints")
    (run,) = LiveRuns([copy]).describe()["runs"]
    assert run["worlds"] == run["memories"] == [{"missing": "There is no checkpoint."}]


def test_a_folder_of_runs_stands_for_all_of_them(tmp_path):
    for name in ("b", "a", "none"):
        (tmp_path / name).mkdir()
    for name in ("a", "b"):
        (tmp_path / name / "config.json").write_text("{}")
    assert find_runs([tmp_path]) == [tmp_path / "a", tmp_path / "b"]
    assert find_runs([tmp_path / "a", tmp_path / "none"]) == [tmp_path / "a", tmp_path / "none"]
