"""How fast two checkouts train, taking turns: to see that a change of structure costs no time.

    python benchmarks/speed_between.py --before ../before      # writes results/architecture/speed.json

`--before` is a checkout with an environment of its own (`make install`). Each turn trains the laptop
presets of the 11x11 and the 21x21 maze on one thread, in a process of its own, and takes its CPU time, which
depends less than the clock on what else the machine does. Turns alternate, and who goes first does too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parents[1]
PRESETS = {"maze_11": "LAPTOP", "maze_21": "LAPTOP_21"}


def train_once(preset: str, warm_up: int, steps: int) -> float:
    """Trains with the package of this process; returns seconds of CPU per thousand steps after a warm-up."""
    from softcount import presets

    try:
        from softcount.runs.run import make_loop
    except ImportError:  # where it stood before
        from softcount.launch.run import make_loop  # type: ignore[import-not-found, no-redef]

    loop = make_loop(replace(getattr(presets, preset), overlap=False))
    while loop.num_steps < warm_up:
        loop.step()
    started, before = time.process_time(), loop.num_steps
    while loop.num_steps < before + steps:
        loop.step()
    return 1000 * (time.process_time() - started) / (loop.num_steps - before)


def train_in(checkout: Path, preset: str, warm_up: int, steps: int) -> float:
    """The same with the package of a checkout, in a process of its own."""
    python = checkout / ".venv" / "bin" / "python"
    command = [python, __file__, "--once", preset, "--warm-up", str(warm_up), "--steps", str(steps)]
    done = subprocess.run(
        command, cwd=checkout, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise RuntimeError(f"{checkout} could not be measured: {done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def compare(before: Path, preset: str, pairs: int, warm_up: int, steps: int) -> dict[str, Any]:
    """Returns the times of all turns, and the median of after over before, pair by pair."""
    seconds: dict[str, list[float]] = {"before": [], "after": []}
    for pair in range(pairs):
        turns = [("before", before), ("after", HERE)]
        for name, checkout in turns if pair % 2 == 0 else reversed(turns):
            seconds[name].append(round(train_in(checkout, preset, warm_up, steps), 4))
        print(
            f"{preset} {pair + 1} of {pairs}: {seconds['before'][-1]} -> {seconds['after'][-1]}", flush=True
        )
    ratios = np.array(seconds["after"]) / np.array(seconds["before"])
    quarter, median, three_quarters = np.percentile(ratios, (25, 50, 75)).round(4).tolist()
    return {
        "cpu_seconds_per_1000_steps": seconds,
        "after_over_before": {"median": median, "quartiles": [quarter, three_quarters]},
        "best_over_best": round(min(seconds["after"]) / min(seconds["before"]), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", type=Path, help="a checkout of the commit before, installed")
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--warm-up", type=int, default=3_000, help="steps before the clock starts")
    parser.add_argument("--steps", type=int, default=2_000, help="steps that are measured")
    parser.add_argument("--out", type=Path, default=HERE / "results/architecture/speed.json")
    parser.add_argument("--once", choices=PRESETS.values(), help="measure one turn here and print it")
    arguments = parser.parse_args()
    sizes = arguments.warm_up, arguments.steps
    if arguments.once:
        print(train_once(arguments.once, *sizes))
        return
    if arguments.before is None:
        parser.error("--before is missing; expected a checkout of the commit before, with its .venv")
    from softcount.measure.machine import machine

    started = time.monotonic()
    found = {
        "machine": machine(),
        "before": revision(arguments.before),
        "after": revision(HERE),
        "pairs": arguments.pairs,
        "warm_up": sizes[0],
        "steps": sizes[1],
        "load_average_at_the_start": list(os.getloadavg()),
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    for name, preset in PRESETS.items():
        found[name] = compare(arguments.before.resolve(), preset, arguments.pairs, *sizes)
        found["wall_seconds"] = round(time.monotonic() - started)
        arguments.out.write_text(json.dumps(found, indent=1) + "\n")  # the next preset may take long


def revision(checkout: Path) -> str:
    """Returns the commit that a checkout is at."""
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    main()
