"""Which representation a drop-in bonus gets when nothing is said: by the shape of what is seen.

    flat vectors            "mlp"
    grids below 36 pixels   "grid"
    frames                  "dqn"

Embeddings are bounded by a LayerNorm and follow their training slowly, because a user's
world is more often a small one than Atari (Decision 81). The paper's own settings are
`ATARI`, `ATARI_TRAINER` and so on in `softcount.representations.make`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from softcount.representations.embedding import EmbeddingConfig
from softcount.representations.make import GRID, GRID_TRAINER, RepresentationConfig
from softcount.representations.rnd import NGU_RND, RndConfig
from softcount.representations.trainer import TrainerConfig
from softcount.torsos import GridConfig
from softcount.types import ObservationSpec

SMALLEST_FRAME = 36
"""Pixels a side from which DQN's three convolutions fit."""

SETTLING_GRID = GridConfig(channels=2, colour_hidden=64, hidden_sizes=())
"""A wide table of colours learns soon which of them do not matter, and with nothing between the cells and the
embedding a cell never visited is far from all that were. Decision 130."""


def choose_representation(spec: ObservationSpec, kind: str, encoder: Any = None) -> RepresentationConfig:
    """Returns settings of a kind for observations of this spec, or with an encoder of the user's own."""
    torso = encoder if encoder is not None else choose_torso(spec)
    is_frame = torso == "dqn"
    embedder = SETTLING_GRID if torso == "grid" and encoder is None else torso
    return replace(
        GRID,
        embedding=EmbeddingConfig(torso=embedder, dim=32 if is_frame else 16, layer_norm=True),
        rnd=(NGU_RND if "+" in kind else RndConfig()) if is_frame else replace(GRID.rnd, torso=torso),
    )


def choose_trainer(kind: str) -> TrainerConfig:
    """Returns how a kind learns: embeddings act by a slow copy, plain RND by its latest predictor."""
    return replace(GRID_TRAINER, acting="latest") if kind == "rnd" else GRID_TRAINER


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
