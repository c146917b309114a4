"""Observations that stand for the atoms of a memory, so that atoms can follow the representation.

An atom is a point of the embedding as it was when the atom was made. As the representation learns on,
places move away from their atoms, known ones look new, and atoms that nothing comes near any more
keep the bandwidth wide. Here every atom keeps the observation that founded it, and can be put where
this observation is embedded now. The paper's memory does not do this; it costs |M| observations, in
memory and in every checkpoint.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.types import Array, Observation, State, map_arrays


class Exemplars:
    """One observation per slot of a memory.

    >>> exemplars = Exemplars(size=4)
    >>> exemplars.keep(np.array([0, 1]), np.array([[10], [11]]))
    >>> exemplars.keep(np.array([1]), np.array([[12]]))
    >>> exemplars.take(0, 2).tolist()
    [[10], [12]]
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._observations: Any = None  # leaves [size, ...], made when the first one comes

    def keep(self, slots: Array, observation: Observation) -> None:
        """Keeps rows of an observation for these slots; of several for one slot the last stays."""
        if self._observations is None:
            self._observations = map_arrays(
                lambda x: np.zeros((self.size, *x.shape[1:]), x.dtype), observation
            )
        map_arrays(lambda kept, new: kept.__setitem__(slots, new), self._observations, observation)

    def take(self, start: int, stop: int) -> Observation:
        """Returns the observations of these slots."""
        if self._observations is None:
            raise ValueError("no observation was kept yet")
        taken: Observation = map_arrays(lambda x: x[start:stop], self._observations)
        return taken

    def state_dict(self, num: int) -> State:
        """Returns what is kept for the first slots."""
        return {"num": num, "observations": map_arrays(np.copy, self.take(0, num)) if num else None}

    def load_state_dict(self, state: State) -> None:
        self._observations = None
        if state["num"]:
            self.keep(np.arange(state["num"]), state["observations"])
