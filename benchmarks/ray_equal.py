"""Is a run on Ray in lockstep the same run? Trains agents twice, here and on Ray, and compares every bit.

    python benchmarks/ray_equal.py          # writes results/ray/equal.json

Each run is stopped after half of its updates, leaves a checkpoint, and is resumed. At the end the two
checkpoints are compared leaf by leaf: parameters, optimisers, memory, replay, actors, counters. So are
the reports, but for the clock.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from digests import config_of, digest

from softcount import checkpoint
from softcount.config import RunConfig, RuntimeConfig
from softcount.measure.machine import machine
from softcount.metrics import TIMING_PREFIX
from softcount.presets import LAPTOP, suited
from softcount.runs.folder import CHECKPOINTS
from softcount.runs.run import Run, read_reports

AGENTS = ("MEME-RECODE-AP", "MEME-RECODE-CASM", "MEME-NGU-AP", "MEME-RND", "VMPO-RECODE-AP")
PARTS = ("loop", "actor", "inference", "memory", "replay", "learner")
ON_RAY = RuntimeConfig(kind="ray", mode="deterministic")
OUT = Path("results/ray/equal.json")


def small(agent: str) -> RunConfig:
    """A small agent, so that thousands of updates take minutes."""
    config: RunConfig = config_of(agent, "maze")
    if agent.startswith("VMPO"):
        vmpo = suited(LAPTOP, agent).vmpo
        network = replace(vmpo.network, core_size=16, head_size=16)
        config = replace(config, vmpo=replace(vmpo, network=network, unroll_length=6, batch_size=2))
    return replace(config, steps=10**9, report_every=500, evaluate_every=4000, checkpoint_seconds=1e9)


def train(folder: Path, config: RunConfig, updates: int) -> None:
    """Trains to half of the updates, stops, resumes, and trains to the end."""
    for goal in (updates // 2, updates):
        run = Run.resume(folder) if (folder / "config.json").exists() else Run.create(folder, config)
        for _ in run.train(lambda: run.loop.num_updates >= goal):  # noqa: B023
            pass
        run.close()


def compare(agent: str, updates: int) -> dict[str, Any]:
    """Trains an agent in both ways and says in what they differ."""
    found, config = {}, small(agent)
    with tempfile.TemporaryDirectory() as scratch:
        for way, runtime in (("local", RuntimeConfig()), ("ray", ON_RAY)):
            started = time.monotonic()
            folder = Path(scratch) / way
            train(folder, replace(config, runtime=runtime), updates)
            saved = checkpoint.read(folder / CHECKPOINTS)
            reports = [
                {k: v for k, v in row.items() if not k.startswith(TIMING_PREFIX) and k != "charts/SPS"}
                for row in read_reports(folder)
            ]
            found[way] = {
                "seconds": round(time.monotonic() - started, 1),
                "steps": saved.step,
                "updates": saved.parts["loop"]["num_updates"],
                "digests": {part: digest(saved.parts[part]) for part in PARTS}
                | {"segments": digest(saved.segments), "reports": digest(reports)},
            }
            found[way]["num_reports"] = len(reports)
    near, far = (found[way]["digests"] for way in ("local", "ray"))
    differing = [part for part in near if near[part] != far[part]]
    return {"agent": agent, "differing": differing, "is_equal": not differing, **found}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--agents", nargs="*", default=AGENTS)
    parser.add_argument("--updates", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=OUT)
    parsed = parser.parse_args()
    rows = json.loads(parsed.out.read_text())["agents"] if parsed.out.exists() else []
    for agent in parsed.agents:
        row = compare(agent, parsed.updates)
        rows = [other for other in rows if other["agent"] != agent] + [row]
        print(f"{agent}: {'equal' if row['is_equal'] else row['differing']}", flush=True)
        parsed.out.parent.mkdir(parents=True, exist_ok=True)
        content = {"updates": parsed.updates, "machine": machine(), "numpy": np.__version__, "agents": rows}
        parsed.out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
