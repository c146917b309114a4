"""A warm process that runs tests in forks of itself: a mutant then costs no imports of torch.

    python -m mutants.worker        in a copy of the project, see `trees.py`

Reads one JSON line per job, {"tests": [...], "limit": seconds, "stops": at the first failure}, and answers
with one. `softcount` itself is imported in the fork only, so that every fork sees the copy as it then is.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import sys
import time
from typing import Any

WARM = (
    "torch",
    "hypothesis",
    "pytest_timeout",
    "gymnasium",
    "safetensors.numpy",
    "matplotlib.figure",
    "PIL.Image",
)
PASSED, FAILED = 0, 1  # pytest's exit codes; all others mean that the tests could not be run


class Recorder:
    """Tells through a pipe which tests start and which fail."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe

    def pytest_runtest_logstart(self, nodeid: str, location: object) -> None:
        self._tell(["started", nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self._tell(["failed", report.nodeid])

    def _tell(self, message: list[str]) -> None:
        os.write(self.pipe, f"{json.dumps(message)}\n".encode())


def run_tests(tests: list[str], *, stops: bool, pipe: int) -> int:
    """Runs in the fork: pytest on these tests, its output thrown away."""
    import pytest

    silence = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silence, stream)
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", os.getcwd(), *(["-x"] if stops else [])]
    return int(pytest.main([*options, *tests], plugins=[Recorder(pipe)]))


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """Runs a job in a fork of its own and says how it ended."""
    started = time.monotonic()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()  # what tests start ends with it
        os.close(read_end)
        os._exit(run_tests(job["tests"], stops=job["stops"], pipe=write_end))
    os.close(write_end)
    text, is_late = _read(read_end, started + job["limit"])
    if is_late:
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(read_end)
    messages = [json.loads(line) for line in text.splitlines()]
    return {
        "exit": os.waitstatus_to_exitcode(status),
        "is_late": is_late,
        "last": next((name for what, name in reversed(messages) if what == "started"), None),
        "failed": [name for what, name in messages if what == "failed"],
        "seconds": round(time.monotonic() - started, 2),
    }


def _read(pipe: int, deadline: float) -> tuple[str, bool]:
    """Reads to the end of what the fork tells; also says whether it was too late."""
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return b"".join(parts).decode(), True
        part = os.read(pipe, 1 << 16)
        if not part:
            return b"".join(parts).decode(), False
        parts.append(part)


def main() -> None:
    for name in WARM:
        importlib.import_module(name)
    assert "softcount" not in sys.modules, "a warm worker must not know the code that changes"
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
