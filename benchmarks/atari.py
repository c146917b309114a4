"""How fast the `laptop-atari` preset trains, by replay ratio, and what processes gain.

    python -m benchmarks.atari                       # writes results/atari/speed.json

CPU time is that of all threads together, so it can be compared on a machine that does other work. What
processes gain is seen by the clock alone: it takes a machine that does nothing else. Settings take turns.
Starting the emulators and the steps before learning starts are left out.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from softcount.config import RunConfig, with_fields
from softcount.envs.make import make
from softcount.launch.local import LocalLoop
from softcount.measure.machine import machine
from softcount.presets import LAPTOP_ATARI, suited
from softcount.runs.run import make_loop
from softcount.types import DiscreteActions, VectorEnv

BEFORE_LEARNING = 3_000
RATIOS = (2.0, 4.0, 8.0)
PROCESSES = (1, 2)


def take_turn(loop: LocalLoop, steps: int) -> dict[str, Any]:
    """Steps a loop on; returns what that cost."""
    num, started, started_cpu = loop.num_steps, time.monotonic(), time.process_time()
    while loop.num_steps < num + steps:
        loop.step()
    cpu_seconds = time.process_time() - started_cpu
    return {
        "steps": loop.num_steps - num,
        "cpu_seconds": round(cpu_seconds, 2),
        "seconds": round(time.monotonic() - started, 2),
        "steps_per_cpu_second": round((loop.num_steps - num) / cpu_seconds),
    }


def time_emulators(env: VectorEnv, steps: int) -> int:
    """Plays at random; returns steps per second of the clock."""
    assert isinstance(env.action_spec, DiscreteActions)
    rng, num_calls = np.random.default_rng(0), steps // env.num_envs
    started = time.monotonic()
    for _ in range(num_calls):
        env.step(rng.integers(env.action_spec.num, size=env.num_envs))
    return round(num_calls * env.num_envs / (time.monotonic() - started))


def time_processes(config: RunConfig, turns: int, steps: int) -> dict[str, list[dict[str, Any]]]:
    """Times emulators alone and whole training, learner on a thread, by the number of processes."""
    envs, loops = {}, {}
    for num in PROCESSES:
        options: dict[str, Any] = {**config.env_options, "num_processes": num}
        envs[num] = make(config.env, config.num_envs, **options)
        loops[num] = make_loop(replace(config, env_options=options, overlap=True))
        envs[num].reset()
        take_turn(loops[num], BEFORE_LEARNING)
    found: dict[str, list[dict[str, Any]]] = {"emulators": [], "training": []}
    for turn in range(turns):
        for num in PROCESSES:
            took = take_turn(loops[num], steps)
            speed = round(took["steps"] / took["seconds"])
            found["training"].append({"turn": turn, "processes": num, "steps_per_second": speed})
            speed = time_emulators(envs[num], 4 * steps)
            found["emulators"].append({"turn": turn, "processes": num, "steps_per_second": speed})
            print(found["training"][-1], found["emulators"][-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/atari/speed.json"))
    parser.add_argument("--steps", type=int, default=4_000, help="steps of a turn")
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    config = replace(suited(LAPTOP_ATARI, "MEME-RECODE-FRAME"), overlap=False)
    loops = {ratio: make_loop(with_fields(config, {"meme.replay.replay_ratio": ratio})) for ratio in RATIOS}
    for loop in loops.values():
        take_turn(loop, BEFORE_LEARNING)
    turns = []
    for turn in range(arguments.turns):
        for ratio, loop in loops.items():
            turns.append({"turn": turn, "replay_ratio": ratio, **take_turn(loop, arguments.steps)})
            print(turns[-1], flush=True)
    processes = time_processes(config, arguments.turns, arguments.steps)
    content = {"machine": machine(), "agent": config.agent, "turns": turns, "processes": processes}
    arguments.out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
