"""The memory server: one bonus, shared by every actor, that turns features into rewards.

It decides what happens to the last observation of an episode: it is always scored and
absorbed like any other in the paper's presets; in a world where dying shows something
new each time, paying for deaths hurts, so a preset may withhold the pay or the
observation altogether. It can keep the observations that founded RECODE's atoms and put
the atoms where the representation sees them now (`roles.exemplars`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np

from softcount.bonuses.batches import take_embedding
from softcount.bonuses.episodic import Episodic
from softcount.bonuses.ngu import Ngu
from softcount.bonuses.place_count import PlaceCount
from softcount.bonuses.recode import Recode
from softcount.bonuses.terminal import TerminalObservations, observe
from softcount.roles.exemplars import Exemplars
from softcount.types import Array, Bonus, Features, Observation, State, map_arrays

AT_ONCE = 2048
"""How many observations are embedded in one go."""


class MemoryServer:
    """Answers features with intrinsic rewards. Without a bonus every reward is 0."""

    def __init__(
        self,
        bonus: Bonus | None,
        terminal_observations: TerminalObservations = "paid",
        *,
        keeps_exemplars: bool = False,
    ) -> None:
        self.bonus = bonus
        self.terminal_observations = terminal_observations
        self.exemplars: Exemplars | None = None
        if keeps_exemplars and isinstance(bonus, Recode):
            self.exemplars = Exemplars(bonus.memory.config.size)

    def __call__(
        self,
        features: Features,
        env_ids: Array,
        is_first: Array,
        is_terminal: Array,
        place: Array | None,
        observation: Observation = None,
    ) -> Array:
        """Scores and absorbs what arrived; returns r^i for the arrival, float32 [B].

        True counts need `place`, exemplars the `observation`.
        """
        rewards = np.zeros(len(env_ids), np.float32)
        if self.bonus is None or self.bonus.made_where == "learning":
            return rewards
        rows = (
            np.flatnonzero(~is_terminal)
            if self.terminal_observations == "skipped"
            else np.arange(len(env_ids))
        )
        if len(rows) == 0:
            return rewards
        if isinstance(self.bonus, PlaceCount):
            if place is None:
                raise ValueError("true counts need an environment that knows its places; this one has none")
            rewards[rows] = self.bonus.observe_places(place[rows], env_ids[rows], is_first[rows])
            if self.terminal_observations == "unpaid":
                rewards[is_terminal] = 0.0
        elif not features.is_empty:
            rewards = observe(
                self.bonus, features, env_ids, is_first, is_terminal, self.terminal_observations
            )
            self._keep_exemplars(rows, observation)
        return rewards

    def _keep_exemplars(self, rows: Array, observation: Observation) -> None:
        """Keeps those of these rows of the observation that have just become atoms."""
        if self.exemplars is None:
            return
        assert isinstance(self.bonus, Recode)
        assert self.bonus.observed is not None
        founded = np.flatnonzero(self.bonus.observed.is_inserted)
        if len(founded):
            founding = map_arrays(lambda x: x[rows[founded]], observation)
            self.exemplars.keep(self.bonus.observed.slot[founded], founding)

    def reembed(self, embed: Callable[[Observation], Features]) -> None:
        """Puts every atom where the observation that founded it is embedded now."""
        if self.exemplars is None:
            return
        assert isinstance(self.bonus, Recode)
        num = len(self.bonus.memory)
        parts = [
            take_embedding(embed(self.exemplars.take(start, min(start + AT_ONCE, num))), "re-embedding")
            for start in range(0, num, AT_ONCE)
        ]
        if parts:
            self.bonus.memory.move_atoms(np.concatenate(parts))

    def scorer(self) -> Callable[[Features, Array, Array, Array | None], Array]:
        """Returns `(features, env_ids, is_first, place) -> rewards` for an evaluator: nothing shared changes.

        Shared memories are asked what they would pay. Episodic ones know only the episodes of
        their own environments, so the evaluator plays its episodes on a copy.
        """
        bonus = self.bonus
        if bonus is None or bonus.made_where == "learning":
            return lambda features, env_ids, is_first, place: np.zeros(len(env_ids), np.float32)
        if isinstance(bonus, Episodic | Ngu):
            twin = copy.deepcopy(bonus)

            def play(features: Features, env_ids: Array, is_first: Array, place: Array | None) -> Array:
                if features.is_empty:
                    return np.zeros(len(env_ids), np.float32)
                return twin.observe(features, env_ids, is_first)

            return play

        def score(features: Features, env_ids: Array, is_first: Array, place: Array | None) -> Array:
            if isinstance(bonus, PlaceCount):
                assert place is not None
                rewards = bonus.score_places(place)
            elif features.is_empty:
                rewards = np.zeros(len(env_ids), np.float32)
            else:
                rewards = bonus.score(features)
            return np.where(is_first, 0.0, rewards).astype(np.float32)

        return score

    def metrics(self) -> dict[str, float]:
        """Returns what the bonus says of itself; one that is paid while learning says it to the learner."""
        if self.bonus is None or self.bonus.made_where == "learning":
            return {}
        return self.bonus.metrics()

    def state_dict(self) -> State:
        state = {} if self.bonus is None else self.bonus.state_dict()
        if self.exemplars is None:
            return state
        assert isinstance(self.bonus, Recode)
        return {**state, "exemplars": self.exemplars.state_dict(len(self.bonus.memory))}

    def load_state_dict(self, state: State) -> None:
        if self.bonus is not None:
            self.bonus.load_state_dict(state)
        if self.exemplars is not None:
            self.exemplars.load_state_dict(state["exemplars"])
