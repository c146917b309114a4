"""What the scripted solvers and random actions reach in Eight Rooms.

The reference and the floor of every score there.

    python -m experiments.pictures.eight_rooms solver   # results/eight_rooms/solver.json
    python -m experiments.pictures.eight_rooms random   # results/eight_rooms/random.json

Solvers play 200 seeds of every task and size. Random is uniform over the 38 actions of the table, each kept
for four steps on average. Nothing is drawn. `--tasks` and `--variants` play some only; what a file already
has of others stays.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from softcount.envs.eight_rooms import core
from softcount.envs.eight_rooms.levels import VARIANTS, Variant, generate
from softcount.envs.eight_rooms.playing import ACTION_REPEAT, play_solver, random_actions
from softcount.envs.eight_rooms.tasks import TASKS
from softcount.envs.nine_actions import ACTIONS, action_table
from softcount.measure.machine import machine

COPIES = 256


def solve(task: str, variant: Variant, num: int) -> dict[str, Any]:
    """Lets the solver play `num` seeds."""
    episodes = play_solver(task, variant, range(num))
    solved = [episode for episode in episodes if episode.is_solved]
    return {
        "episodes": num,
        "solved": len(solved),
        "mean_score": float(np.mean([episode.score for episode in episodes])),
        "mean_highest_score": float(np.mean([episode.highest for episode in episodes])),
        "median_steps_of_solved": float(np.median([episode.steps for episode in solved])) if solved else None,
        "failed_seeds": [episode.seed for episode in episodes if not episode.is_solved],
        "all": [asdict(episode) for episode in episodes],
    }


def play_randomly(task: str, variant: Variant, num: int) -> dict[str, Any]:
    """Plays `num` episodes at random."""
    table = np.array([[entry.get(name, 0.0) for name in ACTIONS] for entry in action_table()], np.float32)
    rng, limit = np.random.default_rng(0), TASKS[task].limit(variant)
    copies = min(COPIES, num)
    batch = core.Batch(copies, 8, 6)
    states = batch.states
    elapsed, has_held, has_opened = (np.zeros(copies, np.int64) for _ in range(3))
    chosen = rng.integers(len(table), size=copies)
    repeats = np.full(copies, ACTION_REPEAT, np.int32)
    begun, done = 0, list[list[float]]()

    def begin(slot: int) -> None:
        nonlocal begun
        level = generate(task, variant, np.random.default_rng(np.random.SeedSequence((1, begun))))
        batch.load(slot, level.state)
        elapsed[slot] = has_held[slot] = has_opened[slot] = 0
        begun += 1

    for slot in range(copies):
        begin(slot)
    while len(done) < num:
        chosen = random_actions(rng, chosen, len(table))
        batch.step_blindly(table[chosen], repeats)
        elapsed += 1
        has_held |= states["agent"]["held"] >= 0
        has_opened |= states["sensors"]["is_on"].any(1)
        for slot in np.flatnonzero((states["is_over"] > 0) | (elapsed >= limit)).tolist():
            one = (states["is_over"], states["score"], has_held, has_opened, elapsed)
            if repeats[slot]:
                done.append([float(column[slot]) for column in one])
            if begun < num:
                begin(slot)
            else:
                repeats[slot] = 0
    solved, score, held, opened, steps = np.array(done).T
    return {
        "episodes": len(done),
        "solved": int(solved.sum()),
        "mean_score": float(score.mean()),
        "held_something": float(held.mean()),
        "a_sensor_was_on": float(opened.mean()),
        "steps": int(steps.sum()),
    }


EXPERIMENTS: dict[str, tuple[Callable[[str, Variant, int], dict[str, Any]], int]] = {
    "solver": (solve, 200),
    "random": (play_randomly, 6000),
}


def main() -> None:
    """Plays and writes the numbers, after each task."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("who", choices=EXPERIMENTS)
    parser.add_argument("--episodes", type=int, default=None)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--variants", nargs="+", default=list(VARIANTS), choices=VARIANTS)
    parser.add_argument("--out", type=Path, default=None)
    arguments = parser.parse_args()
    play, usual = EXPERIMENTS[arguments.who]
    path = arguments.out or Path(f"results/eight_rooms/{arguments.who}.json")
    about = {"suite": f"eight-rooms {core.version()}", "who": arguments.who, "machine": machine()}
    runs: dict[str, Any] = json.loads(path.read_text())["runs"] if path.exists() else {}
    path.parent.mkdir(parents=True, exist_ok=True)
    for variant in arguments.variants:
        for task in arguments.tasks:
            start, start_cpu = time.perf_counter(), time.process_time()
            run = play(task, variant, arguments.episodes or usual)
            run["seconds"], run["cpu_seconds"] = time.perf_counter() - start, time.process_time() - start_cpu
            runs[f"{task} {variant}"] = run
            text = json.dumps({**about, "runs": runs}, indent=None, separators=(",", ":"))
            path.write_text(text.replace('},"', '},\n"') + "\n")
            print(
                f"{task:18} {variant:5} solved {run['solved']} of {run['episodes']}, "
                f"score {run['mean_score']:.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
