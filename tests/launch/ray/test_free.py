"""Free mode: a run that moves between one process and many, and roles that die or hang on the way."""

import os
import signal
import time
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
import ray
from launch.small_vmpo import MAZE
from launch.test_local import TINY

from softcount import checkpoint
from softcount.config import RuntimeConfig
from softcount.launch.build import build
from softcount.launch.ray import free
from softcount.runs.run import Run, read_reports
from softcount.runs.status import describe_status
from softcount.types import leaves_of

pytestmark = pytest.mark.ray
ON_RAY = RuntimeConfig(kind="ray", num_actors=2, send_rows=3, publish_every=2, call_timeout_s=10.0)
HERE = RuntimeConfig()
CONFIG = replace(TINY, num_envs=6, steps=10**9, report_every=500, evaluate_every=2000, checkpoint_seconds=1e9)


@pytest.fixture(autouse=True)
def _on_one_cluster(cluster, monkeypatch):
    monkeypatch.setattr(free, "connect_for", lambda runtime: nullcontext(cluster))


def train_until(run, is_enough, seconds=120.0):
    """Trains until something holds; returns what was reported on the way."""
    deadline = time.monotonic() + seconds
    reports = []

    def is_stopped():
        assert time.monotonic() < deadline, "it took too long"
        return is_enough()

    for report in run.train(is_stopped):
        reports.append(report)
    return reports


def further(run, steps):
    """Holds when so many more steps were taken."""
    goal = run.loop.num_steps + steps
    return lambda: run.loop.num_steps >= goal


def pid_of(run, name):
    return run.loop.supervisor.roles[name].pid


def restarts_of(run, name):
    return run.loop.supervisor.roles[name].restarts


def test_a_run_moves_from_one_process_to_many_survives_kills_and_moves_back(tmp_path):
    folder = tmp_path / "run"
    run = Run.create(folder, CONFIG)
    train_until(run, further(run, 600))
    steps, updates = run.loop.num_steps, run.loop.num_updates
    run.close()

    run = Run.resume(folder, runtime=ON_RAY)
    assert (run.loop.num_steps, run.loop.num_updates - updates) in [(steps, 0), (steps, 1)]
    train_until(run, further(run, 800))
    assert "training now" in describe_status(folder)
    for name in ("actor 1", "inference 0", "memory"):
        os.kill(pid_of(run, name), signal.SIGKILL)
    train_until(run, lambda: restarts_of(run, "actor 1") and restarts_of(run, "inference 0"))
    reports = train_until(run, further(run, 3000))
    check_reports(reports)
    steps, updates = run.loop.num_steps, run.loop.num_updates
    run.close()
    saved = checkpoint.read(folder / "checkpoints")
    assert saved.step == steps
    assert saved.parts["loop"]["num_updates"] == updates

    run = Run.resume(folder, runtime=HERE)
    assert (run.loop.num_steps, run.loop.num_updates) == (steps, updates)
    train_until(run, further(run, 300))
    run.close()
    rows = [row["step"] for row in read_reports(folder)]
    assert rows == sorted(set(rows))
    assert "not training now" in describe_status(folder)


def check_reports(reports):
    """Reports of a run on Ray have what those of one process have, and how far roles are apart."""
    metrics = {name: value for _, report in reports for name, value in report.items()}
    assert {
        "charts/SPS",
        "coverage/places",
        "eval/return",
        "losses/loss",
        "bandit/best_arm",
    } <= metrics.keys()
    assert {"memory/occupied", "replay/ratio", "time/learner", "time/inference"} <= metrics.keys()
    assert metrics["replay/ratio"] == pytest.approx(TINY.meme.replay.replay_ratio, rel=0.2)
    assert 0 <= metrics["runtime/parameter_lag"] <= 3 * ON_RAY.publish_every + 2
    assert metrics["runtime/restarts"] >= 2
    assert metrics["runtime/backlog"] >= 0


LOOSE = replace(MAZE, vmpo=replace(MAZE.vmpo, strict=False))


@pytest.mark.slow
@pytest.mark.parametrize("config", [CONFIG, MAZE, LOOSE], ids=["MEME", "V-MPO, strict", "V-MPO"])
def test_every_kind_of_agent_runs_free_and_comes_back(tmp_path, config):
    config = replace(config, steps=10**9, checkpoint_seconds=1e9, report_every=300, evaluate_every=900)
    folder = tmp_path / "run"
    run = Run.create(folder, replace(config, runtime=ON_RAY))
    train_until(run, further(run, 1500))
    assert run.loop.num_updates > 20
    run.save()
    train_until(run, further(run, 500))
    run.close()
    run = Run.resume(folder, runtime=HERE)
    train_until(run, further(run, 300))
    run.close()
    run = Run.resume(folder, runtime=replace(ON_RAY, num_actors=4))
    train_until(run, further(run, 500))
    run.close()


def endless(config, runtime, report_every=300):
    return replace(
        config,
        runtime=runtime,
        steps=10**9,
        checkpoint_seconds=1e9,
        report_every=report_every,
        evaluate_every=0,
    )


