"""What most bonuses have in common: paid while acting, for life, without keeping observations."""

from __future__ import annotations

import copy
from typing import Literal

from softcount.memory import RecodeMemory
from softcount.types import Bonus, Features, Observation


class PlainBonus:
    """The parts of `types.Bonus` that a bonus says only where it differs."""

    paid_in: Literal["acting", "learning"] = "acting"
    lasts: Literal["life", "episode"] = "life"
    wants_observations: bool = False
    num_founded: int = 0  # atoms that can follow the representation

    @property
    def is_paying(self) -> bool:
        return True

    def keep(self, observation: Observation) -> None:
        """Keeps nothing."""

    def founding_observations(self, start: int, stop: int) -> Observation:
        raise TypeError(f"{type(self).__name__} keeps no observations")

    def move_atoms(self, features: Features) -> None:
        raise TypeError(f"{type(self).__name__} has no atoms that follow")

    def twin(self) -> Bonus:
        return copy.deepcopy(self)  # type: ignore[return-value]

    def describe(self) -> dict[str, float]:
        return {}

    def memories(self) -> dict[str, RecodeMemory]:
        """Returns RECODE's memories by task, for those who look into them."""
        return {}
