"""All that a memory server is made of, as one record that crosses processes; needs no torch.

A process that holds nothing but the memory starts in a fraction of the time of one that also loads
networks, and is back as quickly after it was killed.
"""

from __future__ import annotations

from dataclasses import dataclass

from softcount.bonuses.make import BonusConfig, Place, make_bonus
from softcount.bonuses.terminal import TerminalObservations
from softcount.roles.memory_server import MemoryServer
from softcount.types import Bonus


@dataclass(frozen=True, kw_only=True)
class MemoryPlan:
    """Which bonus, with which constants, for which embeddings and environments.

    >>> MemoryPlan(kind="place_count").build().describe()
    {}
    """

    kind: str = "none"
    """The bonus, as `taxonomy.Recipe.bonus` names it."""
    bonus: BonusConfig = BonusConfig()
    """The constants of every bonus; the kind reads its own."""
    place: Place = Place()
    """Size of the embeddings, representation, number of environments, seed."""
    tasks: tuple[str, ...] = ()
    """One bonus for each of these; () for one that all share."""
    terminal_observations: TerminalObservations = "paid"
    """What happens to the last observation of an episode."""

    def make_bonus(self) -> Bonus | None:
        return make_bonus(self.kind, self.bonus, self.place, tasks=self.tasks)

    def build(self) -> MemoryServer:
        return self.serve(self.make_bonus())

    def serve(self, bonus: Bonus | None) -> MemoryServer:
        """Puts a bonus behind a server; one that is paid in learning is the learner's, and not here."""
        is_late = bonus is not None and bonus.paid_in == "learning"
        return MemoryServer(None if is_late else bonus, self.terminal_observations)
