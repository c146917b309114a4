"""Training runs on Atari games behind the figures: one process at a time, resumable, limited in CPU time.

All have the `laptop-atari` preset but for what their name says. A run ends after its steps or after
`MOST_SECONDS` of CPU time. Every 10,000 steps it is asked how many frames the emulators have played, where
the agent has been, and how often the score changed by how much; first visits are exact to the step.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.agent.maze_runs import SNAPSHOTS, SUMMARY, snapshots_until, train
from experiments.jobs import Job
from softcount import store
from softcount.config import RunConfig
from softcount.config_json import from_json, to_tree
from softcount.presets import LAPTOP_ATARI, suited
from softcount.runs.run import CONFIG, Run

FOLDER = Path("results/atari")
RUNS = Path("runs/atari")
STEPS = 1_000_000
MOST_SECONDS = 1000.0
KEPT = {
    "frames": "charts/frames",
    "return": "charts/episodic_return",
    "length": "charts/episodic_length",
    "evaluation_return": "eval/return",
    "evaluation_success": "eval/success_rate",
    "intrinsic_reward": "intrinsic/reward_mean",
    "accuracy": "representation/accuracy",
    "atoms": "intrinsic/atoms",
}


def atari_config(agent: str, seed: int, **fields: Any) -> RunConfig:
    """Returns the preset for an agent and a seed; `fields` replace its own."""
    config = replace(suited(LAPTOP_ATARI, agent), seed=seed, steps=STEPS)
    return replace(config, **fields)


def job(name: str, config: RunConfig) -> Job:
    """Returns the job that trains a configuration; `name` says what is special about it."""
    key = f"{name}__seed{config.seed}"
    settings = {"name": name, "agent": config.agent, "env": config.env}
    return Job(key=key, seed=config.seed, settings=settings, measure=lambda: _train(key, config))


def _train(key: str, config: RunConfig) -> dict[str, Any]:
    return train(key, config, RUNS, module="experiments.agent.atari_runs")


def train_here(folder: Path, config: RunConfig, say: Callable[[str], None]) -> None:
    """Trains in this process to the end or for as long as it may, and writes the summary."""
    run = Run.resume(folder) if (folder / CONFIG).exists() else Run.create(folder, config)
    with closing(run):
        rows = _follow(run, say)
        summary = _summarise(run, rows)
    store.write_atomically(folder / SUMMARY, json.dumps(summary, allow_nan=False).encode())


def _follow(run: Run, say: Callable[[str], None]) -> list[dict[str, Any]]:
    rows = snapshots_until(run.folder, run.loop.num_steps)
    earlier = rows[-1] if rows else {"cpu_seconds": 0.0, "seconds": 0.0}
    started, started_cpu = time.monotonic(), time.process_time()

    def cpu_seconds() -> float:
        return float(earlier["cpu_seconds"]) + time.process_time() - started_cpu

    for step, metrics in run.train(lambda: cpu_seconds() > MOST_SECONDS):
        row = {
            "step": step,
            "cpu_seconds": round(cpu_seconds(), 1),
            "seconds": round(earlier["seconds"] + time.monotonic() - started, 1),
            **{name: metrics.get(key) for name, key in KEPT.items()},
            "points": points_of(run),
            "places": metrics["coverage/places"],
        }
        rows.append(row)
        with open(run.folder / SNAPSHOTS, "a") as file:
            file.write(json.dumps(row) + "\n")
        say(f"  {step:>9,} steps, {row['places']} places, points {row['points']}, {row['cpu_seconds']:.0f} s")
    return rows


def points_of(run: Run) -> dict[str, int]:
    """Returns how often the score changed by how much, in all copies since the start."""
    env: Any = run.loop.roles.actor.env
    total: Counter[int] = sum((copy.points for copy in env.envs), Counter())
    return {str(points): total[points] for points in sorted(total)}


def _summarise(run: Run, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    coverage = run.loop.coverage
    assert coverage is not None
    places = coverage.state_dict()
    return {
        "config": to_tree(run.config),
        "steps": run.loop.num_steps,
        "cpu_seconds": rows[-1]["cpu_seconds"],
        "seconds": rows[-1]["seconds"],
        "rows": list(rows),
        **{name: places[name].tolist() for name in ("places", "visits", "first_seen")},
    }


if __name__ == "__main__":
    where = Path(sys.argv[1])
    train_here(
        where, from_json((where.parent / f"{where.name}.json").read_text()), lambda x: print(x, flush=True)
    )
