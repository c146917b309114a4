"""What happens to the last observation of an episode that ends for good.

    paid       scored and absorbed like any other: the paper's presets
    unpaid     absorbed, paid 0
    skipped    not shown to the bonus at all

In a world where dying shows something new each time, paying for deaths hurts. The rule is
the same wherever a bonus is paid: by the memory server, by the learner, in drop-in use.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from softcount.types import Array, Bonus, Features, take_rows

TerminalObservations = Literal["paid", "unpaid", "skipped"]


def shown(is_terminal: Array, rule: TerminalObservations) -> Array:
    """Returns which rows a bonus gets to see."""
    return np.flatnonzero(~is_terminal) if rule == "skipped" else np.arange(len(is_terminal))


def observe(
    bonus: Bonus,
    features: Features,
    env_ids: Array,
    is_first: Array,
    is_terminal: Array,
    rule: TerminalObservations,
    task_ids: Array | None = None,
) -> Array:
    """Shows rows to a bonus as the rule says; returns what each is paid, float32 `[B]`."""
    rewards = np.zeros(len(env_ids), np.float32)
    rows = shown(is_terminal, rule)
    if len(rows) == 0:
        return rewards
    tasks = None if task_ids is None else task_ids[rows]
    rewards[rows] = bonus.observe(take_rows(features, rows), env_ids[rows], is_first[rows], tasks)
    if rule == "unpaid":
        rewards[is_terminal] = 0.0
    return rewards
