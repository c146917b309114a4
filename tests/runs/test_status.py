"""`softcount status`: a line for every role, and the truth about runs that do not train."""

import json
import time
from dataclasses import replace

import pytest
from launch.test_local import TINY

from softcount.cli import main
from softcount.config import RuntimeConfig
from softcount.config_json import to_json
from softcount.runs.lock import FolderLock
from softcount.runs.run import Run
from softcount.runs.status import describe_status

ROLES = [
    {"name": "memory", "numbers": {"requests": 900.0}, "rates": {"requests": 80.4}},
    {
        "name": "trainer",
        "numbers": {"updates": 50.0, "backlog": 2.26, "lag 0": 3.0, "lag 1": 7.0},
        "rates": {"updates": 12.0},
        "restarts": 2,
    },
    {"name": "inference 0", "numbers": {"calls": 900.0}, "rates": {"calls": 81.0}},
    {"name": "actor 0", "numbers": {"rows": 900.0}, "rates": {"rows": 1234.4}},
    {"name": "actor 1", "numbers": {"rows": 900.0}, "rates": {"rows": 1200.0}, "is_away": True},
]
COMMON = {"host": "one", "pid": 77, "restarts": 0, "silent_seconds": 0.4, "is_away": False}


@pytest.fixture
def folder(tmp_path):
    run = Run.create(tmp_path / "run", replace(TINY, steps=40, evaluate_every=0))
    run.close()
    return tmp_path / "run"


def write(folder, age=1.0):
    config = replace(TINY, runtime=RuntimeConfig(kind="ray"))
    (folder / "config.json").write_text(to_json(config))
    roles = [{**COMMON, **role} for role in ROLES]
    content = {"time": time.time() - age, "step": 4321, "updates": 50, "roles": roles}
    (folder / "status.json").write_text(json.dumps(content))


def test_every_role_has_its_line(folder):
    write(folder)
    lock = FolderLock(folder)
    lines = describe_status(folder).splitlines()
    lock.release()
    assert "training now" in lines[0]
    assert "step 4,321, 50 updates" in lines[2]
    table = [line.split("  ") for line in lines[3:]]
    cells = {row[1].strip(): [x.strip() for x in row if x.strip()] for row in table}
    assert cells["memory"] == ["memory", "one", "77", "80 requests/s", "-", "0", "0 s ago"]
    assert cells["trainer"] == ["trainer", "one", "77", "12 updates/s", "2.3 batches", "2", "0 s ago"]
    assert cells["actor 0"] == ["actor 0", "one", "77", "1,234 rows/s", "3 updates", "0", "0 s ago"]
    assert cells["actor 1"][4:] == ["7 updates", "0", "starting"]


def test_a_run_that_does_not_train_is_said_not_to(folder):
    write(folder, age=3600)
    text = describe_status(folder)
    assert "not training now" in text
    assert "last seen 3,600 seconds ago; `softcount resume` goes on" in text


def test_a_run_in_one_process_has_no_table(folder, capsys):
    assert main(["status", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "all roles in one process" in printed
    assert "last checkpoint at step 0 of 40" in printed


def test_a_folder_without_a_run_is_an_error_of_one_line(tmp_path, capsys):
    assert main(["status", str(tmp_path)]) == 1
    assert (
        capsys.readouterr().err.strip() == f"softcount status: {tmp_path} is not a run: it has no config.json"
    )
