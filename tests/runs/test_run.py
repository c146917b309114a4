"""Runs: stopped, killed, resumed, and none of it shows in what they learn."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from launch.small_vmpo import MAZE, POINT
from launch.test_local import TINY, assert_same

from softcount import checkpoint
from softcount.config import with_fields
from softcount.config_json import to_json
from softcount.metrics import TIMING_PREFIX
from softcount.presets import suited
from softcount.roles.actor import Episode
from softcount.runs import describe
from softcount.runs import run as run_module
from softcount.runs.metrics_log import read_metrics
from softcount.runs.run import Run

SMALL = replace(TINY, steps=1200, report_every=200, evaluate_every=400, checkpoint_seconds=1e9)
KINDS = {"meme": SMALL, "vmpo": MAZE, "vmpo-continuous": POINT}


def train_fully(folder, config):
    run = Run.create(folder, config)
    reports = list(run.train())
    run.close()
    return reports


def in_new_process(*arguments, **options):
    code = "import sys; from softcount.cli import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "MALLOC_TOP_PAD_": "67108864", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True, text=True, env=environment, timeout=240, **options,
    )  # fmt: skip


def untimed(path):
    """All reports without what depends on the clock."""
    return [
        {
            name: value
            for name, value in row.items()
            if not name.startswith(TIMING_PREFIX) and name != "charts/SPS"
        }
        for row in read_metrics(path)
    ]


def assert_same_run(first, second):
    one, two = (checkpoint.read(folder / "checkpoints") for folder in (first, second))
    assert one.step == two.step
    for saved in (one, two):
        del saved.parts["config"]
        saved.parts["replay"].get("replay", {}).pop("cuts", None)  # a queue has none
    assert_same(one.parts, two.parts)
    if one.segments or two.segments:
        assert_same(*(living_chunks(saved) for saved in (one, two)))
    assert untimed(first / "metrics.jsonl") == untimed(second / "metrics.jsonl")


def living_chunks(saved):
    """The replay's rows by chunk; segments may be cut at other places and still hold what was evicted."""
    oldest, chunks = saved.parts["replay"]["replay"]["oldest"], {}
    for segment in saved.segments.values():
        num_blobs = len(segment["sizes"]) // len(segment["serials"])
        ends = segment["sizes"].cumsum()
        for n, serial in enumerate(segment["serials"].tolist()):
            if serial >= oldest:
                first = ends[n * num_blobs] - segment["sizes"][n * num_blobs]
                chunks[str(serial)] = {
                    "columns": {name: column[n] for name, column in segment["columns"].items()},
                    "states": [state[n] for state in segment["states"]],
                    "observations": segment["blobs"][first : ends[(n + 1) * num_blobs - 1]],
                }
    assert chunks
    return chunks


def test_stopping_and_resuming_in_a_new_process_changes_nothing(tmp_path):
    train_fully(tmp_path / "whole", SMALL)
    train_fully(tmp_path / "parts", replace(SMALL, steps=600))
    result = in_new_process("resume", tmp_path / "parts", "--steps", 1200)
    assert result.returncode == 0, result.stderr
    saved = checkpoint.read(tmp_path / "whole" / "checkpoints")
    assert saved.parts["loop"]["num_updates"] > 30
    assert len(saved.parts["memory"]["memory"]["atoms"]) == SMALL.recode.memory.size  # full, with insertions
    assert_same_run(tmp_path / "whole", tmp_path / "parts")


def test_an_evaluation_plays_the_arm_whose_mean_is_best_over_all_bandits(tmp_path):
    run = Run.create(tmp_path / "run", SMALL)
    for i, bandit in enumerate(run.loop.roles.actor.behaviour.bandits):
        for arm in range(4):  # each alone thinks best of its own number, together they prefer 4
            bandit.update(arm, 3.0 if arm == i else 0.0)
        bandit.update(4, 2.0)
        assert bandit.best_arm() == i
    evaluation = run.evaluate()
    run.close()
    assert len(evaluation.episodes) == SMALL.evaluation_episodes
    assert {episode.condition for episode in evaluation.episodes} == {4}


def test_evaluations_of_other_seeds_and_steps_play_other_episodes(tmp_path):
    def seeds(name, seed):
        asked = []
        run = Run.create(tmp_path / name, replace(SMALL, seed=seed))
        run.evaluator = lambda behaviour, memory, *, seed, keep_frames: asked.append(seed)
        run.evaluate()
        run.loop.step()
        run.loop.step()  # the first of all rows is no step
        run.evaluate()
        run.lock.release()
        return asked

    one, same, other = seeds("one", 0), seeds("same", 0), seeds("other", 1)
    assert one == same
    assert len({*one, *other}) == 4


