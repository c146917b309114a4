"""`kill -9` of `softcount train` itself: its processes end, and the run is resumed with equal books."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("ray")
pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(600)]

OPTIONS = (
    "--env-options size=7 lethal=false --terminal-observations paid --num-envs 8 --report-every 500 "
    "--evaluate-every 0 --checkpoint-seconds 2"
)
TESTS = Path(__file__).parents[2]


def softcount(*words):
    """Starts a command in a session of its own."""
    variables = {name: x for name, x in os.environ.items() if not name.startswith("RAY_")}
    variables["PYTHONPATH"] = str(TESTS)
    command = [sys.executable, "-m", "chaos.kept", *words]
    return subprocess.Popen(command, env=variables, start_new_session=True, stderr=subprocess.DEVNULL)


def until(is_so, seconds=180.0):
    deadline = time.monotonic() + seconds
    while not (found := is_so()):
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.2)
    return found


def step_of(folder):
    with suppress(OSError, ValueError):
        return json.loads((folder / "checkpoints" / "manifest.json").read_text())["step"]
    return 0


def descendants(pid):
    """All processes that descend from one, with it."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def living(pids):
    """Those of them that have not ended."""
    found = set()
    for pid in pids:
        with suppress(OSError):
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                found.add(pid)
    return found


def journals(folder):
    return {path.name: path.read_bytes() for path in (folder / "memory").glob("*.journal")}


def test_a_killed_command_leaves_nothing_running_and_its_run_goes_on_with_equal_books(tmp_path):
    from chaos.books import books_of, faults_of

    folder = tmp_path / "run"
    ray = ["--runtime.kind", "ray", "--runtime.num-actors", "2", "--runtime.call-timeout-s", "5"]
    command = softcount(
        "train", "MEME-RECODE-AP", "--run", str(folder), *OPTIONS.split(), "--steps", "1000000000", *ray
    )
    until(lambda: step_of(folder) > 1000)
    roles = {role["name"]: role["pid"] for role in json.loads((folder / "status.json").read_text())["roles"]}
    pids = descendants(command.pid)
    assert set(roles.values()) < pids
    os.kill(roles["memory"], signal.SIGSTOP)  # the worst case: an old memory that wakes up late
    command.kill()
    command.wait()
    until(lambda: living(pids) <= {roles["memory"]})

    before, kept = step_of(folder), journals(folder)
    goal = before + 2000
    resumed = softcount("resume", str(folder), "--steps", str(goal), *ray)
    until(lambda: step_of(folder) > before)
    with suppress(ProcessLookupError):
        os.kill(roles["memory"], signal.SIGCONT)
    assert resumed.wait(300) == 0
    until(lambda: not living(pids))
    now = journals(folder)
    assert {name: now.get(name) for name in kept} == kept  # nobody wrote beside the successor

    found = books_of(folder)
    assert faults_of(found) == []
    assert found["steps"] >= goal
    assert found["rows_counted"] == found["rows_of_the_trainer"]
