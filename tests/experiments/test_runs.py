"""The driver of training runs: asked at every report, ended by a rule, continued where it was stopped."""

import json
import os
from dataclasses import dataclass, replace

import pytest
from launch.test_local import TINY

from experiments import runs
from softcount import checkpoint
from softcount.config_json import from_json
from softcount.runs.run import Run

SMALL = replace(TINY, steps=80, report_every=20, checkpoint_seconds=1e9, evaluate_every=0)


@dataclass
class Visits(runs.Watch):
    """Asks for visits; stops at a report as a person would, with Ctrl-C."""

    interrupt_at: int | None = None

    def ask(self, run, metrics):
        if self.interrupt_at is not None and run.loop.num_steps >= self.interrupt_at:
            raise KeyboardInterrupt
        return {"visits": run.loop.coverage.visits.tolist(), "threads": os.environ.get("OMP_NUM_THREADS")}

    def sum_up(self, run, answers):
        return {"answers": answers, "process": os.getpid()}


def after_two(answers):
    return len(answers) == 2


def test_a_run_is_trained_in_a_process_of_its_own_with_one_thread(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.delenv("MALLOC_TOP_PAD_", raising=False)
    found = runs.train(SMALL, tmp_path / "run", watch=Visits(), until=after_two)
    assert found["process"] != os.getpid()
    assert [answer["threads"] for answer in found["answers"]] == ["1", "1"]
    assert os.environ["OMP_NUM_THREADS"] == "2"
    assert "MALLOC_TOP_PAD_" not in os.environ
    assert [answer["step"] // 20 for answer in found["answers"]] == [1, 2]
    assert 40 <= found["steps"] < 60
    assert from_json(json.dumps(found["config"])) == SMALL
    assert 0 < found["seconds"] == found["answers"][-1]["seconds"]
    assert (tmp_path / "run" / "metrics.jsonl").exists()
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_a_run_stopped_in_the_middle_ends_as_if_it_had_not_been(tmp_path):
    whole = runs.train_here(SMALL, tmp_path / "whole", Visits())
    with pytest.raises(KeyboardInterrupt):
        runs.train_here(replace(SMALL, checkpoint_seconds=0.0), tmp_path / "parts", Visits(interrupt_at=60))
    again = runs.train_here(SMALL, tmp_path / "parts", Visits())
    for name in ("step", "visits"):
        assert [a[name] for a in again["answers"]] == [a[name] for a in whole["answers"]]
    clocks = [answer["cpu_seconds"] for answer in again["answers"]]
    assert clocks == sorted(clocks)  # they go on, too
    kept = [json.loads(line) for line in (tmp_path / "parts" / runs.ANSWERS).open()]
    assert kept == again["answers"]


def test_clocks_of_a_resumed_run_go_on(tmp_path):
    runs.train_here(SMALL, tmp_path, Visits(), after_two)
    lines = [json.loads(line) for line in (tmp_path / runs.ANSWERS).open()]
    later = [{**line, "cpu_seconds": 1000.0, "seconds": 2000.0} for line in lines]
    (tmp_path / runs.ANSWERS).write_text("".join(json.dumps(line) + "\n" for line in later))
    again = runs.train_here(SMALL, tmp_path, Visits())
    assert again["cpu_seconds"] >= 1000.0
    assert again["seconds"] >= 2000.0


def test_answers_that_no_checkpoint_knows_are_forgotten(tmp_path):
    lines = [json.dumps({"step": step}) + "\n" for step in (10, 20, 30)]
    (tmp_path / runs.ANSWERS).write_text("".join(lines) + '{"step": 4')
    assert [answer["step"] for answer in runs.answers_until(tmp_path, 20)] == [10, 20]
    assert (tmp_path / runs.ANSWERS).read_text() == "".join(lines[:2])


def test_a_run_that_was_over_when_it_was_stopped_is_not_trained_further(tmp_path):
    first = runs.train_here(SMALL, tmp_path, Visits(), after_two)
    again = runs.train_here(SMALL, tmp_path, Visits(), after_two)
    assert again["answers"] == first["answers"]
    assert again["steps"] == first["steps"]


@pytest.mark.parametrize("left", ["another configuration", "another version", "finished", "hardly begun"])
def test_what_is_no_unfinished_run_of_the_configuration_is_thrown_away(tmp_path, monkeypatch, left):
    folder = tmp_path / "run"
    if left == "another configuration":
        Run.create(folder, replace(SMALL, seed=5)).close()
    elif left == "another version":
        Run.create(folder, SMALL).close()
        manifest = folder / "checkpoints" / "manifest.json"
        manifest.write_text(manifest.read_text().replace(checkpoint.FORMAT, "softcount-checkpoint-1"))
    elif left == "finished":
        runs.train(SMALL, folder, watch=Visits(), until=after_two)
    else:
        (folder / "checkpoints").mkdir(parents=True)
    found = runs.train(SMALL, folder, watch=Visits(), until=after_two)
    assert found["config"]["seed"] == SMALL.seed
    assert len(found["answers"]) == 2


class Killed(runs.Watch):
    def ask(self, run, metrics):
        os.kill(os.getpid(), 9)


def test_a_killed_process_is_told_in_one_line_and_its_run_is_kept(tmp_path):
    with pytest.raises(RuntimeError, match=r"the run .*run was killed; the same command goes on with it"):
        runs.train(SMALL, tmp_path / "run", watch=Killed())
    assert (tmp_path / "run" / "checkpoints").exists()
