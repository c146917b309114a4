"""The settings of a drop-in bonus: by default the paper's memory, and a representation fit for the space."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from softcount.bonuses import NormaliserConfig
from softcount.bonuses.episodic import EpisodicBonusConfig
from softcount.bonuses.make import SURPRISES, BonusConfig
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.bonuses.terminal import TerminalObservations
from softcount.memory import RecodeConfig
from softcount.optimiser import OptimiserConfig
from softcount.representations.make import RepresentationConfig
from softcount.representations.trainer import TrainerConfig
from softcount.validation import at_least, check_fields


@dataclass(frozen=True, kw_only=True)
class IntrinsicRewardConfig:
    """Memory, normalisation and learning of a drop-in bonus."""

    memory: RecodeConfig = field(default_factory=RecodeConfig)
    """RECODE's constants, the paper's Atari table; `dim` follows the representation."""
    normaliser: NormaliserConfig | None = None
    """What rewards are divided by; None is the bonus's own way."""
    representation: RepresentationConfig | None = None
    """Encoder and losses; None chooses by the observation space, see `defaults`."""
    trainer: TrainerConfig | None = None
    """Optimiser, schedule, acting copy; None chooses by the representation."""
    steps_per_update: int = 256
    """Actor steps (over all environments) between two updates of the representation."""
    first_update: int = 1_000
    """Actor steps before the first one, which then makes up for those that would have been."""
    first_updates: int = 0
    """How many it then makes at least: with more, the memory starts with a better embedding."""
    reembed_every: int = 0
    """Every so many updates RECODE's atoms are put where their observations are embedded now; 0 never does.
    Then the representation may begin to learn early, and the bonus to pay. Decision 381."""
    batch_size: int = 16
    """Sequences per update."""
    sequence_length: int = 16
    """Rows per sequence."""
    history_size: int = 10_000
    """Rows kept to draw sequences from, over all environments."""
    window: int = 16
    """Newest rows from which BYOL-Explore's surprise is computed at each step."""
    terminal_observations: TerminalObservations = "paid"
    """Whether terminal observations are paid, only absorbed, or skipped."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            steps_per_update=at_least(1),
            first_update=at_least(0),
            first_updates=at_least(0),
            reembed_every=at_least(0),
            batch_size=at_least(1),
            sequence_length=at_least(2),
            history_size=at_least(1),
            window=at_least(2),
        )

    def num_updates_due(self, before: int, now: int) -> int:
        """How many updates belong to the steps between; at `first_update` those so far at once.

        >>> config = IntrinsicRewardConfig(steps_per_update=10, first_update=50)
        >>> [config.num_updates_due(before, before + 20) for before in (0, 20, 40, 60)]
        [0, 0, 6, 2]
        """
        if now < self.first_update:
            return 0
        if before < self.first_update:
            return max(now // self.steps_per_update, self.first_updates, 1)
        return now // self.steps_per_update - before // self.steps_per_update

    def bonus_config(self, representation: str) -> BonusConfig:
        """The constants of every bonus, with the user's memory and normaliser where the name reads them."""
        recode = RecodeBonusConfig(memory=self.memory, reembed_every=self.reembed_every)
        episodic, surprise = EpisodicBonusConfig(), SURPRISES.get(representation)
        if self.normaliser is not None:
            recode = replace(recode, normaliser=self.normaliser)
            episodic = replace(episodic, normaliser=self.normaliser)
            surprise = None if surprise is None else replace(surprise, normaliser=self.normaliser)
        return BonusConfig(recode=recode, episodic=episodic, surprise=surprise)


SMALL_WORLD = IntrinsicRewardConfig(
    memory=RecodeConfig(
        size=800,
        neighbours=10,
        count_discount=0.9999,
        warmup_atoms=800,
        kernel_epsilon=0.1,
        reward_constant=1.0,
    ),
    normaliser=NormaliserConfig(kind="none"),
    trainer=TrainerConfig(
        optimiser=OptimiserConfig(learning_rate=2e-3, weight_decay=0.0),
        schedule="saturating",
        acting="slow",
        slow_step=0.02,
    ),
    first_update=12_000,
    first_updates=300,
    steps_per_update=256,
    history_size=50_000,
)
"""For worlds of about a hundred places: rewards in (0, 1], an embedding that settles. Decision 83."""

PLAIN_WORLD = replace(
    SMALL_WORLD,
    memory=replace(SMALL_WORLD.memory, size=2_000, warmup_atoms=200),
    first_update=1_000,
    first_updates=100,
    reembed_every=20,
)
"""For small worlds seen without noise, as vectors or categories; pays after 1,200 steps.

Too early for MultiRoom. Decision 381."""
