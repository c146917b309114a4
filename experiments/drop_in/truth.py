"""How right is the drop-in bonus in a maze whose walls only block, and what makes it so?

A random walk of 32 copies through the 15×15 maze is paid by RECODE-AP, with the settings of
`SMALL_WORLD`, with one of them changed at a time, and with all three; then every place is
shown and scored (`measure.bonus_accuracy`). Where walls block, an action into a wall leaves no trace: of
the f free ways at a place only (f + 1) / 4 of random actions can be told. An accuracy above that mean
was learnt by heart, from the colours of the walls, and an embedding that keeps the
colours knows no place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from experiments.drawing import COLOURS, WIDTH, new_figure
from experiments.figure import Figure
from experiments.jobs import Job, Row
from softcount.envs.disco_maze import MOVES, DiscoMaze, DiscoMazeConfig
from softcount.integrations import SMALL_WORLD, IntrinsicReward, IntrinsicRewardConfig
from softcount.measure.bonus_accuracy import LOOKS, compare
from softcount.presets import LAPTOP

STEPS = 30_000
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
    torch.set_num_threads(1)
    envs, rng = DiscoMaze(MAZE, num_envs=num_envs, seed=seed), np.random.default_rng(seed)
    space = spaces.Box(0, 255, MAZE.observation_spec.shape, np.uint8)
    bonus = IntrinsicReward(
        "RECODE-AP", space, spaces.Discrete(4), num_envs=num_envs, seed=seed, config=config
    )
    assert envs.num_places is not None
    visits = np.zeros(envs.num_places, np.int64)
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


def jobs() -> list[Job]:
    """Every variant once."""
    return [
        Job(
            key=f"variant{number}",
            seed=0,
            settings={"variant": name, "steps": STEPS},
            measure=partial(walk, config, STEPS, 0),
        )
        for number, (name, config) in enumerate(VARIANTS.items())
    ]


def earlier() -> Mapping[str, Row]:
    """Rows of the file that held all variants."""
    path = Path("results/drop_in_truth.json")
    rows = json.loads(path.read_text()) if path.exists() else []
    return {f"variant{list(VARIANTS).index(row['variant'])}": row for row in rows}


def plot(rows: Sequence[Row]) -> Any:
    """Draws how near the bonus is to that of true counts, and what was learnt by heart."""
    figure = new_figure(WIDTH, 3.2)
    order, heart = figure.subplots(1, 2, sharey=True)
    names = [row["variant"] for row in rows]
    order.barh(names, [row["correlation"] for row in rows], color=COLOURS[0])
    order.set(
        xlabel="correlation of log bonus\nand log true-count bonus", xlim=(min(0, *order.get_xlim()), 1)
    )
    heart.barh(names, [row["accuracy"] for row in rows], color=COLOURS[1])
    for i, row in enumerate(rows):
        heart.plot([row["knowable"]] * 2, [i - 0.4, i + 0.4], color="black")
    heart.set(xlabel="accuracy of action prediction\n(black: what can be known)", xlim=(0, 1))
    order.invert_yaxis()
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    return [
        f"{row['variant']}: correlation {row['correlation']:.2f}; "
        f"accuracy {row['accuracy']:.2f}, knowable {row['knowable']:.2f}"
        for row in rows
    ]


FIGURE = Figure(
    name="drop_in_truth",
    paper="not in the paper",
    claim="The settings for small worlds pay places by their visits; each of the others does worse.",
    laptop_cost="5 walks of about a CPU-minute",
    paper_cost="not planned",
    folder=Path("results/drop_in_truth"),
    jobs=jobs,
    plot=plot,
    describe=describe,
    earlier=earlier,
)