def step_of(run):
    """The step of the last complete checkpoint, read while another process writes the next."""
    return json.loads((run / "checkpoints" / checkpoint.MANIFEST).read_text())["step"]


def start_endless(folder, kind="meme", **fields):
    """A run that would go on for ever, at its first checkpoint."""
    config = replace(KINDS[kind], steps=10**9, report_every=50, evaluate_every=0, **fields)
    run = Run.create(folder, config)
    run.save()
    run.close()
    return config


def resume_beside(folder):
    """Goes on with a run in another process, and does not wait for it."""
    environment = {**os.environ, "MALLOC_TOP_PAD_": "67108864", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-u", "-m", "softcount", "resume", str(folder)]
    return subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # shells in the background ignore it
    )


def kill_and_resume(tmp_path, times, kind):
    config = start_endless(tmp_path / "run", kind, checkpoint_seconds=0.0)
    rng = np.random.default_rng(0)
    steps = [0]
    for _ in range(times):
        process = resume_beside(tmp_path / "run")
        while step_of(tmp_path / "run") == steps[-1]:  # a checkpoint after every step; wait for the first
            assert process.poll() is None, process.stderr.read().decode()
            time.sleep(0.01)
        time.sleep(rng.uniform(0.0, 0.3))
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        steps.append(checkpoint.read(tmp_path / "run" / "checkpoints").step)
    assert steps == sorted(set(steps))  # no kill lost a checkpoint: every process went further than the last
    return config, steps[-1]


def assert_continues_as_if_never_interrupted(tmp_path, config, step):
    resumed = Run.resume(tmp_path / "run", steps=step + 100)
    list(resumed.train())
    resumed.close()
    train_fully(tmp_path / "whole", replace(config, steps=step + 100, checkpoint_seconds=1e9))
    assert_same_run(tmp_path / "whole", tmp_path / "run")


@pytest.mark.parametrize("kind", ["meme", "vmpo"])
def test_a_killed_run_continues_as_if_it_had_never_been_killed(tmp_path, kind):
    config, step = kill_and_resume(tmp_path, 2, kind)
    assert_continues_as_if_never_interrupted(tmp_path, config, step)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_told_to_stop_takes_a_checkpoint_first(tmp_path, number):
    config = start_endless(tmp_path / "run", checkpoint_seconds=1e9)
    process = resume_beside(tmp_path / "run")
    while len(untimed(tmp_path / "run" / "metrics.jsonl")) < 2:
        assert process.poll() is None, process.stderr.read().decode()
        time.sleep(0.01)
    with pytest.raises(BlockingIOError, match="another process is training in"):
        Run.resume(tmp_path / "run")
    process.send_signal(number)
    said = process.communicate()[1].decode()
    step = step_of(tmp_path / "run")
    assert process.returncode == 130
    assert step >= 100
    assert f"stopped at step {step:,}" in said
    assert_continues_as_if_never_interrupted(tmp_path, config, step)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_twenty_kills_at_random_moments_lose_nothing_but_the_time_since_the_last_checkpoint(tmp_path, kind):
    config, step = kill_and_resume(tmp_path, 20, kind)
    assert_continues_as_if_never_interrupted(tmp_path, config, step)


def test_a_run_killed_before_its_first_interval_is_over_starts_again_from_its_start(tmp_path):
    Run.create(tmp_path / "run", replace(SMALL, steps=300)).close()
    resumed = Run.resume(tmp_path / "run")
    list(resumed.train())
    resumed.close()
    train_fully(tmp_path / "whole", replace(SMALL, steps=300))
    assert_same_run(tmp_path / "whole", tmp_path / "run")


def test_a_run_that_could_not_start_leaves_its_folder_free(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise ImportError("no event log here")

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "EventLog", refuse)
        with pytest.raises(ImportError, match="no event log"):
            Run.create(tmp_path / "run", SMALL)
    Run.create(tmp_path / "run", SMALL).close()


