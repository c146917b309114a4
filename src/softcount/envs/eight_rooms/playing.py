"""Plays episodes without an agent: with the scripted solvers, or at random.

Many worlds at once, nothing drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from softcount.envs.eight_rooms import core
from softcount.envs.eight_rooms.levels import Variant, generate
from softcount.envs.eight_rooms.player import Player
from softcount.envs.eight_rooms.solvers import SOLVERS
from softcount.envs.eight_rooms.tasks import TASKS, highest_score
from softcount.types import Array

ACTION_REPEAT = 4


@dataclass
class Episode:
    """How an episode went."""

    seed: int
    score: float
    highest: float  # what the level pays at most
    steps: int
    is_solved: bool


def play_solver(
    task: str, variant: Variant, seeds: Sequence[int], at_once: int = 32, max_steps: int | None = None
) -> list[Episode]:
    """Lets the solver play one level for each seed."""
    episodes: list[Episode] = []
    for first in range(0, len(seeds), at_once):
        episodes += _play_together(task, variant, seeds[first : first + at_once], max_steps)
    return episodes


def _play_together(task: str, variant: Variant, seeds: Sequence[int], max_steps: int | None) -> list[Episode]:
    batch = core.Batch(len(seeds), 8, 6)
    players, episodes = [], []
    for slot, seed in enumerate(seeds):
        level = generate(task, variant, np.random.default_rng(np.random.SeedSequence((seed,))))
        batch.load(slot, level.state)
        players.append(SOLVERS[task](Player(batch.states[slot], level.marks)))
        episodes.append(Episode(seed, 0.0, highest_score(task, level.state), 0, False))
    actions = np.zeros((len(seeds), 9), np.float32)
    repeats = np.full(len(seeds), ACTION_REPEAT, np.int32)
    for _ in range(max_steps or TASKS[task].limit(variant)):
        for slot in np.flatnonzero(repeats).tolist():
            actions[slot] = next(players[slot])
        batch.step_blindly(actions, repeats)
        for slot in np.flatnonzero(repeats).tolist():
            episode = episodes[slot]
            episode.steps += 1
            episode.score = float(batch.states["score"][slot])
            episode.is_solved = bool(batch.states["is_over"][slot])
        repeats[batch.states["is_over"] > 0] = 0
        if not repeats.any():
            break
    return episodes


def random_actions(rng: np.random.Generator, last: Array, num: int, keep: float = 0.75) -> Array:
    """Draws one of `num` actions for each copy, each kept for four steps on average."""
    drawn = rng.integers(num, size=len(last))
    return np.where(rng.uniform(size=len(last)) < keep, last, drawn)
