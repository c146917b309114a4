"""Montezuma's Revenge with the paper's protocol on a small machine: rooms and positions over time.

    python -m softcount.experiments.montezuma --agent MEME-RECODE-AP --steps 100000

Frames are the paper's (grey 210×160, action repeat 4, no-ops, full action set); the torso is
smaller and the replay ratio lower than its table's, so that two cores can train at all. The
memory is the table's: 50,000 atoms. Writes a JSON with coverage, returns, resident memory and
speed over time.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from softcount.agents.meme.network import NetworkConfig
from softcount.config import RunConfig
from softcount.envs.atari_places import MontezumaPlaces
from softcount.launch.run import Run
from softcount.memory import RecodeConfig
from softcount.presets import LAPTOP
from softcount.replay.sequences import ReplayConfig
from softcount.representations.embedding import EmbeddingConfig
from softcount.representations.make import RepresentationConfig
from softcount.representations.rnd import RndConfig
from softcount.representations.trainer import TrainerConfig
from softcount.torsos import DqnConfig

SMALL_DQN = DqnConfig(channels=(16, 32, 32))

SMALL_ATARI = replace(
    LAPTOP,
    env="atari/montezuma_revenge",
    env_options={},
    num_envs=16,
    meme=replace(
        LAPTOP.meme, network=NetworkConfig(torso=SMALL_DQN, core_size=128, head_size=128, num_mixtures=6)
    ),
    epsilon_base=0.4,
    epsilon_power=7.0,
    replay=ReplayConfig(
        trace_length=20, period=10, capacity=5000, replay_ratio=0.25, min_traces=50, max_bytes=2**30
    ),
    batch_size=8,
    representation=RepresentationConfig(
        embedding=EmbeddingConfig(torso=SMALL_DQN, dim=32), rnd=RndConfig(torso=SMALL_DQN)
    ),
    trainer=TrainerConfig(),
    memory=RecodeConfig(),
    normaliser=None,
    terminal_observations="paid",
    relabel=False,
    evaluation_episodes=4,
    evaluate_every=0,
    report_every=2000,
)
"""The paper's protocol and memory with networks that two cores can train."""


def rooms(places: Sequence[int]) -> set[int]:
    """Returns the rooms of visited places."""
    return {int(place) // (MontezumaPlaces.rows * MontezumaPlaces.columns) for place in places}


def train(config: RunConfig, folder: Path) -> list[dict[str, Any]]:
    """Trains and returns a row per report."""
    run = Run.create(folder, config)
    rows = []
    for step, metrics in run.train():
        assert run.loop.coverage is not None
        visited = np.flatnonzero(run.loop.coverage.visits).tolist()
        rows.append(
            {
                "step": step,
                "positions": len(visited),
                "rooms": len(rooms(visited)),
                "return": metrics.get("charts/episodic_return"),
                "intrinsic_return": metrics.get("charts/intrinsic_return"),
                "steps_per_second": metrics["charts/SPS"],
                "atoms": metrics.get("intrinsic/atoms"),
                "replay_bytes": metrics["replay/bytes"],
                "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
                "seconds": metrics["time/elapsed"],
            }
        )
        print(json.dumps(rows[-1]), flush=True)
    run.close()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agent", default="MEME-RECODE-AP")
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--run", type=Path, default=Path("runs/montezuma"))
    parser.add_argument("--out", type=Path, default=Path("results/meme/montezuma.json"))
    arguments = parser.parse_args()
    config = replace(SMALL_ATARI, agent=arguments.agent, steps=arguments.steps, seed=arguments.seed)
    rows = train(config, arguments.run)
    content = {
        "agent": arguments.agent,
        "seed": arguments.seed,
        "frames_per_step": 4,
        "machine": {
            "cpus": os.cpu_count(),
            "processor": platform.machine(),
            "python": platform.python_version(),
        },
        "rows": rows,
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(content) + "\n")


if __name__ == "__main__":
    main()
