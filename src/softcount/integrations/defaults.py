"""Which representation a drop-in bonus gets when nothing is said: by the shape of what is seen.

    flat vectors            "mlp"
    grids below 36 pixels   "grid"
    frames                  "dqn"

Embeddings are bounded by a LayerNorm and follow their training slowly, because a user's
world is more often a small one than Atari (Decision 81). The paper's own settings are the
presets `ATARI` and `DM_HARD_8` of `softcount.presets`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from softcount.optimiser import OptimiserConfig
from softcount.representations.byol import ByolConfig
from softcount.representations.embedding import EmbeddingConfig
from softcount.representations.make import RepresentationConfig
from softcount.representations.rnd import NGU_RND, RndConfig
from softcount.representations.trainer import TrainerConfig
from softcount.torsos import SMALLEST_FRAME, GridConfig
from softcount.types import ObservationSpec

SETTLING_GRID = GridConfig(channels=2, colour_hidden=64, hidden_sizes=())
"""A wide table of colours learns soon which of them do not matter, and with nothing between the cells and the
embedding a cell never visited is far from all that were. Decision 130."""

SETTLING = TrainerConfig(
    optimiser=OptimiserConfig(learning_rate=6e-4, weight_decay=0.0), schedule="saturating", acting="slow"
)
"""An embedding that learns less the better it is, and acts by a slow copy."""


def choose_representation(spec: ObservationSpec, kind: str, encoder: Any = None) -> RepresentationConfig:
    """Returns settings of a kind for observations of this spec, or with an encoder of the user's own."""
    torso = encoder if encoder is not None else choose_torso(spec)
    is_frame = torso == "dqn"
    embedder = SETTLING_GRID if torso == "grid" and encoder is None else torso
    small_rnd = RndConfig(torso=torso, outputs=128, hidden_sizes=(128,))
    return RepresentationConfig(
        embedding=EmbeddingConfig(torso=embedder, dim=32 if is_frame else 16, layer_norm=True),
        rnd=(NGU_RND if "+" in kind else RndConfig()) if is_frame else small_rnd,
        byol=ByolConfig(state_size=128, hidden_sizes=(128,)),
    )


def choose_trainer(kind: str) -> TrainerConfig:
    """Returns how a kind learns: embeddings act by a slow copy, plain RND by its latest predictor."""
    return replace(SETTLING, acting="latest") if kind == "rnd" else SETTLING


def choose_torso(spec: ObservationSpec) -> Any:
    """An encoder that fits: a name, or one per key of a dict observation.

    >>> from softcount.types import ArraySpec
    >>> choose_torso(ArraySpec((84, 84, 4), "uint8")), choose_torso(ArraySpec((7, 7, 3), "uint8"))
    ('dqn', 'grid')
    """
    if isinstance(spec, Mapping):
        return {key: choose_torso(part) for key, part in spec.items()}
    if len(spec.shape) < 2:
        return "mlp"
    return "dqn" if min(spec.shape[:2]) >= SMALLEST_FRAME else "grid"
