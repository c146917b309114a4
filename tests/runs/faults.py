"""Takes checkpoints under `faults.c`: a fault at every single file operation, one after the other.

    LD_PRELOAD=faults.so python faults.py FOLDER

Each fault strikes a process of its own. After it the old checkpoint or the new one must be there, whole,
with the reports that belong to it. The next checkpoint must succeed, and leave nothing in the folder that it
does not name. Prints how many faults of each kind struck.
"""

import ctypes
import errno
import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np

from softcount import checkpoint
from softcount.runs.metrics_log import MetricsLog, read_metrics

KINDS = {"kill": -1, "half": -2, "full": errno.ENOSPC, "error": errno.EIO}
CODES = {0: "went on", 1: "broke", 3: "ended"}
shim = ctypes.CDLL(None)


def take(folder, step):
    """Goes on from the last checkpoint to the next, as a run does."""
    kept = 0 if step == 1 else checkpoint.read(folder / "checkpoints").metrics_bytes
    log = MetricsLog(folder / "metrics.jsonl", keep_bytes=kept)
    log.write(step, {"x": 1.0})
    parts = {name: {"w": np.full(500, float(step))} for name in ("learner", "memory")}
    names = [str(i) for i in range(max(0, step - 2), step + 1)]
    segments = {name: lambda name=name: {"rows": np.full(500, float(name))} for name in names}
    checkpoint.write(
        folder / "checkpoints", step=step, metrics_bytes=log.sync(), parts=parts, segments=segments
    )
    log.close()


def strike(folder, step, operation, kind):
    """Takes a checkpoint in a child that is struck at an operation; returns how it ended."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            shim.faults_arm(str(folder).encode(), operation, KINDS[kind])
            take(folder, step)
            code = 0
        except (OSError, checkpoint.CheckpointError):
            code = 3
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def check(folder, steps):
    """Makes sure that one of these checkpoints is there, whole; returns which."""
    saved = checkpoint.read(folder / "checkpoints")
    assert saved.step in steps, (saved.step, steps)
    assert all((part["w"] == saved.step).all() for part in saved.parts.values())
    assert all((state["rows"] == float(name)).all() for name, state in saved.segments.items())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MetricsLog(folder / "metrics.jsonl", keep_bytes=saved.metrics_bytes).close()
    assert [row["step"] for row in read_metrics(folder / "metrics.jsonl")] == list(range(1, saved.step + 1))
    return saved.step


def main():
    folder = Path(sys.argv[1])
    (folder / "checkpoints").mkdir()
    warnings.simplefilter("ignore")
    for step in (1, 2, 3):
        take(folder, step)
    shim.faults_arm(str(folder).encode(), 0, 0)
    take(folder, 4)
    num_operations, struck = shim.faults_count(), {}
    shim.faults_arm(b"", 0, 0)
    step = 4
    for kind in KINDS:
        for operation in range(1, num_operations + 1):
            status = strike(folder, step + 1, operation, kind)
            how = (
                "killed"
                if os.WIFSIGNALED(status)
                else ["went on", "broke", "", "ended"][os.WEXITSTATUS(status)]
            )
            struck.setdefault(kind, {}).setdefault(how, 0)
            struck[kind][how] += 1
            step = check(folder, (step, step + 1))
            step += 1
            take(folder, step)
            manifest = json.loads((folder / "checkpoints" / checkpoint.MANIFEST).read_text())
            named = {
                *manifest["parts"].values(),
                *(f"segment-{name}.safetensors" for name in manifest["segments"]),
            }
            left = {path.name for path in (folder / "checkpoints").iterdir()} - named - {checkpoint.MANIFEST}
            assert left == set(), (kind, operation, left)
    print(json.dumps({"operations": num_operations, "struck": struck}))


if __name__ == "__main__":
    main()
