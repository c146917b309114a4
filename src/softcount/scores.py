"""Scores over many tasks and seeds: human-normalised, capped, interquartile means with intervals.

    HNS  = (score − random) / (human − random)        human-normalised score
    CHNS = min(max(HNS, 0), 1)                        capped (App. "Aggregated Results")
    IQM  = mean of the middle half of all runs        of every task and seed together [rliable]

Intervals come from the stratified bootstrap [rliable]: the seeds of each task are drawn again with
replacement, task by task, and the aggregate is taken of each such sample; percentiles of these are the
interval. Scores are arrays `[seeds, tasks]`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from softcount.types import Array


class Range(NamedTuple):
    """What a random policy and a person score in a task."""

    random: float
    human: float


ATARI = {
    "gravitar": Range(173.0, 3351.4),
    "hero": Range(1027.0, 30826.4),
    "montezuma_revenge": Range(0.0, 4753.3),
    "pitfall": Range(-229.4, 6463.7),
    "private_eye": Range(24.9, 69571.3),
    "qbert": Range(163.9, 13455.0),
    "solaris": Range(1236.3, 12326.7),
    "venture": Range(0.0, 1187.5),
}
"""The eight games; the published scores of the human-normalised literature (no-op starts)."""

DM_HARD_8 = {
    "baseball": Range(0.0, 7.9),
    "drawbridge": Range(0.0, 12.3),
    "navigate_cubes": Range(0.0, 7.8),
    "push_blocks": Range(0.0, 8.4),
    "remember_sensor": Range(0.0, 7.6),
    "throw_across": Range(0.0, 5.7),
    "wall_sensor": Range(0.0, 9.1),
    "wall_sensor_stack": Range(0.0, 8.6),
}
"""The paper's Table 5; a random policy is taken to score 0 (Decision 100)."""


RANGES = {"atari": ATARI, "dm-hard-8": DM_HARD_8}
"""By family of environments. Nobody has measured people in the others; Eight Rooms is not DM-HARD-8."""


class Interval(NamedTuple):
    """An aggregate with its confidence interval."""

    value: float
    low: float
    high: float


def human_normalised(score: float, task: str, ranges: Mapping[str, Range]) -> float:
    """Returns HNS: 0 plays as a random policy, 1 as a person.

    >>> human_normalised(4.2, "push_blocks", DM_HARD_8)
    0.5
    """
    if task not in ranges:
        raise ValueError(f"no human score is known for {task!r}; expected one of {', '.join(ranges)}")
    return (score - ranges[task].random) / (ranges[task].human - ranges[task].random)


def capped(score: float, task: str, ranges: Mapping[str, Range]) -> float:
    """Returns CHNS, between 0 and 1."""
    return min(max(human_normalised(score, task, ranges), 0.0), 1.0)


def capped_returns(returns: Mapping[str, float]) -> dict[str, float]:
    """Returns CHNS by environment, of those in which people were measured; what is not known is left out.

    >>> capped_returns({"dm-hard-8/push_blocks": 4.2, "atari/pitfall:sticky=0.25": 9e9, "disco-maze": 1.0})
    {'dm-hard-8/push_blocks': 0.5, 'atari/pitfall:sticky=0.25': 1.0}
    """
    scores = {}
    for name, value in returns.items():
        family, _, task = name.partition(":")[0].partition("/")
        if task in RANGES.get(family, {}):
            scores[name] = capped(value, task, RANGES[family])
    return scores


def mean(scores: Array) -> float:
    """Returns the mean over tasks of the means over seeds."""
    return float(_checked(scores).mean(axis=0).mean())


def interquartile_mean(scores: Array) -> float:
    """Returns the mean of what is left when the lowest and the highest quarter of all runs are cut off.

    A quarter is rounded down to whole runs.

    >>> interquartile_mean(np.array([[0.0, 1.0], [2.0, 100.0]]))
    1.5
    """
    ordered = np.sort(_checked(scores), axis=None)
    cut = len(ordered) // 4
    return float(ordered[cut : len(ordered) - cut].mean())


def with_interval(
    scores: Array,
    aggregate: Callable[[Array], float] = interquartile_mean,
    *,
    confidence: float = 0.95,
    num_samples: int = 2000,
    seed: int = 0,
) -> Interval:
    """Returns an aggregate of scores `[seeds, tasks]` with its stratified bootstrap interval.

    >>> with_interval(np.ones((3, 2)))
    Interval(value=1.0, low=1.0, high=1.0)
    """
    scores = _checked(scores)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}; expected a number between 0 and 1")
    rng = np.random.default_rng(seed)
    tasks = np.arange(scores.shape[1])
    samples = [
        aggregate(scores[rng.integers(len(scores), size=scores.shape), tasks]) for _ in range(num_samples)
    ]
    outside = 50 * (1 - confidence)
    low, high = np.percentile(samples, (outside, 100 - outside))
    return Interval(aggregate(scores), float(low), float(high))


def _checked(scores: Array) -> Array:
    array = np.asarray(scores, np.float64)
    if array.ndim != 2 or array.size == 0:
        raise ValueError(f"scores have shape {array.shape}; expected (seeds, tasks) with at least one each")
    return array
