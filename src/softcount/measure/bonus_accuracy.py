"""How right is the bonus? What it pays for every place, beside what true counts would pay.

Every place of the world is looked at a few times and scored, which changes nothing:

    correlation    of log r^i with log 1/√N over the places visited so far
    visited        median of r^i over places visited before, `unvisited` over the others
    unvisited_least   the smallest r^i of the others: a frontier that is taken for a well-known place stops
                   exploration, and no average shows it
    overlooked     the same among places visited before, see `scored_places`. Bonuses that add a constant
                   to N or √N (true counts, RECODE's n₀) give up to 1.4 or 2 for one visit alone
    noise          squared distance of embeddings of ONE place to their mean, over the squared distance
                   to the nearest other place, median over places: below 1, they can be told apart

They tell where an error is: a noisy embedding, a memory that forgot, or the agent itself. Places that the
memory is never shown (the goal, where last observations are skipped) do not count, and there is nothing to
compare with bonuses that know one episode only, that are paid while learning, or that still warm up.
"""

from __future__ import annotations

import numpy as np

from softcount.measure.coverage import Coverage
from softcount.measure.scored_places import overlooked
from softcount.roles.actor import Actor
from softcount.roles.inference import Inference
from softcount.roles.memory_server import MemoryServer
from softcount.types import Array

LOOKS = 4
"""Observations of each place."""


def judge(
    actor: Actor, inference: Inference, memory: MemoryServer, coverage: Coverage | None, seed: int
) -> dict[str, float]:
    """Returns the measures above as metrics; none where the world or the bonus does not allow them."""
    seen = actor.portraits(LOOKS, seed)
    if coverage is None or seen is None:
        return {}
    features = inference.embed(seen.observation)._replace(place=seen.places)
    paid = memory.appraise(features)
    if paid is None:
        return {}
    num_places = len(seen.places) // LOOKS
    is_shown = memory.is_shown(seen.is_terminal[:num_places])
    measures = compare(paid.reshape(LOOKS, -1)[:, is_shown], coverage.visits[is_shown])
    if features.embedding is not None:
        measures["noise"] = float(np.median(place_noise(features.embedding.reshape(LOOKS, num_places, -1))))
    return {f"truth/{name}": x for name, x in measures.items()}


def compare(paid: Array, visits: Array) -> dict[str, float]:
    """Compares rewards of looks at all places `[looks, places]` with the places' true counts.

    >>> compare(np.array([[0.1, 0.2, 1.0]]), np.array([100, 25, 0]))
    {'visited': 0.15, 'unvisited': 1.0, 'unvisited_least': 1.0, 'overlooked': 1.0, 'correlation': 1.0}
    """
    is_known = visits > 0
    mean = paid.mean(axis=0)
    measures = {
        name: round(float(np.median(mean[chosen])), 6)
        for name, chosen in (("visited", is_known), ("unvisited", ~is_known))
        if chosen.any()
    }
    if not is_known.all():
        measures["unvisited_least"] = round(float(mean[~is_known].min()), 6)
    worst = overlooked(mean, visits)
    if worst is not None:
        measures["overlooked"] = round(worst, 6)
    if is_known.sum() > 1 and np.ptp(visits[is_known]) > 0 and np.ptp(mean[is_known]) > 0:
        logs = np.log(np.maximum(mean[is_known], 1e-12)), -0.5 * np.log(visits[is_known])
        measures["correlation"] = round(float(np.corrcoef(*logs)[0, 1]), 6)
    return measures


def place_noise(embeddings: Array) -> Array:
    """Returns for looks at all places `[looks, places, D]` spread of each over distance to the next, squared.

    >>> place_noise(np.array([[[0.0], [4.0]], [[2.0], [6.0]]])).tolist()
    [0.0625, 0.0625]
    """
    centres = embeddings.mean(axis=0)
    spread = ((embeddings - centres) ** 2).sum(axis=-1).mean(axis=0)
    apart = ((centres[:, None] - centres) ** 2).sum(axis=-1)
    np.fill_diagonal(apart, np.inf)
    return np.asarray(spread / np.maximum(apart.min(axis=1), 1e-12))
