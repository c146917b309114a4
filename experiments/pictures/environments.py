"""Pictures of every environment and of what uniformly random actions cover in it.

One picture per environment: what the agent sees, and the coverage map. DM-HARD-8 is not among them: its
program was not run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from experiments.drawing import BONUS_COLOURS, WIDTH, new_figure
from experiments.figure import Figure
from experiments.jobs import Job, Row
from softcount.envs.atari_places import MontezumaPlaces
from softcount.envs.disco_maze import PALETTE
from softcount.envs.make import make
from softcount.measure.coverage import Coverage, plot_heat_map
from softcount.types import Array

SEED = 0
PHOTOGRAPHS = 120
"""How many observations one is chosen of."""
ZOOM_BELOW = 0.15
"""Part of a map below which only what was visited is shown."""
RINGS = ("atari/pitfall",)
"""Worlds whose places lie on a ring."""


@dataclass(frozen=True)
class Picture:
    """One environment, and how long it is played."""

    file: str
    name: str
    steps: int  # of all copies together
    num_envs: int = 4
    hold: int = 1  # steps for which a random action is kept
    options: dict[str, Any] = field(default_factory=dict)
    paper: str = "no figure of the paper"


PICTURES = (
    Picture("env_disco_maze", "disco-maze", 1_000_000, 64, paper="Fig. 13 (its frames)"),
    Picture("env_disco_maze_blocking", "disco-maze", 1_000_000, 64, options={"lethal": False, "window": 9}),
    Picture("env_montezuma", "atari/montezuma_revenge", 20_000),
    Picture("env_noisy_montezuma", "noisy-atari/montezuma_revenge", 4_000, paper="Fig. 6 (its frames)"),
    Picture("env_pitfall", "atari/pitfall", 20_000, hold=16),
    Picture("env_multiroom", "minigrid/MultiRoom-N4-S5-v1", 20_000, options={"view": "rgb"}),
    Picture("env_key_corridor", "minigrid/KeyCorridorS3R3-v0", 20_000, options={"view": "full"}),
    Picture("env_my_way_home", "vizdoom/my-way-home", 20_000, hold=8),
    Picture("env_my_way_home_very_sparse", "vizdoom/my-way-home-very-sparse", 20_000, hold=8),
)


def play(picture: Picture, env: Any) -> Iterator[Any]:
    """Plays randomly; yields every row of time steps."""
    rng = np.random.default_rng(SEED)
    step = env.reset()
    for t in range(picture.steps // picture.num_envs):
        yield step
        if t % picture.hold == 0:
            action = rng.integers(env.action_spec.num, size=picture.num_envs)
        step = env.step(action)


def _make(picture: Picture) -> Any:
    return make(picture.name, picture.num_envs, SEED, **picture.options)


def measure(picture: Picture) -> dict[str, Any]:
    """Plays to the end; returns where it has been."""
    env = _make(picture)
    coverage = Coverage(env.num_places)
    for step in play(picture, env):
        coverage.update(step)
    env.close()
    seen = coverage.state_dict()
    return {
        "agent": "uniformly random",
        "num_places": coverage.num_places,
        "visited": coverage.num_visited,
        "coverage_steps": coverage.steps,
        **{name: seen[name].tolist() for name in ("places", "visits", "first_seen")},
    }


def photograph(picture: Picture, env: Any) -> Array:
    """Returns that of the first observations with the most colours: a bare wall says little."""
    seen = [step.observation[0].copy() for step in islice(play(picture, env), PHOTOGRAPHS)]
    return max(seen, key=lambda image: len(np.unique(image.reshape(-1, image.shape[-1]), axis=0)))


def plot(picture: Picture, rows: Sequence[Row]) -> Any:
    """Draws what the agent sees beside where it has been."""
    (row,) = rows
    env = _make(picture)
    image, coverage = photograph(picture, env), Coverage(row["num_places"])
    arrays = {name: np.array(row[name]) for name in ("places", "visits", "first_seen")}
    coverage.load_state_dict({"num_places": row["num_places"], "steps": row["coverage_steps"], **arrays})
    figure = new_figure(WIDTH, 4.2)
    seen, covered = figure.subplots(1, 2)
    seen.set_title(f"{picture.name}: {' × '.join(map(str, image.shape))}", fontsize=11)
    image = PALETTE[image] if image.ndim == 2 else image
    if picture.options.get("view") == "full":
        image = (image * np.array([24, 40, 80])).astype(np.uint8)  # symbols, spread out to be seen
    seen.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    seen.set_xticks([])
    seen.set_yticks([])
    if picture.name in RINGS:
        _draw_ring(covered, coverage)
    else:
        plot_heat_map(covered, coverage, env, background=_background(picture, env))
        _zoom(covered, coverage, env)
    covered.title.set_fontsize(11)
    env.close()
    return figure


def _zoom(axes: Any, coverage: Coverage, env: Any) -> None:
    """Shows the part of a map that was visited, where that is a small one; its title says so."""
    cells = np.array([env.cell_of(int(place)) for place in np.flatnonzero(coverage.visits)])
    low, high = cells.min(axis=0) - 2, cells.max(axis=0) + 2
    if np.prod(high - low) > ZOOM_BELOW * np.prod(env.map_shape):
        return
    axes.set(xlim=(low[1] - 0.5, high[1] + 0.5), ylim=(high[0] + 0.5, low[0] - 0.5))
    axes.set_title(f"{axes.get_title()}, a part of the map")


def _draw_ring(axes: Any, coverage: Coverage) -> None:
    """Draws visits of screens that lie on a ring, by their distance from the start."""
    places = np.flatnonzero(coverage.visits)
    total = coverage.num_places or len(coverage.visits)
    offsets = (places + total // 2) % total - total // 2
    axes.bar(offsets, coverage.visits[places], color=BONUS_COLOURS["none"])
    axes.set_yscale("log")
    axes.set_xticks(range(int(offsets.min()), int(offsets.max()) + 1))
    axes.set(xlabel="screens from the start", ylabel="visits")
    axes.set_title(f"{coverage.num_visited} of {total} places in {coverage.steps:,} steps")


def _background(picture: Picture, env: Any) -> Array | None:
    """Returns where places can be: the maze's floor, Montezuma's 24 rooms."""
    if picture.name == "disco-maze":
        return np.asarray(env.distances >= 0)
    if "montezuma" not in picture.name:
        return None
    rooms = np.zeros(env.map_shape, bool)
    for place in range(24 * MontezumaPlaces.rows * MontezumaPlaces.columns):
        rooms[env.cell_of(place)] = True
    return rooms


def describe(rows: Sequence[Row]) -> list[str]:
    (row,) = rows
    known = "" if row["num_places"] is None else f" of {row['num_places']}"
    return [f"random actions reach {row['visited']}{known} places in {row['coverage_steps']:,} steps"]


def _figure_of(picture: Picture) -> Figure:
    job = Job(
        key=picture.file,
        seed=SEED,
        settings={"name": picture.name, "steps": picture.steps, "options": picture.options},
        measure=partial(measure, picture),
    )
    return Figure(
        name=picture.file,
        paper=picture.paper,
        claim="What the agents see, and where a random policy gets to.",
        laptop_cost="10 to 100 CPU-seconds",
        paper_cost="the same",
        folder=Path("results/environments"),
        jobs=lambda: [job],
        plot=partial(plot, picture),
        describe=describe,
        images=Path("docs/images"),
    )


FIGURES = tuple(map(_figure_of, PICTURES))
