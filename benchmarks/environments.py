"""Steps per second of every environment, single and vectorised, with uniformly random actions.

    python benchmarks/environments.py --out results/environments/benchmark.json

One process, one thread. `per second` is by the clock, `per CPU second` by the time this
process (and, for ViZDoom, its engine) was computing, which other work on the machine does not change much.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from softcount.envs.make import make, make_env
from softcount.measure.machine import processor

CASES: list[tuple[str, dict[str, Any], int, int]] = [
    # name, options, copies of the vectorised one, steps of all copies
    ("disco-maze", {}, 64, 200_000),
    ("disco-maze", {"observation": "palette"}, 64, 400_000),
    ("disco-maze", {"window": 5}, 64, 200_000),
    ("disco-maze", {"size": 11}, 64, 400_000),
    ("disco-maze", {"new_maze_each_episode": True, "lethal": False}, 64, 100_000),
    ("noisy-disco-maze", {}, 64, 100_000),
    ("atari/montezuma_revenge", {}, 8, 4_000),
    ("atari/montezuma_revenge", {"size": (84, 84)}, 8, 4_000),
    ("noisy-atari/montezuma_revenge", {}, 8, 4_000),
    ("minigrid/MultiRoom-N4-S5-v1", {}, 8, 8_000),
    ("minigrid/KeyCorridorS3R3-v0", {}, 8, 8_000),
    ("minigrid/MultiRoom-N4-S5-v1", {"view": "rgb"}, 8, 4_000),
    ("vizdoom/my-way-home", {}, 4, 8_000),
]


def cpu_seconds() -> float:
    """CPU time of this process and of its children that have ended."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def time_single(name: str, options: dict[str, Any], steps: int) -> dict[str, float]:
    """Times the Gymnasium environment."""
    env = make_env(name, **options)
    env.reset(seed=0)
    actions = np.random.default_rng(0).integers(env.action_space.n, size=steps).tolist()  # type: ignore[attr-defined]
    start, start_cpu = time.perf_counter(), cpu_seconds()
    for action in actions:
        _, _, terminated, truncated, _ = env.step(action)
        if terminated or truncated:
            env.reset()
    seconds = time.perf_counter() - start
    env.close()  # an engine of its own is counted once it has ended
    return {"per_second": steps / seconds, "per_cpu_second": steps / (cpu_seconds() - start_cpu)}


def time_vector(name: str, options: dict[str, Any], copies: int, steps: int) -> dict[str, float]:
    """Times the vector environment; every copy's row is a step."""
    env: Any = make(name, num_envs=copies, seed=0, **options)
    env.reset()
    actions = np.random.default_rng(0).integers(env.action_spec.num, size=(steps // copies, copies))
    start, start_cpu = time.perf_counter(), cpu_seconds()
    for action in actions:
        env.step(action)
    seconds = time.perf_counter() - start
    env.close()
    return {
        "per_second": actions.size / seconds,
        "per_cpu_second": actions.size / (cpu_seconds() - start_cpu),
    }


def main() -> None:
    """Times them all and writes the numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/environments/benchmark.json"))
    arguments = parser.parse_args()
    rows = []
    for name, options, copies, steps in CASES:
        single_steps = min(steps, 10_000)
        single = time_single(name, options, single_steps)
        vector = time_vector(name, options, copies, steps)
        rows.append(
            {"name": name, "options": options, "single_steps": single_steps, "single": single}
            | {"copies": copies, "vector_steps": steps, "vector": vector}
        )
        print(
            f"{name:32} {options!s:50} {single['per_cpu_second']:10,.0f} {vector['per_cpu_second']:10,.0f}"
            f"   (by the clock {single['per_second']:,.0f}, {vector['per_second']:,.0f})",
            flush=True,
        )
    machine = {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps({"machine": machine, "seed": 0, "runs": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
