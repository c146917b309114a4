"""How fast the `laptop-atari` preset trains: steps per CPU second, by replay ratio.

    python -m benchmarks.atari                       # writes results/atari/speed.json

CPU time is that of all threads together, so it can be compared on a machine that does other work. Ratios
take turns. Starting the emulators and the steps before learning starts are left out.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from softcount.config import with_fields
from softcount.launch.local import LocalLoop
from softcount.measure.machine import machine
from softcount.presets import LAPTOP_ATARI, suited
from softcount.runs.run import make_loop

BEFORE_LEARNING = 3_000
RATIOS = (2.0, 4.0, 8.0)


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
    content = {"machine": machine(), "agent": config.agent, "turns": turns}
    arguments.out.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