@pytest.mark.slow
def test_where_it_is_strict_nothing_acts_that_is_older_than_the_last_update(tmp_path):
    run = Run.create(tmp_path / "run", endless(MAZE, ON_RAY, report_every=100))
    reports = train_until(run, further(run, 400))
    for name in ("actor 1", "inference 0"):
        os.kill(pid_of(run, name), signal.SIGKILL)
    reports += train_until(run, lambda: restarts_of(run, "actor 1") and restarts_of(run, "inference 0"))
    reports += train_until(run, further(run, 400))
    assert run.loop.num_updates > 40
    assert {report["runtime/parameter_lag"] for _, report in reports} == {0.0}
    run.close()


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_all_can_pause_while_one_waits_for_another_that_was_slow(tmp_path):
    run = Run.create(tmp_path / "run", endless(LOOSE, ON_RAY))
    train_until(run, further(run, 200))
    run.loop.step()  # all go on
    os.kill(pid_of(run, "actor 0"), signal.SIGSTOP)
    before, since = -1.0, time.monotonic()
    while time.monotonic() - since < 3:  # until it has run into the end of its lead
        run.loop.step()
        rows = run.loop.supervisor.roles["actor 1"].numbers["rows"]
        before, since = rows, since if rows == before else time.monotonic()
    os.kill(pid_of(run, "actor 0"), signal.SIGCONT)
    run.save()
    train_until(run, further(run, 200))
    run.close()


@pytest.mark.slow
def test_two_inference_workers_give_the_same_answers_and_one_serves_while_the_other_is_away(tmp_path):
    run = Run.create(tmp_path / "run", endless(CONFIG, replace(ON_RAY, num_inference=2), report_every=500))
    loop, roles = run.loop, run.loop.supervisor.roles
    train_until(run, further(run, 800))
    loop.supervisor.greet()
    calls = [roles[f"inference {number}"].numbers["calls"] for number in (0, 1)]
    assert min(calls) > 0.3 * max(calls)  # each has an actor
    os.kill(pid_of(run, "inference 1"), signal.SIGKILL)
    served = roles["inference 0"].numbers["calls"]
    train_until(run, lambda: restarts_of(run, "inference 1"))
    loop.supervisor.greet()
    assert roles["inference 0"].numbers["calls"] > served
    train_until(run, further(run, 800))
    check_workers_are_alike(run)
    assert roles["inference 1"].numbers["calls"] > 10
    assert restarts_of(run, "inference 0") == 0
    run.close()


def check_workers_are_alike(run):
    """Both have the newest publication, and answer as one process would."""
    run.loop.pause()
    run.loop.supervisor.greet()
    versions = [run.loop.supervisor.roles[f"inference {number}"].numbers["version"] for number in (0, 1)]
    newest = run.loop.num_updates
    assert versions[0] == versions[1] > newest - ON_RAY.publish_every - 2
    roles = build(replace(CONFIG, runtime=HERE))
    roles.inference.load(ray.get(run.loop.trainer.parameters.remote())[0])
    request = roles.actor.request()
    expected = leaves_of(roles.inference(request))
    for worker in run.loop.inference:
        reply, version = ray.get(worker.infer.remote(request))
        assert version == versions[0]
        for found, leaf in zip(leaves_of(reply), expected, strict=True):
            np.testing.assert_allclose(found, leaf, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_when_the_trainer_dies_all_go_back_to_the_last_checkpoint(tmp_path):
    run = Run.create(tmp_path / "run", replace(CONFIG, runtime=ON_RAY))
    train_until(run, further(run, 1000))
    run.save()
    train_until(run, further(run, 1000))
    kept = run.loop.num_steps  # it takes a checkpoint when it stops
    os.kill(pid_of(run, "trainer"), signal.SIGKILL)
    with pytest.warns(UserWarning, match=f"all roles go back to step {kept:,}"):
        train_until(run, lambda: restarts_of(run, "trainer"))
    assert run.loop.num_steps >= kept
    rows = [row["step"] for row in read_reports(tmp_path / "run")]
    assert rows == sorted(set(rows))
    train_until(run, further(run, 500))
    run.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["actor 0", "inference 0", "memory", "evaluator"])
def test_a_role_that_hangs_is_ended_and_started_anew(tmp_path, name):
    runtime = replace(ON_RAY, hang_seconds=6.0)
    run = Run.create(tmp_path / "run", replace(CONFIG, runtime=runtime))
    train_until(run, further(run, 500))
    os.kill(pid_of(run, name), signal.SIGSTOP)
    train_until(run, lambda: restarts_of(run, name))
    train_until(run, further(run, 500))
    run.close()


@pytest.mark.slow
def test_every_row_is_counted_once_by_trainer_and_memory(tmp_path):
    config = replace(CONFIG, runtime=ON_RAY, terminal_observations="paid", evaluate_every=0)
    run = Run.create(tmp_path / "run", config)
    train_until(run, further(run, 1500))
    os.kill(pid_of(run, "memory"), signal.SIGKILL)
    train_until(run, further(run, 1500))
    run.save()
    run.loop.supervisor.greet()
    sent = sum(role.numbers["rows"] for name, role in run.loop.supervisor.roles.items() if "actor" in name)
    saved = checkpoint.read(tmp_path / "run" / "checkpoints")
    memory = next(iter(run.loop.memory.memories().values()))
    replay = saved.parts["replay"]["replay"]["counters"]
    run.close()
    assert memory["num_observed"] == sent
    assert replay["num_acted"] == saved.step == run.loop.num_steps
