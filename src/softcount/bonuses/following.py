"""RECODE whose atoms follow the representation: each keeps the observation that founded it.

An atom is a point of the embedding as it was when the atom was made. As the representation learns on,
places move away from their atoms, known ones look new, and atoms that nothing comes near any more
keep the bandwidth wide. Here every atom keeps the observation that founded it, and can be put where
this observation is embedded now. The paper's memory does not do this; it costs |M| observations, in
memory and in every checkpoint.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from softcount.bonuses.checks import take_embedding
from softcount.bonuses.plain import PlainBonus
from softcount.bonuses.recode import Recode
from softcount.memory import RecodeMemory
from softcount.types import Array, Features, Observation, State, map_arrays


class Following(PlainBonus):
    """RECODE with an observation for every atom; what it pays is RECODE's own."""

    wants_observations = True

    def __init__(self, bonus: Recode) -> None:
        self.bonus = bonus
        self.exemplars = Exemplars(bonus.memory.config.size)

    def memories(self) -> dict[str, RecodeMemory]:
        return self.bonus.memories()

    @property
    def is_paying(self) -> bool:
        return self.bonus.is_paying

    @property
    def num_founded(self) -> int:  # type: ignore[override]
        return len(self.bonus.memory)

    def can_read(self, features: Features) -> bool:
        return self.bonus.can_read(features)

    def observe(
        self, features: Features, env_ids: Array, is_first: Array, task_ids: Array | None = None
    ) -> Array:
        return self.bonus.observe(features, env_ids, is_first, task_ids)

    def score(self, features: Features, env_ids: Array | None = None, task_ids: Array | None = None) -> Array:
        return self.bonus.score(features, env_ids, task_ids)

    def keep(self, observation: Observation) -> None:
        """Keeps those rows of what was just observed that have become atoms."""
        observed = self.bonus.observed
        assert observed is not None
        founded = np.flatnonzero(observed.is_inserted)
        if len(founded):
            self.exemplars.keep(observed.slot[founded], map_arrays(lambda x: x[founded], observation))

    def founding_observations(self, start: int, stop: int) -> Observation:
        return self.exemplars.take(start, stop)

    def move_atoms(self, features: Features) -> None:
        """Puts every atom where the observation that founded it is embedded now."""
        self.bonus.memory.move_atoms(take_embedding(features, "re-embedding"))

    def twin(self) -> Following:
        other = Following(self.bonus.twin())
        other.exemplars = copy.deepcopy(self.exemplars)
        return other

    def metrics(self) -> dict[str, float]:
        return self.bonus.metrics()

    def describe(self) -> dict[str, float]:
        return self.bonus.describe()

    def state_dict(self) -> State:
        return {**self.bonus.state_dict(), "exemplars": self.exemplars.state_dict(self.num_founded)}

    def load_state_dict(self, state: State) -> None:
        self.bonus.load_state_dict(state)
        self.exemplars.load_state_dict(state["exemplars"])


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
