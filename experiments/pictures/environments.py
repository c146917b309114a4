"""Pictures of every environment and of what uniformly random actions cover in it.

    python -m experiments.pictures.environments --out docs/images

Writes one picture per environment (what the agent sees, and the coverage map) and the
numbers behind them as `results/environments/coverage.json`. DM-HARD-8 is not among
them: its program was not run.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from softcount.envs.atari_places import MontezumaPlaces
from softcount.envs.disco_maze import PALETTE
from softcount.envs.make import make
from softcount.measure.coverage import Coverage, plot_heat_map
from softcount.measure.machine import machine
from softcount.types import Array


@dataclass(frozen=True)
class Picture:
    """One environment, how long it is played, and at which step it is photographed."""

    file: str
    name: str
    steps: int  # of all copies together
    num_envs: int = 4
    hold: int = 1  # steps for which a random action is kept
    options: dict[str, Any] = field(default_factory=dict)


PICTURES = (
    Picture("env_disco_maze", "disco-maze", 1_000_000, 64),
    Picture("env_disco_maze_blocking", "disco-maze", 1_000_000, 64, options={"lethal": False, "window": 9}),
    Picture("env_montezuma", "atari/montezuma_revenge", 20_000),
    Picture("env_noisy_montezuma", "noisy-atari/montezuma_revenge", 4_000),
    Picture("env_pitfall", "atari/pitfall", 20_000, hold=16),
    Picture("env_multiroom", "minigrid/MultiRoom-N4-S5-v1", 20_000, options={"view": "rgb"}),
    Picture("env_key_corridor", "minigrid/KeyCorridorS3R3-v0", 20_000, options={"view": "full"}),
    Picture("env_my_way_home", "vizdoom/my-way-home", 20_000, hold=8),
    Picture("env_my_way_home_very_sparse", "vizdoom/my-way-home-very-sparse", 20_000, hold=8),
)


def play(picture: Picture, seed: int) -> tuple[Array, Coverage, Any]:
    """Plays randomly; returns an observation from early on, the coverage and the environment."""
    env: Any = make(picture.name, picture.num_envs, seed, **picture.options)
    rng = np.random.default_rng(seed)
    coverage = Coverage(env.num_places)
    step = env.reset()
    photograph = step.observation[0]
    for t in range(picture.steps // picture.num_envs):
        coverage.update(step)
        if t == 5 and not step.is_last[0]:
            photograph = step.observation[0]
        if t % picture.hold == 0:
            action = rng.integers(env.action_spec.num, size=picture.num_envs)
        step = env.step(action)
    return photograph, coverage, env


def draw(path: Path, picture: Picture, photograph: Array, coverage: Coverage, env: Any) -> None:
    """Writes what the agent sees beside where it has been."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    seen, covered = figure.subplots(1, 2)
    image = PALETTE[photograph] if photograph.ndim == 2 else photograph
    if picture.options.get("view") == "full":
        image = (image * np.array([24, 40, 80])).astype(np.uint8)  # symbols, spread out to be seen
    seen.imshow(image, cmap="gray", vmin=0, vmax=255, interpolation="nearest")
    seen.set_title(f"{picture.name}: {' × '.join(map(str, photograph.shape))}", fontsize=10)
    seen.set_xticks([])
    seen.set_yticks([])
    plot_heat_map(covered, coverage, env, background=_background(picture, env))
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)


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


def main() -> None:
    """Plays and draws them all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--results", type=Path, default=Path("results/environments/coverage.json"))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rows = []
    for picture in PICTURES:
        start = time.perf_counter()
        photograph, coverage, env = play(picture, arguments.seed)
        row = {
            **asdict(picture),
            "seed": arguments.seed,
            "agent": "uniformly random",
            "visited": coverage.num_visited,
            "places": coverage.num_places,
            "seconds": round(time.perf_counter() - start, 1),
        }
        draw(arguments.out / f"{picture.file}.png", picture, photograph, coverage, env)
        env.close()
        rows.append(row)
        print(f"{picture.file}: {coverage.num_visited} places in {row['seconds']} s", flush=True)
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    arguments.results.write_text(json.dumps({"machine": machine(), "runs": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
