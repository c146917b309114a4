"""Montezuma's Revenge with the paper's protocol on a small machine: rooms and positions over time.

Frames are the paper's (grey 210×160, action repeat 4, no-ops, full action set); the torso is
smaller and the replay ratio lower than its table's, so that two cores can train at all. The
memory is the table's: 50,000 atoms. Kept are the step at which each room and position was first
seen, returns, resident memory and speed over time.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments import runs
from experiments.drawing import WIDTH, colours_of, draw_steps, legend_beside, new_figure, steps_below
from experiments.figure import Figure
from experiments.jobs import Job, Row
from softcount.agents.meme.network import NetworkConfig
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.config import RunConfig
from softcount.envs.atari_places import MontezumaPlaces
from softcount.presets import LAPTOP, suited
from softcount.replay.config import ReplayConfig
from softcount.representations.embedding import EmbeddingConfig
from softcount.representations.make import RepresentationConfig
from softcount.representations.rnd import RndConfig
from softcount.representations.trainer import TrainerConfig
from softcount.runs.run import Run
from softcount.torsos import DqnConfig

AGENTS = ("MEME-RECODE-AP", "MEME-RND")
STEPS = 1_000_000
RUNS = Path("runs/montezuma")
FRAMES_PER_STEP = 4
SMALL_DQN = DqnConfig(channels=(16, 32, 32))
KEPT = {
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


class Rooms(runs.Watch):
    """Asks for rooms, positions and how it goes at every report."""

    def ask(self, run: Run, metrics: Mapping[str, float]) -> Row:
        assert run.loop.coverage is not None
        visited = np.flatnonzero(run.loop.coverage.visits).tolist()
        kept = {name: metrics.get(key) for name, key in KEPT.items()}
        return {"num_rooms": len(rooms(visited)), "num_positions": len(visited), **kept}

    def say(self, answer: Row) -> str:
        return f"{answer['num_rooms']} rooms, {answer['num_positions']} positions"

    def sum_up(self, run: Run, answers: Sequence[Row]) -> Row:
        """Returns the steps at which each room and position was first seen."""
        assert run.loop.coverage is not None
        seen = run.loop.coverage.state_dict()
        first = dict(zip(seen["places"].tolist(), seen["first_seen"].tolist(), strict=True))
        first_room: dict[int, int] = {}
        for place, step in first.items():
            (room,) = rooms([place])
            first_room[room] = min(step, first_room.get(room, step))
        return {
            "agent": run.config.agent,
            "frames_per_step": FRAMES_PER_STEP,
            "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
            "rooms": sorted((step, room) for room, step in first_room.items()),
            "positions": sorted(first.values()),
            "rows": list(answers),
        }


def config_of(agent: str, seed: int) -> RunConfig:
    return replace(suited(SMALL_ATARI, agent), steps=STEPS, seed=seed)


def jobs() -> list[Job]:
    """One run of each agent."""
    return [_job(config_of(agent, 0)) for agent in AGENTS]


def _job(config: RunConfig) -> Job:
    key = f"{config.agent}__seed{config.seed}"
    return Job(key=key, seed=config.seed, measure=lambda: runs.train(config, RUNS / key, watch=Rooms()))


def plot(rows: Sequence[Row]) -> Any:
    """Draws positions, returns, and rooms where any run left the first, over frames; a line per run."""
    has_rooms = any(len(row["rooms"]) > 1 for row in rows)
    figure = new_figure(WIDTH, 3.6)
    positions, returns, *others = figure.subplots(1, 2 + has_rooms)
    colours = colours_of(row["agent"] for row in rows)
    for row in rows:
        rooms = f"{len(row['rooms'])} room{'s' * (len(row['rooms']) > 1)}"
        style = {"color": colours[row["agent"]], "label": f"{row['agent']}, seed {row['seed']}: {rooms}"}
        end = FRAMES_PER_STEP * row["steps"]
        draw_steps(positions, FRAMES_PER_STEP * np.array(row["positions"]), end, **style)
        for axes in others:
            draw_steps(axes, FRAMES_PER_STEP * np.array([step for step, _ in row["rooms"]]), end, **style)
        known = [(report["step"], report["return"]) for report in row["rows"] if report["return"] is not None]
        if known:
            steps, values = np.array(known).T
            returns.plot(FRAMES_PER_STEP * steps, values, **style)
    titles = ("positions visited", "mean return of the actors", "rooms visited")
    for axes, title in zip((positions, returns, *others), titles, strict=False):
        steps_below(axes)
        axes.set(xlabel="frames", title=title)
        axes.set_ylim(bottom=0)
    legend_beside(figure, columns=2)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    """A line per run."""
    return [
        f"{row['agent']}, seed {row['seed']}: {len(row['rooms'])} room{'s' * (len(row['rooms']) > 1)}, "
        f"{len(row['positions'])} positions in {FRAMES_PER_STEP * row['steps']:,} frames, "
        f"{row['seconds'] / 60:.0f} min"
        for row in rows
    ]


FIGURE = Figure(
    name="montezuma",
    paper="Fig. 4 (one game, a small part of its frames)",
    claim="RECODE visits more rooms of Montezuma's Revenge than RND.",
    laptop_cost="2 runs of 4 million frames, about 40 minutes each on two cores",
    paper_cost="see `bonuses`",
    folder=Path("results/meme/montezuma"),
    jobs=jobs,
    plot=plot,
    describe=describe,
    images=Path("docs/images"),
)
