"""Does a representation become blind to colours that mean nothing? It depends on where it starts.

Action prediction learns in a 21×21 Random Disco Maze of which an agent would know a part so far:
98 % of the transitions lie within 40 steps of the start, 2 % at 41 to 60, none beyond. Measured for the
three regions: spread of one place's embeddings (walls coloured anew) over the distance to the
nearest other place, both squared. Below 1, a memory can tell places apart; above, known
places look new. Varied: spread of the palette's table before learning, and the learning rate.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.drawing import COLOURS, new_figure
from experiments.figure import Figure
from experiments.jobs import SEEDS, Job, Row, by, per_seed
from softcount.config import with_fields
from softcount.envs.disco_maze import MOVES, DiscoMaze, DiscoMazeConfig
from softcount.measure.bonus_accuracy import place_noise
from softcount.presets import LAPTOP
from softcount.representations.acting import features_alone
from softcount.representations.make import make_representation
from softcount.representations.trainer import RepresentationTrainer
from softcount.torsos import GridConfig
from softcount.types import Array, Sequence, Step

SCALES, RATES = (1.0, 0.1), (6e-4, 2e-3)
REGIONS = {"known": (0, 40), "frontier": (41, 60), "unseen": (61, 10**6)}
UPDATES, BATCH, LOOKS = 1000, 256, 6


def transitions(env: DiscoMaze) -> Array:
    """Returns all moves between free cells as rows (place, action, next place)."""
    maze, deltas = env.maze, MOVES @ np.array([env.config.size, 1])
    rows = [
        (place, action, maze.places[cell + delta])
        for place, cell in enumerate(maze.cells)
        for action, delta in enumerate(deltas)
        if maze.places[cell + delta] >= 0
    ]
    return np.array(rows)


def pairs(env: DiscoMaze, moves: Array, num: int, rng: np.random.Generator) -> Sequence:
    """Draws transitions, seldom from the frontier, as sequences of two rows."""
    distance = env.maze.distances[env.maze.cells][moves[:, 0]]
    chance = np.where(distance <= 40, 0.98 / (distance <= 40).sum(), 0.0)
    is_frontier = (distance > 40) & (distance <= 60)
    chance = np.where(is_frontier, 0.02 / is_frontier.sum(), chance)
    place, action, after = moves[rng.choice(len(moves), num, p=chance)].T
    observation = np.stack([env.portray(place, rng), env.portray(after, rng)])
    nothing, never = np.zeros((2, num), np.float32), np.zeros((2, num), bool)
    actions = np.stack([action, action])
    return Sequence(Step(observation, actions, nothing, nothing, never, never, never, actions, {}), ())


def noise(trainer: RepresentationTrainer, env: DiscoMaze, rng: np.random.Generator) -> dict[str, float]:
    """Returns spread over distance per region, with the parameters that would act."""
    learned = {name: value.clone() for name, value in trainer.representation.state_dict().items()}
    trainer.representation.load_state_dict(trainer.acting_state())
    places = np.arange(len(env.maze.cells))
    looks = [env.portray(places, rng) for _ in range(LOOKS)]
    found = [features_alone(trainer.representation, look, env.action_spec).embedding for look in looks]
    x = np.stack([embedding for embedding in found if embedding is not None])
    trainer.representation.load_state_dict(learned)
    distance = env.maze.distances[env.maze.cells]
    return {
        name: float(np.median(place_noise(x)[(distance >= low) & (distance <= high)]))
        for name, (low, high) in REGIONS.items()
    }


def measure(scale: float, rate: float, seed: int, updates: int = UPDATES) -> dict[str, Any]:
    """Trains one setting; returns the course of its noise and accuracy."""
    torch.set_num_threads(1)
    config = DiscoMazeConfig(size=21, layout=seed, observation="palette")
    env, rng = DiscoMaze(config, num_envs=1, seed=seed), np.random.default_rng(seed)
    torch.manual_seed(seed)
    torso = GridConfig(channels=2, palette_scale=scale)
    embedding = replace(LAPTOP.representation.embedding, torso=torso)
    settings = replace(LAPTOP.representation, embedding=embedding)
    model = make_representation("ap", env.observation_spec, env.action_spec, settings, seed=seed)
    trainer = RepresentationTrainer(model, with_fields(LAPTOP.trainer, {"optimiser.learning_rate": rate}))
    moves, course = transitions(env), []
    for update in range(1, updates + 1):
        metrics = trainer.update(pairs(env, moves, BATCH, rng))
        if update % max(1, updates // 10) == 0:
            course.append({"update": update, "accuracy": metrics["accuracy"], **noise(trainer, env, rng)})
    return {"updates": updates, "course": course}


def jobs() -> list[Job]:
    """Every setting with every seed."""
    return [
        Job(
            key=_key(scale, rate, seed),
            seed=seed,
            settings={"scale": scale, "rate": rate},
            measure=partial(measure, scale, rate, seed),
        )
        for scale, rate, seed in product(SCALES, RATES, SEEDS)
    ]


def _key(scale: float, rate: float, seed: int) -> str:
    return f"table{scale}__rate{rate}__seed{seed}"


def earlier() -> Mapping[str, Row]:
    """Rows of the file that held all runs."""
    path = Path("results/representations/palette_start.json")
    rows = json.loads(path.read_text())["runs"] if path.exists() else []
    return {_key(row["scale"], row["rate"], row["seed"]): row for row in rows}


def plot(rows: list[Row]) -> Any:
    """Draws the noise of each region over updates, a line per seed."""
    figure = new_figure(11, 3.4)
    axes = figure.subplots(1, 3, sharey=True)
    styles = dict(zip(product(SCALES, RATES), COLOURS))
    for row, (region, axis) in product(rows, zip(REGIONS, axes, strict=True)):
        label = f"table {row['scale']}, rate {row['rate']}" if row["seed"] == SEEDS[0] else None
        updates, values = zip(*((x["update"], x[region]) for x in row["course"]), strict=True)
        axis.plot(updates, values, color=styles[row["scale"], row["rate"]], alpha=0.8, label=label)
        axis.set(title=f"{region} places", xlabel="updates", yscale="log")
        axis.axhline(1.0, color="0.6", linewidth=0.8)
    axes[0].set_ylabel("spread of one place / distance to the next")
    axes[2].legend(fontsize=8)
    return figure


def describe(rows: list[Row]) -> list[str]:
    """Noise of the regions at the end, one line per setting."""
    return [
        f"table {scale}, rate {rate}: "
        + "; ".join(f"{region} {per_seed(row['course'][-1][region] for row in group)}" for region in REGIONS)
        for (scale, rate), group in by(rows, "scale", "rate").items()
    ]


FIGURE = Figure(
    name="palette_start",
    paper="not in the paper",
    claim="Where the table of colours starts decides what the embedding keeps.",
    laptop_cost="12 runs of about a CPU-minute",
    paper_cost="the same",
    folder=Path("results/representations/palette_start"),
    jobs=jobs,
    plot=plot,
    describe=describe,
    images=Path("docs/images"),
    earlier=earlier,
)
