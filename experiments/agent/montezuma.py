"""Montezuma's Revenge with the paper's protocol on a small machine: rooms and positions over time.

    python -m experiments.agent.montezuma --agent MEME-RECODE-AP --steps 1000000

Frames are the paper's (grey 210×160, action repeat 4, no-ops, full action set); the torso is
smaller and the replay ratio lower than its table's, so that two cores can train at all. The
memory is the table's: 50,000 atoms. Leaves a JSON with the step at which each room and position was first
seen, returns, resident memory and speed over time, and draws all runs of the folder. A run that
was stopped is resumed.
"""

from __future__ import annotations

import argparse
import json
import resource
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.agent.coverage import COLOURS, steps_below
from experiments.agent.maze_goal import total_seconds
from experiments.jobs import new_figure, save_picture
from softcount import checkpoint, store
from softcount.agents.meme.network import NetworkConfig
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.config import RunConfig
from softcount.envs.atari_places import MontezumaPlaces
from softcount.measure.machine import machine
from softcount.presets import LAPTOP, suited
from softcount.replay.config import ReplayConfig
from softcount.representations.embedding import EmbeddingConfig
from softcount.representations.make import RepresentationConfig
from softcount.representations.rnd import RndConfig
from softcount.representations.trainer import TrainerConfig
from softcount.runs.run import CHECKPOINTS, CONFIG, Run, read_config, read_reports
from softcount.torsos import DqnConfig

FRAMES_PER_STEP = 4
SMALL_DQN = DqnConfig(channels=(16, 32, 32))

SMALL_ATARI = replace(
    LAPTOP,
    env="atari/montezuma_revenge",
    env_options={},
    num_envs=16,
    meme=replace(
        LAPTOP.meme,
        network=NetworkConfig(torso=SMALL_DQN, core_size=128, head_size=128, num_mixtures=6),
        epsilon_base=0.4,
        epsilon_power=7.0,
        replay=ReplayConfig(
            trace_length=20, period=10, capacity=5000, replay_ratio=0.25, min_traces=50, max_bytes=2**30
        ),
        batch_size=8,
        relabel=False,
    ),
    representation=RepresentationConfig(
        embedding=EmbeddingConfig(torso=SMALL_DQN, dim=32), rnd=RndConfig(torso=SMALL_DQN)
    ),
    trainer=TrainerConfig(),
    recode=RecodeBonusConfig(),
    terminal_observations="paid",
    evaluation_episodes=4,
    evaluate_every=0,
    report_every=10_000,
)
"""The paper's protocol and memory with networks that two cores can train."""


def rooms(places: Sequence[int]) -> set[int]:
    """Returns the rooms of visited places."""
    return {int(place) // (MontezumaPlaces.rows * MontezumaPlaces.columns) for place in places}


def train(config: RunConfig, folder: Path) -> None:
    """Trains from where the run was left, and says how it goes."""
    run = Run.resume(folder, steps=config.steps) if (folder / CONFIG).exists() else Run.create(folder, config)
    with closing(run):
        for step, metrics in run.train():
            assert run.loop.coverage is not None
            visited = np.flatnonzero(run.loop.coverage.visits).tolist()
            print(
                f"{step:>9,} steps: {len(rooms(visited))} rooms, {len(visited)} positions, "
                f"{metrics['charts/SPS']:.0f} steps per second",
                flush=True,
            )


def summarise(folder: Path) -> dict[str, Any]:
    """Reads what a run has seen, and when."""
    config = read_config(folder)
    seen = checkpoint.read(folder / CHECKPOINTS).parts["loop"]["coverage"]
    first = dict(zip(seen["places"].tolist(), seen["first_seen"].tolist(), strict=True))
    first_room: dict[int, int] = {}
    for place, step in first.items():
        (room,) = rooms([place])
        first_room[room] = min(step, first_room.get(room, step))
    rows = read_reports(folder)
    kept = {
        "return": "charts/episodic_return",
        "length": "charts/episodic_length",
        "intrinsic_return": "charts/intrinsic_return",
        "intrinsic_reward": "intrinsic/reward_mean",
        "soft_count": "intrinsic/soft_count",
        "accuracy": "representation/accuracy",
        "steps_per_second": "charts/SPS",
        "atoms": "intrinsic/atoms",
        "replay_bytes": "replay/bytes",
    }
    return {
        "agent": config.agent,
        "seed": config.seed,
        "frames_per_step": FRAMES_PER_STEP,
        "steps": rows[-1]["step"],
        "seconds": total_seconds([row["time/elapsed"] for row in rows]),
        "rooms": sorted((step, room) for room, step in first_room.items()),
        "positions": sorted(first.values()),
        "rows": [{"step": row["step"]} | {name: row.get(key) for name, key in kept.items()} for row in rows],
    }


def draw(results: Sequence[dict[str, Any]]) -> Any:
    """Draws rooms, positions and returns over frames, a line a run."""
    figure = new_figure(14, 4)
    panels = figure.subplots(1, 3)
    for colour, result in zip(COLOURS, results):
        style = {"color": colour, "label": f"{result['agent']}, seed {result['seed']}"}
        end = result["steps"]
        for axes, steps in zip(panels, ([step for step, _ in result["rooms"]], result["positions"])):
            numbers = [*range(1, len(steps) + 1), len(steps)]
            axes.step(FRAMES_PER_STEP * np.array([*steps, end]), numbers, where="post", **style)
        known = [(row["step"], row["return"]) for row in result["rows"] if row["return"] is not None]
        if known:
            steps, returns = np.array(known).T
            panels[2].plot(FRAMES_PER_STEP * steps, returns, **style)
    for axes, title in zip(panels, ("rooms visited", "positions visited", "mean return of the actors")):
        steps_below(axes)
        axes.set(xlabel="frames", title=title)
        axes.set_ylim(bottom=0)
    panels[0].legend(frameon=False, fontsize=8)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agent", default="MEME-RECODE-AP")
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--runs", type=Path, default=Path("runs/montezuma"), help="folder of training runs")
    parser.add_argument("--out", type=Path, default=Path("results/meme/montezuma"), help="a file per run")
    parser.add_argument("--picture", type=Path, default=Path("docs/images/montezuma.png"))
    parser.add_argument("--draw", action="store_true", help="run nothing, only draw what is in --out")
    arguments = parser.parse_args()
    if not arguments.draw:
        base = suited(SMALL_ATARI, arguments.agent)
        config = replace(base, steps=arguments.steps, seed=arguments.seed)
        name = f"{arguments.agent}__seed{arguments.seed}"
        train(config, arguments.runs / name)
        content = {
            "machine": machine(),
            "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            **summarise(arguments.runs / name),
        }
        arguments.out.mkdir(parents=True, exist_ok=True)
        store.write_atomically(arguments.out / f"{name}.json", (json.dumps(content) + "\n").encode())
    results = [json.loads(path.read_text()) for path in sorted(arguments.out.glob("*.json"))]
    save_picture(draw(results), arguments.picture.stem, arguments.picture.parent)


if __name__ == "__main__":
    main()
