"""Montezuma's Revenge: one change at a time from the `laptop-atari` preset, 400,000 steps, two seeds each.

The preset itself is RECODE-FRAME of figure `atari`, with the same seeds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from experiments.agent.atari import CHANGE, describe, plot
from experiments.agent.atari_runs import FOLDER, atari_config, job
from experiments.figure import Figure
from experiments.jobs import Job
from softcount.config import RunConfig, with_fields

STEPS = 400_000
SEEDS = (1, 0)

FIELDS: dict[str, Mapping[str, Any]] = {
    "all pay": {"recode.normaliser.kind": "none", "meme.loss.beta_max": 0.2},
    "short views": {"meme.loss.discount_min": 0.85},
    "replay ratio 4": {"meme.replay.replay_ratio": 4.0},
    "beta 0.2": {"meme.loss.beta_max": 0.2},
    "epsilon of MEME": {"meme.epsilon_base": 0.4, "meme.epsilon_power": 7.0},
    "k 20": {"recode.memory.neighbours": 20},
    "20,000 atoms": {"recode.memory.size": 20_000},
}
"""Fields of the configuration that a change sets; where nothing is taken off the pay, β keeps the balance."""

OPTIONS: dict[str, Mapping[str, Any]] = {
    "a death is an end": {"life_loss_is_terminal": True},
    "all 18 actions": {"actions": ()},
    "deaths shown": {"skip_deaths": False},
    "one frame": {"stack": 1},
    "84 by 80": {"size": (84, 80)},
    "no clipping": {"clip_rewards": False},
}
"""Options of the environment that a change sets."""


def config_of(change: str, seed: int) -> RunConfig:
    """The preset but for one change."""
    config = replace(atari_config("MEME-RECODE-FRAME", seed), steps=STEPS)
    if change in OPTIONS:
        return replace(config, env_options={**config.env_options, **OPTIONS[change]})
    return with_fields(config, FIELDS[change])


def key_of(change: str) -> str:
    """Returns the name of a run's file, but for its seed."""
    return f"{CHANGE}{change.replace(' ', '_').replace(',', '')}"


def jobs() -> list[Job]:
    """Every change with the first seed, then with the second."""
    return [job(key_of(change), config_of(change, seed)) for seed in SEEDS for change in (*FIELDS, *OPTIONS)]


FIGURE = Figure(
    name="atari_changes",
    paper="no figure of the paper",
    claim="What the setting for Montezuma's Revenge hangs on.",
    laptop_cost="26 runs of 400,000 steps, about 8 CPU-minutes each",
    paper_cost="not in the paper",
    folder=FOLDER / "changes",
    jobs=jobs,
    plot=plot,
    describe=describe,
)
