"""Observations to features: what the bonuses see (§3.2 of the paper).

`make_representation` builds any of them by name, `RepresentationTrainer` trains it. What
each one is and when to use which: `docs/representations.md`.
"""

from softcount.representations.action_prediction import ActionPrediction, ActionPredictionConfig
from softcount.representations.byol import Byol, ByolConfig
from softcount.representations.casm import Casm, CasmConfig
from softcount.representations.cells import CellConfig, CellPrediction
from softcount.representations.compose import Both, Frozen, Function, Random
from softcount.representations.embedding import EmbeddingConfig
from softcount.representations.features import Representation
from softcount.representations.frame import Frame, FrameConfig
from softcount.representations.make import KINDS, RepresentationConfig, make_representation
from softcount.representations.rnd import EmbeddingRndConfig, RandomDistillation, RndConfig
from softcount.representations.trainer import RepresentationTrainer, TrainerConfig

__all__ = [
    "ActionPrediction",
    "ActionPredictionConfig",
    "Both",
    "Byol",
    "ByolConfig",
    "Casm",
    "CasmConfig",
    "CellConfig",
    "CellPrediction",
    "EmbeddingConfig",
    "EmbeddingRndConfig",
    "Frame",
    "FrameConfig",
    "Frozen",
    "Function",
    "KINDS",
    "Random",
    "RandomDistillation",
    "Representation",
    "RepresentationConfig",
    "RepresentationTrainer",
    "RndConfig",
    "TrainerConfig",
    "make_representation",
]
