"""Bonuses by kind: `recode`, `episodic`, `ngu`, `surprise`, `place_count`, `none`.

Each kind reads its own settings and no others. RECODE may have atoms that follow the representation;
any bonus may be held once for each task.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from softcount.bonuses.episodic import Episodic, EpisodicBonusConfig
from softcount.bonuses.following import Following
from softcount.bonuses.ngu import Ngu, NguConfig
from softcount.bonuses.per_task import PerTask
from softcount.bonuses.place_count import PlaceCount
from softcount.bonuses.recode import Recode, RecodeBonusConfig
from softcount.bonuses.surprise import BYOL_EXPLORE, RND, RND_ON_AP, Surprise, SurpriseConfig
from softcount.memory.memory import EngineName
from softcount.types import Bonus


@dataclass(frozen=True, kw_only=True)
class BonusConfig:
    """The constants of every bonus; each kind reads its own."""

    recode: RecodeBonusConfig = RecodeBonusConfig()
    """RECODE's; `dim` follows the representation, and a time step the environments unless it is set."""
    episodic: EpisodicBonusConfig = EpisodicBonusConfig()
    """EMM's."""
    ngu: NguConfig = NguConfig()
    """NGU's."""
    surprise: SurpriseConfig | None = None
    """Of RND, RNDonAP and BYOL-Explore; None is each one's own."""
    engine: EngineName = "auto"
    """RECODE's engine: `native`, `numpy`, or whichever is there."""
    num_threads: int = 1
    """Threads of the native engine; they change no bit."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where a bonus is to work."""

    dim: int | None = None
    """Size of the embeddings, None where there are none."""
    representation: str = "none"
    """Which representation gives the features."""
    num_envs: int = 1
    """How many environments it serves."""
    seed: int = 0
    """Seed of what it draws."""


def make_bonus(
    kind: str, config: BonusConfig | None = None, place: Place | None = None, *, tasks: Sequence[str] = ()
) -> Bonus | None:
    """Builds a bonus, or one for each of several tasks; None for the kind `none`.

    >>> make_bonus("none") is None, make_bonus("surprise", place=Place(representation="rnd")).paid_in
    (True, 'acting')
    """
    if kind not in KINDS:
        raise ValueError(f"bonus kind is {kind!r}; expected one of {', '.join(KINDS)}")
    config, place = config or BonusConfig(), place or Place()
    if kind in ("recode", "episodic", "ngu") and place.dim is None:
        raise ValueError(f"{kind} counts embeddings; expected their size as dim, got None")
    if len(tasks) > 1 and kind != "none":
        memory = config.recode.memory
        if memory.embeddings_per_step is None:  # each meets its own task's environments only
            memory = replace(memory, embeddings_per_step=max(1, place.num_envs // len(tasks)))
            config = replace(config, recode=replace(config.recode, memory=memory))
        seeds = range(place.seed, place.seed + len(tasks))
        bonuses = [KINDS[kind](config, replace(place, seed=seed)) for seed in seeds]
        return PerTask([bonus for bonus in bonuses if bonus is not None], tasks)
    return KINDS[kind](config, place)


def _recode(config: BonusConfig, place: Place) -> Bonus:
    assert place.dim is not None
    memory = replace(config.recode.memory, dim=place.dim)
    if memory.embeddings_per_step is None:
        memory = replace(memory, embeddings_per_step=place.num_envs)
    settings = replace(config.recode, memory=memory)
    recode = Recode(settings, seed=place.seed, engine=config.engine, num_threads=config.num_threads)
    return Following(recode) if settings.reembed_every else recode


def _episodic(config: BonusConfig, place: Place) -> Bonus:
    assert place.dim is not None
    settings = replace(config.episodic, memory=replace(config.episodic.memory, dim=place.dim))
    return Episodic(settings, num_envs=place.num_envs)


def _ngu(config: BonusConfig, place: Place) -> Bonus:
    assert place.dim is not None
    settings = replace(config.ngu, memory=replace(config.ngu.memory, dim=place.dim))
    return Ngu(settings, num_envs=place.num_envs)


def _surprise(config: BonusConfig, place: Place) -> Bonus:
    return Surprise(config.surprise or SURPRISES[place.representation])


SURPRISES = {"rnd": RND, "rnd-on-ap": RND_ON_AP, "byol": BYOL_EXPLORE}
KINDS: dict[str, Callable[[BonusConfig, Place], Bonus | None]] = {
    "recode": _recode,
    "episodic": _episodic,
    "ngu": _ngu,
    "surprise": _surprise,
    "place_count": lambda config, place: PlaceCount(),
    "none": lambda config, place: None,
}
