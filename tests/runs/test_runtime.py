"""Where roles live: one process needs nothing of Ray, and who asks for Ray is told what to install."""

import importlib.util
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from launch.test_local import TINY

from softcount import cli
from softcount.config import RunConfig, RuntimeConfig
from softcount.launch.local import LocalLoop
from softcount.options import read_runtime
from softcount.parser import UsageError
from softcount.runs.run import Run, make_loop
from softcount.runs.runtime import start_loop

TRAINS = """
import sys
from dataclasses import replace
from pathlib import Path
from launch.test_local import TINY
from softcount.runs.run import Run
run = Run.create(Path(sys.argv[1]), replace(TINY, steps=40, report_every=20, evaluate_every=0))
list(run.train())
run.close()
import softcount.cli, softcount.runs.status, softcount.report
print([name for name in sys.modules if name == "ray" or name.startswith("ray.")])
"""


def test_a_run_in_one_process_imports_nothing_of_ray(tmp_path):
    tests = os.path.dirname(os.path.dirname(__file__))
    done = subprocess.run(
        [sys.executable, "-c", TRAINS, str(tmp_path / "run")],
        env={**os.environ, "PYTHONPATH": tests},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.strip().splitlines()[-1] == "[]", done.stderr


def test_one_process_is_the_default():
    assert RunConfig().runtime.kind == "local"
    loop = start_loop(TINY, None, make_loop)
    assert isinstance(loop, LocalLoop)
    loop.close()


@pytest.mark.parametrize("mode", ["free", "deterministic"])
def test_who_has_no_ray_is_told_what_to_install(tmp_path, monkeypatch, mode):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ray" else find(name))
    config = replace(TINY, runtime=RuntimeConfig(kind="ray", mode=mode))
    with pytest.raises(ImportError, match=r"which needs Ray: `pip install .*\[ray\]"):
        Run.create(tmp_path / "run", config)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("num_actors", 0, "RuntimeConfig.num_actors is 0; expected at least 1"),
        ("kind", "cloud", "RuntimeConfig.kind is 'cloud'; expected one of 'local', 'ray'"),
        ("max_lag_batches", 0.0, "max_lag_batches is 0.0; expected a number above 0"),
        ("publish_every", 0, "publish_every is 0; expected at least 1"),
        ("hang_seconds", -1.0, "hang_seconds is -1.0; expected a number above 0"),
    ],
)
def test_values_that_make_no_sense_are_refused(field, value, says):
    with pytest.raises(ValueError, match=says):
        RuntimeConfig(**{field: value})


def test_a_resumed_run_may_be_moved_and_what_is_not_said_stays():
    config = replace(TINY, runtime=RuntimeConfig(num_actors=3, send_rows=5))
    moved = read_runtime(config, ["--runtime.kind", "ray", "--runtime.num-actors", "4"])
    assert moved == RuntimeConfig(kind="ray", num_actors=4, send_rows=5)
    assert read_runtime(replace(config, runtime=moved), ["--runtime.kind", "local"]).kind == "local"


def test_nothing_else_stands_among_the_options_of_a_move():
    with pytest.raises(UsageError, match="--steps stands after --runtime options"):
        read_runtime(TINY, ["--runtime.kind", "ray", "--steps", "5"])
    with pytest.raises(UsageError, match=r"--runtime\.num-actor"):
        read_runtime(TINY, ["--runtime.num-actor", "4"])


def test_a_run_resumed_elsewhere_writes_down_where(tmp_path):
    config = replace(TINY, steps=40, report_every=1000, evaluate_every=0)
    run = Run.create(tmp_path / "run", config)
    list(run.train())
    run.close()
    run = Run.resume(tmp_path / "run", runtime=RuntimeConfig(num_actors=7))
    run.close()
    assert Run.resume(tmp_path / "run").config.runtime.num_actors == 7


def test_a_start_on_ray_says_that_it_takes_a_while(capsys):
    cli._say_start(replace(TINY, runtime=RuntimeConfig()))
    assert capsys.readouterr().err == ""
    cli._say_start(replace(TINY, runtime=RuntimeConfig(kind="ray", address="alpha:6379")))
    assert "on the cluster at alpha:6379: this may take half a minute" in capsys.readouterr().err


def test_an_error_while_a_run_trains_ends_its_processes_and_is_the_one_that_is_seen(tmp_path):
    run = Run.create(tmp_path / "run", replace(TINY, steps=40))
    ended = []

    def stumble(is_stopped):
        raise FloatingPointError("the loss is not finite")
        yield

    def close():
        ended.append("loop")
        raise ConnectionError("nobody is there any more")

    run.train, run.loop.close = stumble, close
    with pytest.raises(FloatingPointError, match="not finite"):
        cli._follow(run)
    assert ended == ["loop"]
