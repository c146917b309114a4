"""Agent steps per CPU second of Eight Rooms: by bodies, size, instruction set, task and threads.

    python benchmarks/eight_rooms.py --out results/eight_rooms/benchmark.json

An agent step is four ticks (eight physics substeps) and one frame; actions are random, each kept for four
steps on average. `world` times the compiled core alone, `environment` the whole vector environment with its
new levels and places. One thread, but for the last rows, which compare clocks: they say something on an
idle machine only, so the load is written beside them. ViZDoom (160 x 120, four tics a step) is timed in the
same run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from softcount.envs.eight_rooms import core
from softcount.envs.eight_rooms.level import Builder
from softcount.envs.eight_rooms.levels import generate
from softcount.envs.eight_rooms.playing import random_actions
from softcount.envs.eight_rooms.tasks import TASKS
from softcount.envs.make import make
from softcount.envs.nine_actions import ACTIONS, action_table
from softcount.measure.machine import machine

COPIES, REPEAT = 32, 4
TABLE = np.array([[entry.get(name, 0.0) for name in ACTIONS] for entry in action_table()], np.float32)


def bench_room(seed: int, num_bodies: int) -> Any:
    """A room of 8 by 8 m with bodies of all kinds in it."""
    builder = Builder(np.random.default_rng(seed), 18, 18)
    builder.draw_surfaces()
    room = (1, 1, 17, 17)
    builder.ground(room)
    for i in range(num_bodies):
        add = builder.box if i % 2 else builder.ball
        add(builder.spot(room, margin=0.5, gap=0.8), 0.25, builder.paint(builder.draw_colours(1)[0]))
    builder.start(builder.spot(room, margin=0.5, gap=0.8))
    return builder.finish(0).state


def time_world(
    states: list[Any], steps: int, size: tuple[int, int], *, rank: int = 0, is_drawn: bool = True
) -> float:
    """Times the core; returns agent steps per CPU second."""
    batch = core.Batch(len(states), *size, rank=rank)
    for slot, state in enumerate(states):
        batch.load(slot, state)
    rng, chosen = np.random.default_rng(0), np.zeros(len(states), np.int64)
    repeats = np.full(len(states), REPEAT, np.int32)
    plan = []
    for _ in range(steps):
        chosen = random_actions(rng, chosen, len(TABLE))
        plan.append(TABLE[chosen])
    start = time.process_time()
    for actions in plan:
        batch.states["is_over"] = 0
        if is_drawn:
            batch.step(actions, repeats)
        else:
            batch.step_blindly(actions, repeats)
    return steps * len(states) / (time.process_time() - start)


def cpu_seconds() -> float:
    """CPU time of this process and of its children that have ended."""
    own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def time_environment(name: str, copies: int, steps: int, **options: Any) -> tuple[float, float]:
    """Times a vector environment; returns steps per CPU second and by the clock."""
    env: Any = make(name, num_envs=copies, seed=0, **options)
    env.reset()
    rng, chosen = np.random.default_rng(0), np.zeros(copies, np.int64)
    start, start_cpu = time.perf_counter(), cpu_seconds()
    for _ in range(steps):
        chosen = random_actions(rng, chosen, env.action_spec.num)
        env.step(chosen)
    seconds = time.perf_counter() - start
    env.close()  # an engine of its own is counted once it has ended
    return steps * copies / (cpu_seconds() - start_cpu), steps * copies / seconds


def main() -> None:
    """Times everything and writes the numbers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/eight_rooms/benchmark.json"))
    parser.add_argument("--steps", type=int, default=250, help="of each copy")
    arguments = parser.parse_args()
    rows: list[dict[str, Any]] = []

    def note(**row: Any) -> None:
        rows.append({**row, "load": os.getloadavg()[0]})
        print({key: round(x) if isinstance(x, float) else x for key, x in rows[-1].items()}, flush=True)

    for size in ((96, 72), (64, 48)):
        for rank, kernels in enumerate(core.kernel_names()):
            for bodies in (4, 12, 30):
                states = [bench_room(seed, bodies) for seed in range(COPIES)]
                speed = time_world(states, arguments.steps, size, rank=rank)
                note(what="world", size=size, kernels=kernels, bodies=bodies, per_cpu_second=speed)
    for task in TASKS:
        states = [generate(task, "full", np.random.default_rng(seed)).state for seed in range(COPIES)]
        speeds = {
            "per_cpu_second": time_world(states, arguments.steps, (96, 72)),
            "physics_per_cpu_second": time_world(states, arguments.steps, (96, 72), is_drawn=False),
            "at_64x48_per_cpu_second": time_world(states, arguments.steps, (64, 48)),
        }
        whole, _ = time_environment(f"eight-rooms/{task}", COPIES, arguments.steps)
        note(what="task", task=task, **speeds, environment_per_cpu_second=whole)
    for threads in (1, 2):
        cpu, clock = time_environment("eight-rooms/wall_sensor", 64, arguments.steps, threads=threads)
        note(what="threads", threads=threads, per_cpu_second=cpu, per_second=clock)
    try:
        cpu, clock = time_environment("vizdoom/my-way-home", 1, 8 * arguments.steps)
        note(what="vizdoom/my-way-home", per_cpu_second=cpu, per_second=clock)
    except ImportError as error:
        print(error)
    about = {"suite": f"eight-rooms {core.version()}", "machine": machine(), "copies": COPIES}
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    text = ",\n".join(json.dumps(row) for row in rows)
    arguments.out.write_text(f'{json.dumps(about)[:-1]}, "runs": [\n{text}\n]}}\n')


if __name__ == "__main__":
    main()
