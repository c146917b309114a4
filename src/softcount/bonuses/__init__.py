"""Bonuses: features to intrinsic rewards. NumPy only; the extrinsic reward never enters."""

from softcount.bonuses.episodic import Episodic, EpisodicBonusConfig
from softcount.bonuses.ngu import Ngu, NguConfig
from softcount.bonuses.normalise import NormaliserConfig
from softcount.bonuses.place_count import PlaceCount
from softcount.bonuses.recode import Recode, RecodeBonusConfig
from softcount.bonuses.surprise import BYOL_EXPLORE, RND, RND_ON_AP, Surprise, SurpriseConfig

__all__ = [
    "BYOL_EXPLORE",
    "RND",
    "RND_ON_AP",
    "Episodic",
    "EpisodicBonusConfig",
    "Ngu",
    "NguConfig",
    "NormaliserConfig",
    "PlaceCount",
    "Recode",
    "RecodeBonusConfig",
    "Surprise",
    "SurpriseConfig",
]
