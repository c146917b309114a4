"""What the bonus costs in someone else's loop: shares of the CPU time of PPO with RECODE-AP.

    python benchmarks/drop_in.py

Trains `examples/ppo_recode.py` for a short while on the blocking Disco Maze and adds up the
CPU time of each part of the bonus (embedding, memory, training, checks and history) against
the whole run: environments, policy, PPO's updates and the bonus. CPU time of one thread, so that
other work on the machine disturbs little. Writes `results/drop_in_cost.json`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from pathlib import Path

import torch

from softcount.integrations.reward import IntrinsicReward
from softcount.measure.machine import machine
from softcount.roles.memory_server import MemoryServer
from softcount.store import write_atomically

ROOT = Path(__file__).parents[1]
PARTS = {
    "embedding": (IntrinsicReward, "_represent"),
    "memory": (MemoryServer, "__call__"),
    "training": (IntrinsicReward, "learn"),
    "whole bonus": (IntrinsicReward, "step"),
}


def measure(steps: int, bonus: str, maze_size: int) -> dict:
    """Runs the example with clocks around the parts of the bonus."""
    spent = dict.fromkeys(PARTS, 0.0)
    originals = {}
    for part, (owner, name) in PARTS.items():
        originals[part] = getattr(owner, name)
        setattr(owner, name, _clocked(originals[part], part, spent))
    example = _load_example()
    start = time.process_time()
    try:
        example.train(example.Args(bonus=bonus, maze_size=maze_size, total_timesteps=steps))
    finally:
        for part, (owner, name) in PARTS.items():
            setattr(owner, name, originals[part])
    total = time.process_time() - start
    rest = spent["whole bonus"] - sum(spent[part] for part in ("embedding", "memory", "training"))
    return {
        "bonus": bonus,
        "maze_size": maze_size,
        "steps": steps,
        "cpu_seconds": {**spent, "checks and history": rest, "total": total},
        "share_of_total": {
            part: seconds / total for part, seconds in {**spent, "checks and history": rest}.items()
        },
        "machine": f"{machine()}, one thread",
        "torch": torch.__version__,
    }


def _clocked(function, part, spent):
    def clocked(*arguments, **options):
        start = time.process_time()
        try:
            return function(*arguments, **options)
        finally:
            spent[part] += time.process_time() - start

    return clocked


def _load_example():
    spec = importlib.util.spec_from_file_location("ppo_recode", ROOT / "examples" / "ppo_recode.py")
    module = sys.modules["ppo_recode"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=40_960)
    parser.add_argument("--maze-size", type=int, default=21)
    parser.add_argument("--bonuses", nargs="+", default=["RECODE-AP", "RND"])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    records = [measure(arguments.steps, bonus, arguments.maze_size) for bonus in arguments.bonuses]
    write_atomically(ROOT / "results" / "drop_in_cost.json", json.dumps(records, indent=1).encode())
    for record in records:
        print(record["bonus"], {part: f"{share:.1%}" for part, share in record["share_of_total"].items()})
