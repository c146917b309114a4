"""What does it cost to have roles in processes of their own? CPU seconds per row, here and on Ray.

    python benchmarks/ray_cost.py                 # laptop preset; writes results/ray/cost.json
    python benchmarks/ray_cost.py --network atari # the paper's network on Atari; results/ray/cost_atari.json

All ways take turns, several rounds. A turn warms up, then counts the CPU time of every process over a
number of steps: roles by themselves, Ray's own processes and this one apart. Wall clock is reported
too, but on a busy machine it says little: more processes get a larger share of it.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from softcount.config import RunConfig, RuntimeConfig
from softcount.launch.ray.free import FreeLoop
from softcount.measure.machine import machine
from softcount.presets import ATARI, LAPTOP
from softcount.runs.run import make_loop

TICKS = os.sysconf("SC_CLK_TCK")


def config_of(network: str) -> RunConfig:
    """The laptop preset, or the paper's networks with batches small enough for a processor."""
    if network == "laptop":
        return LAPTOP
    replay = replace(
        ATARI.meme.replay, trace_length=8, period=4, capacity=500, min_traces=8, replay_ratio=1.0
    )
    return replace(
        ATARI,
        num_envs=16,
        meme=replace(ATARI.meme, replay=replay, batch_size=4),
        recode=replace(ATARI.recode, memory=replace(ATARI.recode.memory, size=5000)),
    )


def cpu_by_process() -> dict[int, tuple[str, float]]:
    """Returns name and CPU seconds of this process and of all that descend from it."""
    found, parents = {}, {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = (folder / "stat").read_text()
            name = (folder / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
        except OSError:
            continue  # it has ended meanwhile
        fields = stat[stat.rindex(")") + 2 :].split()
        parents[int(folder.name)] = int(fields[1])
        found[int(folder.name)] = (name, (int(fields[11]) + int(fields[12])) / TICKS)
    mine = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= more
    return {pid: found[pid] for pid in mine}


def by_role(names: dict[int, str]) -> dict[str, float]:
    """Adds CPU time up: for each role, for this process, and for what Ray itself runs."""
    total: dict[str, float] = {}
    for pid, (_, seconds) in cpu_by_process().items():
        role = names.get(pid, "driver" if pid == os.getpid() else "ray itself")
        total[role.split()[0] if role != "ray itself" else role] = (
            total.get(role.split()[0] if role != "ray itself" else role, 0.0) + seconds
        )
    return total


def measure_local(config: RunConfig, warm_up: int, steps: int) -> dict[str, Any]:
    loop = make_loop(config)
    while loop.num_steps < warm_up:
        loop.step()
    before, updates, started, cpu = loop.num_steps, loop.num_updates, time.monotonic(), time.process_time()
    rows = 0
    while loop.num_steps < before + steps:
        loop.step()
        rows += config.num_envs
    done = loop.num_steps - before
    cpu = time.process_time() - cpu
    loop.close()
    return {
        "steps": done,
        "updates": loop.num_updates - updates,
        "seconds": time.monotonic() - started,
        "rows": rows,
        "cpu": {"all": cpu},
        "cpu_per_row": cpu / rows,
    }


def measure_ray(config: RunConfig, num_actors: int, warm_up: int, steps: int) -> dict[str, Any]:
    runtime = RuntimeConfig(kind="ray", num_actors=num_actors)
    with tempfile.TemporaryDirectory() as folder:
        loop = FreeLoop(replace(config, runtime=runtime), Path(folder))
        while loop.num_steps < warm_up:
            loop.step()
        names = {role.pid: role.name for role in loop.supervisor.roles.values()}
        before, counted, started = by_role(names), _counts(loop), time.monotonic()
        first = loop.num_steps, loop.num_updates
        while loop.num_steps < first[0] + steps:
            loop.step()
        done, updates = loop.num_steps - first[0], loop.num_updates - first[1]
        seconds, cpu = time.monotonic() - started, by_role(names)
        counts = {name: x - counted[name] for name, x in _counts(loop).items()}
        ratio = _ratio(loop)
        loop.close()
    cpu = {role: cpu[role] - before.get(role, 0.0) for role in cpu}
    roles = sum(x for role, x in cpu.items() if role not in ("ray itself", "driver"))
    return {
        "steps": done,
        "updates": updates,
        "seconds": seconds,
        "cpu": cpu,
        "rows": counts["rows"],
        "cpu_per_row": roles / counts["rows"],
        "cpu_per_row_with_ray": sum(cpu.values()) / counts["rows"],
        "messages": counts,
        "replay_ratio": ratio,
    }


def _counts(loop: FreeLoop) -> dict[str, float]:
    """How many messages have been answered so far."""
    loop.supervisor.greet()
    roles = loop.supervisor.roles
    return {
        "inference": sum(r.numbers["calls"] for n, r in roles.items() if n.startswith("inference")),
        "forward passes": sum(r.numbers["batches"] for n, r in roles.items() if n.startswith("inference")),
        "memory": roles["memory"].numbers["requests"],
        "rows": sum(r.numbers["rows"] for n, r in roles.items() if n.startswith("actor")),
    }


def _ratio(loop: FreeLoop) -> float:
    loop.look()
    return float(loop.replay_metrics.get("ratio", float("nan")))


def summarise(turns: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Medians over rounds of CPU per row against local, turn by turn."""
    local = [turn["cpu_per_row"] for turn in turns["local"]]
    found = {}
    for way, rows in turns.items():
        if way == "local":
            continue
        found[way] = {
            name: round(float(np.median([row[key] / base for row, base in zip(rows, local)])), 3)
            for name, key in (
                ("roles", "cpu_per_row"),
                ("with Ray's own processes", "cpu_per_row_with_ray"),
            )
        }
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--network", choices=("laptop", "atari"), default="laptop")
    parser.add_argument("--actors", type=int, nargs="*", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--out", type=Path)
    parsed = parser.parse_args()
    torch.set_num_threads(1)
    is_small = parsed.network == "laptop"
    steps, warm_up = parsed.steps or (20_000 if is_small else 600), 10_000 if is_small else 400
    out = parsed.out or Path("results/ray") / ("cost.json" if is_small else "cost_atari.json")
    config = config_of(parsed.network)
    turns: dict[str, list[dict[str, Any]]] = {}
    for _ in range(parsed.rounds):
        turns.setdefault("local", []).append(measure_local(config, warm_up, steps))
        for num in parsed.actors:
            turns.setdefault(f"{num} actors", []).append(measure_ray(config, num, warm_up, steps))
        content = {
            "network": parsed.network,
            "num_envs": config.num_envs,
            "steps": steps,
            "warm_up": warm_up,
            "machine": machine(),
            "load": os.getloadavg()[0],
            "against_local": summarise(turns),
            "turns": turns,
        }
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps(content, indent=1) + "\n")
        print(json.dumps(content["against_local"]), flush=True)


if __name__ == "__main__":
    main()
