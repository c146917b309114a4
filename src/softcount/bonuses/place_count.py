"""True visit counts as a bonus: what RECODE would pay if it knew the places.

    r = 1 / √N(place),   N counts this visit too

The limit that experiments compare with. It reads the ground truth of the environment
(`Features.place`), never an embedding. A place below 0 (dead, or inside a wall) is not a
place: not counted, paid 0.
"""

from __future__ import annotations

import numpy as np

from softcount.bonuses.checks import check_batch
from softcount.bonuses.plain import PlainBonus
from softcount.types import Array, Features, State


class PlaceCount(PlainBonus):
    """Pays 1/√N of the true place, over all environments and the whole run.

    >>> bonus = PlaceCount()
    >>> features = Features(place=np.array([7, 7, -1, 7]))
    >>> is_first = np.array([True, False, False, False])
    >>> [round(float(r), 3) for r in bonus.observe(features, np.arange(4), is_first)]
    [0.0, 0.707, 0.0, 0.577]
    """

    def __init__(self) -> None:
        self.counts = np.zeros(0, np.int64)  # N by place; grows as places appear
        self._metrics: dict[str, float] = {}

    def can_read(self, features: Features) -> bool:
        return features.place is not None

    def observe(
        self, features: Features, env_ids: Array, is_first: Array, task_ids: Array | None = None
    ) -> Array:
        """Counts every row in sequence, then pays it; FIRST rows are counted and paid 0."""
        places = _places_of(features)
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

    def score(self, features: Features, env_ids: Array | None = None, task_ids: Array | None = None) -> Array:
        """Returns what a visit to each place would be paid now; nothing changes."""
        places = _places_of(features)
        known = np.zeros(len(places), np.int64)
        is_known = (places >= 0) & (places < len(self.counts))
        known[is_known] = self.counts[places[is_known]]
        return np.where(places >= 0, (known + 1.0) ** -0.5, 0.0).astype(np.float32)

    def metrics(self) -> dict[str, float]:
        return {**self._metrics, "places": float((self.counts > 0).sum()), "visits": float(self.counts.sum())}

    def state_dict(self) -> State:
        return {"counts": self.counts.copy(), "metrics": dict(self._metrics)}

    def load_state_dict(self, state: State) -> None:
        self.counts = np.array(state["counts"], np.int64)
        self._metrics = dict(state.get("metrics", {}))


def _places_of(features: Features) -> Array:
    if features.place is None:
        raise ValueError("true counts need features.place, which is None: a world that knows its places")
    array = np.asarray(features.place)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            f"places are {array.dtype} of shape {array.shape}; expected whole numbers of shape (B,)"
        )
    return array.astype(np.int64)
