"""How right is the drop-in bonus in a maze whose walls only block, and what makes it so?

    python -m experiments.drop_in.truth

A random walk of 32 copies through the 15×15 maze is paid by RECODE-AP, with the settings of
`SMALL_WORLD`, with one of them changed at a time, and with all three; then every place is
shown and scored (`launch.truth`). Where walls block, an action into a wall leaves no trace: of the f free
ways at a place only (f + 1) / 4 of random actions can be told. An accuracy above that mean
was learnt by heart, from the colours of the walls, and an embedding that keeps the
colours knows no place. Writes `results/drop_in_truth.json`.
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
from gymnasium import spaces

from softcount.envs.disco_maze import MOVES, DiscoMaze, DiscoMazeConfig
from softcount.integrations import SMALL_WORLD, IntrinsicReward, IntrinsicRewardConfig
from softcount.measure.bonus_accuracy import LOOKS, compare
from softcount.presets import LAPTOP
from softcount.store import write_atomically

ROOT = Path(__file__).parents[2]
MAZE = DiscoMazeConfig(size=15, lethal=False)
BY_HEART = replace(SMALL_WORLD, first_update=8_000, first_updates=600, history_size=10_000)
LARGE = replace(SMALL_WORLD.memory, size=2_000, warmup_atoms=2_000, neighbours=5)
VARIANTS: dict[str, IntrinsicRewardConfig] = {
    "SMALL_WORLD": SMALL_WORLD,
    "600 updates on the first 8,000 rows, 10,000 kept": BY_HEART,
    "the laptop preset's embedding": replace(SMALL_WORLD, representation=LAPTOP.representation),
    "2000 atoms, k = 5": replace(SMALL_WORLD, memory=LARGE),
    "all three": replace(BY_HEART, representation=LAPTOP.representation, memory=LARGE),
}


def walk(config: IntrinsicRewardConfig, steps: int, seed: int, num_envs: int = 32) -> dict[str, Any]:
    """Pays a random walk, then scores every place; returns the measures."""
    envs, rng = DiscoMaze(MAZE, num_envs=num_envs, seed=seed), np.random.default_rng(seed)
    space = spaces.Box(0, 255, MAZE.observation_spec.shape, np.uint8)
    bonus = IntrinsicReward(
        "RECODE-AP", space, spaces.Discrete(4), num_envs=num_envs, seed=seed, config=config
    )
    assert envs.num_places is not None
    visits, cpu = np.zeros(envs.num_places, np.int64), time.process_time()
    before = envs.reset()
    for _ in range(steps // num_envs):
        actions = rng.integers(4, size=num_envs)
        after = envs.step(actions)
        assert after.place is not None
        is_cut = after.is_last & ~after.is_terminal
        bonus.step(before.observation, actions, after.observation, after.is_terminal, is_cut)
        np.add.at(visits, after.place, 1)
        before = after
    places = np.tile(np.arange(envs.num_places), LOOKS)
    paid = bonus.score(envs.portray(places, rng)).reshape(LOOKS, -1)
    return {
        **compare(paid, visits),
        "accuracy": bonus.trainer.accuracy.value,
        "knowable": knowable(envs, visits),
        "visited places": int((visits > 0).sum()),
        "cpu_seconds": time.process_time() - cpu,
    }


def knowable(envs: DiscoMaze, visits: np.ndarray[Any, Any]) -> float:
    """The share of a random walk's actions that can be told from where they lead.

    >>> maze = DiscoMaze(DiscoMazeConfig(size=7, lethal=False))
    >>> start = np.zeros(17, int)
    >>> start[maze.maze.places[maze.maze.start]] = 1  # one way leads on, three are walls
    >>> knowable(maze, start)
    0.5
    """
    is_free = envs.maze.places >= 0
    num_free = is_free[envs.maze.cells[:, None] + MOVES @ np.array([envs.config.size, 1])].sum(axis=1)
    return float(np.average((num_free + 1) / 4, weights=visits))


def main(arguments: list[str] | None = None) -> None:
    """Walks once per variant and writes what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=30_000)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "drop_in_truth.json")
    args = parser.parse_args(arguments)
    torch.set_num_threads(1)
    records = []
    for name, config in VARIANTS.items():
        for seed in args.seeds:
            measures = walk(config, args.steps, seed)
            records.append({"variant": name, "steps": args.steps, "seed": seed, **measures})
            print(
                {key: round(x, 3) if isinstance(x, float) else x for key, x in records[-1].items()},
                flush=True,
            )
    write_atomically(args.out, json.dumps(records, indent=1).encode())


if __name__ == "__main__":
    main()
