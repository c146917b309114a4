"""Who works on a run: one line for each role, from what the supervisor writes down every second."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

from softcount import checkpoint
from softcount.runs.folder import CHECKPOINTS
from softcount.runs.lock import FolderLock
from softcount.runs.run import read_config

STATUS = "status.json"
WORK = {"memory": "requests", "trainer": "updates", "inference": "calls", "actor": "rows"}
"""Which number of a role its rate is of."""


def describe_status(folder: Path) -> str:
    """Returns what to print of a run that trains, or of one that does not."""
    config = read_config(folder)
    is_training = _is_held(folder)
    step = _last_step(folder)
    lines = [f"{config.agent} on {config.env}, {'training' if is_training else 'not training'} now"]
    lines.append(f"  last checkpoint at step {step:,} of {config.steps:,}")
    status = _read(folder / STATUS)
    if config.runtime.kind == "local" or config.runtime.mode == "deterministic" or status is None:
        where = "one process" if config.runtime.kind == "local" else "processes in lockstep"
        return "\n".join([*lines, f"  all roles in {where}"])
    age = time.time() - status["time"]
    if not is_training:
        lines.append(f"  its roles were last seen {age:,.0f} seconds ago; `softcount resume` goes on")
    lines.append(f"  step {status['step']:,}, {status['updates']:,} updates, {age:.0f} seconds ago")
    heads = ("role", "host", "process", "rate", "lag", "restarts", "heard")
    rows = [_row(role, status) for role in status["roles"]]
    widths = [max(len(row[i]) for row in [heads, *rows]) for i in range(len(heads))]
    lines += ["  " + "  ".join(x.ljust(w) for x, w in zip(row, widths)).rstrip() for row in [heads, *rows]]
    return "\n".join(lines)


def _row(role: dict[str, Any], status: dict[str, Any]) -> tuple[str, ...]:
    name, numbers = role["name"], role["numbers"]
    work = WORK.get(name.split()[0])
    rate = f"{role['rates'][work]:,.0f} {work}/s" if work and work in role["rates"] else "-"
    lag = "-"
    lags: dict[str, float] = next((x["numbers"] for x in status["roles"] if x["name"] == "trainer"), {})
    if name.replace("actor", "lag") in lags:
        lag = f"{lags[name.replace('actor', 'lag')]:.0f} updates"
    elif "backlog" in numbers:
        lag = f"{max(0.0, numbers['backlog']):.1f} batches"
    heard = "starting" if role["is_away"] else f"{role['silent_seconds']:.0f} s ago"
    return name, role["host"] or "-", str(role["pid"] or "-"), rate, lag, str(role["restarts"]), heard


def _is_held(folder: Path) -> bool:
    try:
        FolderLock(folder).release()
    except BlockingIOError:
        return True
    return False


def _last_step(folder: Path) -> int:
    manifest = _read(folder / CHECKPOINTS / checkpoint.MANIFEST)
    return 0 if manifest is None else int(manifest["step"])


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content