@pytest.mark.parametrize(
    ("name", "env"),
    [
        ("MEME-NGU-AP", "disco-maze"),
        ("MEME-EMM-AP", "disco-maze"),
        ("MEME-RNDonAP", "disco-maze"),
        ("MEME-BYOL-Explore", "disco-maze"),
        ("MEME-COUNT", "disco-maze"),
        ("MEME", "disco-maze"),
        ("MEME-RECODE-AP", "noisy-disco-maze"),
    ],
)
def test_every_kind_of_run_evaluates_when_it_should_whatever_the_reports_do(tmp_path, name, env):
    config = replace(suited(SMALL, name), env=env, steps=200, report_every=60, evaluate_every=90)
    reports = train_fully(tmp_path / "run", config)
    evaluated = [step for step, metrics in reports if "eval/return" in metrics]
    assert [step // 90 for step in evaluated] == [1, 2]
    assert [step // 60 for step, metrics in reports if "eval/return" not in metrics][:2] == [1, 2]
    if name == "MEME-BYOL-Explore":
        assert reports[-1][1]["intrinsic/reward"] > 0


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "done"
    train_fully(folder, replace(SMALL, steps=300))
    return folder


@pytest.fixture
def run_folder(finished, tmp_path):
    shutil.copytree(finished, tmp_path / "run")
    return tmp_path / "run"


def test_reports_of_after_the_checkpoint_are_forgotten_when_a_run_goes_on(run_folder):
    before = (run_folder / "metrics.jsonl").read_bytes()
    with (run_folder / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 999999}\n')  # would be done again
    Run.resume(run_folder).close()
    assert (run_folder / "metrics.jsonl").read_bytes() == before


def test_reports_are_means_over_episodes_and_success_is_extrinsic():
    episodes = [Episode(2.0, 0.5, 10, 0, 0), Episode(0.0, 7.0, 20, 1, 0), Episode(-1.0, 0.0, 60, 1, 0)]
    found = describe.describe_episodes(episodes, ("near", "far"))
    measures = ("episodic_return", "intrinsic_return", "episodic_length", "success_rate")
    expected = {"": (1 / 3, 2.5, 30, 1 / 3), "/near": (2, 0.5, 10, 1), "/far": (-0.5, 3.5, 40, 0)}
    for task, numbers in expected.items():
        assert [found[f"charts/{measure}{task}"] for measure in measures] == pytest.approx(numbers)
    assert (found["charts/episodes"], found["charts/episodes/far"]) == (3, 2)


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: shutil.rmtree(f / "checkpoints"), "no complete checkpoint"),
        (lambda f: (f / "config.json").unlink(), "is not a run"),
        (lambda f: (f / "config.json").write_text("{"), "does not fit this version"),
        (lambda f: corrupt(next(f.glob("checkpoints/learner-*"))), "is damaged"),
        (lambda f: edit(f, lambda c: replace(c, seed=9)), r"no longer fits the checkpoint: seed: 0 -> 9"),
        (
            lambda f: edit(f, lambda c: with_fields(c, {"recode.memory.size": 31})),
            r"no longer fits the checkpoint: recode.memory.size: 30 -> 31",
        ),
    ],
)
def test_what_cannot_be_resumed_is_said_and_nothing_is_overwritten(run_folder, damage, message):
    damage(run_folder)
    before = contents(run_folder)
    with pytest.raises((ValueError, RuntimeError, FileNotFoundError), match=message):
        Run.resume(run_folder)
    assert contents(run_folder) == before


def corrupt(path):
    content = bytearray(path.read_bytes())
    content[-3] ^= 255
    path.write_bytes(content)


def edit(folder, change):
    from softcount.runs.run import read_config

    (folder / "config.json").write_text(to_json(change(read_config(folder))))


def test_a_folder_with_a_run_is_never_overwritten(run_folder):
    before = contents(run_folder)
    with pytest.raises(FileExistsError, match="already holds a run"):
        Run.create(run_folder, SMALL)
    assert contents(run_folder) == before


def test_reports_hold_what_people_look_for(finished):
    rows = list(read_metrics(finished / "metrics.jsonl"))
    assert rows[-1]["step"] >= 300
    for name in (
        "charts/SPS", "charts/episodic_return", "charts/intrinsic_return", "coverage/places",
        "memory/occupied", "memory/insertions", "memory/d_ema", "bandit/best_arm",
        "losses/value_loss", "losses/policy_loss",
        "representation/loss", "time/inference", "replay/ratio",
    ):  # fmt: skip
        assert name in rows[-1], name
    assert 1 <= rows[-1]["coverage/places"] <= 17
    assert json.loads((finished / "config.json").read_text())["agent"] == "MEME-RECODE-AP"


def test_the_command_line_evaluates_and_inspects(run_folder):
    before = contents(run_folder)
    result = in_new_process("evaluate", run_folder, "--episodes", 3, "--gif", run_folder.parent / "play.gif")
    assert result.returncode == 0, result.stderr
    assert "3 episodes" in result.stdout
    assert (run_folder.parent / "play.gif").stat().st_size > 100
    result = in_new_process("inspect", run_folder, "--out", run_folder.parent / "pictures")
    assert result.returncode == 0, result.stderr
    assert "places visited" in result.stdout
    assert {p.name for p in (run_folder.parent / "pictures").iterdir()} >= {"coverage.png", "memory.png"}
    assert contents(run_folder) == before
