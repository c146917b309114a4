"""Training runs on Atari games behind the figures: limited in CPU time.

All have the `laptop-atari` preset but for what their name says. A run ends after its steps or with the
report after `MOST_SECONDS` of CPU time. Every 10,000 steps it is asked how many frames the emulators have
played, where the agent has been, and how often the score changed by how much; first visits are exact to the
step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from experiments import runs
from experiments.jobs import Job, Row
from softcount.config import RunConfig
from softcount.presets import LAPTOP_ATARI, suited
from softcount.runs.run import Run

FOLDER = Path("results/atari")
RUNS = Path("runs/atari")
STEPS = 1_000_000
MOST_SECONDS = 1800.0
KEPT = {
    "frames": "charts/frames",
    "return": "charts/episodic_return",
    "length": "charts/episodic_length",
    "evaluation_return": "eval/return",
    "evaluation_success": "eval/success_rate",
    "intrinsic_reward": "intrinsic/reward_mean",
    "accuracy": "representation/accuracy",
    "atoms": "intrinsic/atoms",
    "policy_gain": "losses/policy_gain",
}


def atari_config(agent: str, seed: int, **fields: Any) -> RunConfig:
    """Returns the preset for an agent and a seed; `fields` replace its own."""
    config = replace(suited(LAPTOP_ATARI, agent), seed=seed, steps=STEPS)
    return replace(config, **fields)


def job(name: str, config: RunConfig, most_seconds: float = MOST_SECONDS) -> Job:
    """Returns the job that trains a configuration; `name` says what is special about it."""
    key = f"{name}__seed{config.seed}"
    return Job(
        key=key,
        seed=config.seed,
        settings={"name": name, "agent": config.agent, "env": config.env},
        measure=lambda: runs.train(config, RUNS / key, watch=Game(), until=partial(is_over, most_seconds)),
    )


def is_over(most_seconds: float, answers: Sequence[Row]) -> bool:
    """Says whether a run has had its CPU time."""
    return bool(answers[-1]["cpu_seconds"] > most_seconds)


class Game(runs.Watch):
    """Asks for frames, places and points at every report."""

    def ask(self, run: Run, metrics: Mapping[str, float]) -> Row:
        return {
            **{name: metrics.get(key) for name, key in KEPT.items()},
            "points": points_of(run),
            "places": metrics["coverage/places"],
        }

    def say(self, answer: Row) -> str:
        return f"{answer['places']} places, points {answer['points']}, {answer['cpu_seconds']:.0f} s"

    def sum_up(self, run: Run, answers: Sequence[Row]) -> Row:
        assert run.loop.coverage is not None
        places = run.loop.coverage.state_dict()
        return {
            "rows": list(answers),
            **{name: places[name].tolist() for name in ("places", "visits", "first_seen")},
        }


def points_of(run: Run) -> dict[str, int]:
    """Returns how often the score changed by how much, in all copies since the start."""
    env: Any = run.loop.roles.actor.env
    total: Counter[int] = sum((copy.points for copy in env.envs), Counter())
    return {str(points): total[points] for points in sorted(total)}
