"""The memory server: one bonus, shared by every actor, that turns features into rewards.

It decides what happens to the last observation of an episode (`bonuses.terminal`) and asks the
bonus. Whoever embeds may have atoms follow the representation: it takes the observations that
founded them out, embeds them, and gives the features back.
"""

from __future__ import annotations

import numpy as np

from softcount.bonuses.terminal import TerminalObservations, observe, shown
from softcount.types import Array, Bonus, Features, Observation, State, map_arrays


class MemoryServer:
    """Answers features with intrinsic rewards. Without a bonus every reward is 0."""

    def __init__(self, bonus: Bonus | None, terminal_observations: TerminalObservations = "paid") -> None:
        self.bonus = bonus
        self.terminal_observations: TerminalObservations = terminal_observations
        self._played: Bonus | None = None  # whom an evaluation asks

    def __call__(
        self,
        features: Features,
        env_ids: Array,
        is_first: Array,
        is_terminal: Array,
        task_ids: Array | None = None,
        observation: Observation = None,
    ) -> Array:
        """Scores and absorbs what arrived; returns r^i for the arrival, float32 [B]."""
        if self.bonus is None or not self.bonus.can_read(features):
            return np.zeros(len(env_ids), np.float32)
        rule = self.terminal_observations
        rewards = observe(self.bonus, features, env_ids, is_first, is_terminal, rule, task_ids)
        rows = shown(is_terminal, rule)
        if self.bonus.wants_observations and len(rows):
            self.bonus.keep(map_arrays(lambda x: x[rows], observation))
        return rewards

    def score(
        self,
        features: Features,
        env_ids: Array,
        is_first: Array,
        is_terminal: Array,
        task_ids: Array | None = None,
    ) -> Array:
        """Returns what arriving would be paid now; nothing changes. Rows that are never paid stay so."""
        if self.bonus is None or not self.bonus.can_read(features):
            return np.zeros(len(env_ids), np.float32)
        rewards = self.bonus.score(features, env_ids, task_ids)
        is_withheld = is_first | (is_terminal & (self.terminal_observations != "paid"))
        return np.where(is_withheld, 0.0, rewards).astype(np.float32)

    def begin_evaluation(self) -> None:
        """Gets ready to be asked by an evaluator; memories of one episode are played on a copy."""
        if self.bonus is not None:
            self._played = self.bonus.twin() if self.bonus.lasts == "episode" else self.bonus

    def evaluate(
        self, features: Features, env_ids: Array, is_first: Array, task_ids: Array | None = None
    ) -> Array:
        """Returns what an evaluator's arrivals would be paid; what actors share does not change."""
        bonus = self._played
        if bonus is None or not bonus.can_read(features):
            return np.zeros(len(env_ids), np.float32)
        if bonus.lasts == "episode":
            return bonus.observe(features, env_ids, is_first, task_ids)
        return np.where(is_first, 0.0, bonus.score(features, env_ids, task_ids)).astype(np.float32)

    def appraise(self, features: Features) -> Array | None:
        """Returns what a visit would be paid now; None from a bonus of one episode, or while it gathers."""
        bonus = self.bonus
        if bonus is None or bonus.lasts == "episode" or not bonus.is_paying or not bonus.can_read(features):
            return None
        return bonus.score(features)

    def is_shown(self, is_terminal: Array) -> Array:
        """Says which observations it ever gets to see."""
        is_shown = np.zeros(len(is_terminal), bool)
        is_shown[shown(is_terminal, self.terminal_observations)] = True
        return is_shown

    def wants_observations(self) -> bool:
        """Whether observations are to come with what is asked, for atoms to keep."""
        return self.bonus is not None and self.bonus.wants_observations

    def num_founded(self) -> int:
        """How many atoms can follow the representation."""
        return 0 if self.bonus is None else self.bonus.num_founded

    def founding_observations(self, start: int, stop: int) -> Observation:
        """Returns the observations that founded these atoms."""
        assert self.bonus is not None
        return self.bonus.founding_observations(start, stop)

    def move_atoms(self, features: Features) -> None:
        """Puts every atom where the observation that founded it is embedded now."""
        assert self.bonus is not None
        self.bonus.move_atoms(features)

    def metrics(self) -> dict[str, float]:
        """Returns what the bonus says of its last batch."""
        return {} if self.bonus is None else self.bonus.metrics()

    def describe(self) -> dict[str, float]:
        """Returns what the bonus says of what it remembers."""
        return {} if self.bonus is None else self.bonus.describe()

    def memories(self) -> dict[str, State]:
        """Returns the states of RECODE's memories by task, for those who look into them."""
        memories = {} if self.bonus is None else self.bonus.memories()
        return {task: memory.state_dict() for task, memory in memories.items()}

    def state_dict(self) -> State:
        return {} if self.bonus is None else self.bonus.state_dict()

    def load_state_dict(self, state: State) -> None:
        if self.bonus is not None:
            self.bonus.load_state_dict(state)
