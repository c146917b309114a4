"""True visit counts as a bonus: what RECODE would pay if it knew the places.

    r = 1 / √N(place),   N counts this visit too

The limit that experiments compare with. It reads the ground truth of the environment
(`TimeStep.place`), never an embedding, so it is fed by `observe_places`. A place below 0
(dead, or inside a wall) is not a place: not counted, paid 0.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from softcount.bonuses.batches import check_batch
from softcount.types import Array, Features, State


class PlaceCount:
    """Pays 1/√N of the true place, over all environments and the whole run.

    >>> bonus = PlaceCount()
    >>> places, is_first = np.array([7, 7, -1, 7]), np.array([True, False, False, False])
    >>> [round(float(r), 3) for r in bonus.observe_places(places, np.arange(4), is_first)]
    [0.0, 0.707, 0.0, 0.577]
    """

    made_where: Literal["acting", "learning"] = "acting"

    def __init__(self) -> None:
        self.counts = np.zeros(0, np.int64)  # N by place; grows as places appear
        self._metrics: dict[str, float] = {}

    def observe_places(self, places: Array, env_ids: Array, is_first: Array) -> Array:
        """Counts every row in sequence, then pays it; FIRST rows are counted and paid 0."""
        places = _check_places(places)
        batch = check_batch(len(places), env_ids, is_first)
        if len(places) > 0 and places.max() >= len(self.counts):
            self.counts = np.pad(self.counts, (0, int(places.max()) + 1 - len(self.counts)))
        paid = np.zeros(len(places), np.float32)
        for row, place in enumerate(places):
            if place < 0:
                continue
            self.counts[place] += 1
            if not batch.is_first[row]:
                paid[row] = self.counts[place] ** -0.5
        self._metrics = {"reward": float(paid.mean()) if len(paid) else 0.0}
        return paid

    def score_places(self, places: Array) -> Array:
        """Returns what a visit to each place would be paid now; nothing changes."""
        places = _check_places(places)
        known = np.zeros(len(places), np.int64)
        is_known = (places >= 0) & (places < len(self.counts))
        known[is_known] = self.counts[places[is_known]]
        return np.where(places >= 0, (known + 1.0) ** -0.5, 0.0).astype(np.float32)

    def observe(
        self, features: Features, env_ids: Array, is_first: Array, task_ids: Array | None = None
    ) -> Array:
        raise TypeError("PlaceCount reads true places, not features; call observe_places")

    def score(self, features: Features, env_ids: Array | None = None) -> Array:
        raise TypeError("PlaceCount reads true places, not features; call score_places")

    def metrics(self) -> dict[str, float]:
        return {**self._metrics, "places": float((self.counts > 0).sum()), "visits": float(self.counts.sum())}

    def state_dict(self) -> State:
        return {"counts": self.counts.copy(), "metrics": dict(self._metrics)}

    def load_state_dict(self, state: State) -> None:
        self.counts = np.array(state["counts"], np.int64)
        self._metrics = dict(state.get("metrics", {}))


def _check_places(places: Array) -> Array:
    array = np.asarray(places)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"places are {array.dtype} of shape {array.shape}; expected whole numbers of shape (B,)"
        )
    return array.astype(np.int64)
