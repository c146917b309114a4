"""Representations by name, and settings for small grids.

    ap  casm  casnotm  byol  rnd  rnd-on-ap  random  frame   and  "ap+rnd":  Both(embedding, surprise)

A name, the two specs and a seed give the same weights every time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch

from softcount.optimiser import OptimiserConfig
from softcount.representations.action_prediction import ActionPrediction, ActionPredictionConfig
from softcount.representations.byol import Byol, ByolConfig
from softcount.representations.casm import Casm, CasmConfig
from softcount.representations.cells import CellConfig, CellPrediction
from softcount.representations.compose import Both, Random
from softcount.representations.embedding import EmbeddingConfig
from softcount.representations.features import Representation
from softcount.representations.frame import Frame, FrameConfig
from softcount.representations.newest import Newest, newest_spec
from softcount.representations.rnd import EmbeddingRndConfig, RandomDistillation, RndConfig
from softcount.representations.trainer import TrainerConfig
from softcount.types import ActionSpec, ObservationSpec

KINDS = ("ap", "casm", "casnotm", "byol", "rnd", "rnd-on-ap", "random", "frame")


@dataclass(frozen=True, kw_only=True)
class RepresentationConfig:
    """Everything a representation may need; each kind reads its own part."""

    embedding: EmbeddingConfig = field(default_factory=EmbeddingConfig)
    """The encoder f, shared by all kinds that have one."""
    action_prediction: ActionPredictionConfig = field(default_factory=ActionPredictionConfig)
    """AP's classifier."""
    cells: CellConfig = field(default_factory=CellConfig)
    """AP by cells, if `action_prediction.by` says so."""
    casm: CasmConfig = field(default_factory=CasmConfig)
    """CASM's masks and transformer."""
    byol: ByolConfig = field(default_factory=ByolConfig)
    """BYOL-Explore's world model."""
    rnd: RndConfig = field(default_factory=RndConfig)
    """Distillation from pixels."""
    rnd_on_embedding: EmbeddingRndConfig = field(default_factory=EmbeddingRndConfig)
    """Distillation from embeddings."""
    frame: FrameConfig = field(default_factory=FrameConfig)
    """The small picture that FRAME counts."""
    newest_channels: int = 0
    """Of images with stacked frames only so many channels are seen, the newest; 0 shows all."""


GRID = RepresentationConfig(
    embedding=EmbeddingConfig(torso="grid", dim=16, layer_norm=True),
    rnd=RndConfig(torso="grid", outputs=128, hidden_sizes=(128,)),
    byol=ByolConfig(state_size=128, hidden_sizes=(128,)),
)
GRID_TRAINER = TrainerConfig(
    optimiser=OptimiserConfig(learning_rate=6e-4, weight_decay=0.0), schedule="saturating", acting="slow"
)
"""Small grids on a laptop; what mattered there is in `docs/representations.md`."""


def make_representation(
    kind: str,
    observation_spec: ObservationSpec,
    action_spec: ActionSpec,
    config: RepresentationConfig | None = None,
    *,
    seed: int = 0,
) -> Representation:
    """Builds a representation; `kind` is one of `KINDS` or two of them joined by "+".

    >>> from softcount.types import ArraySpec, DiscreteActions
    >>> both = make_representation("ap+rnd", ArraySpec((11, 11, 3), "uint8"), DiscreteActions(4), GRID)
    >>> type(both).__name__, both.dim
    ('Both', 16)
    """
    config = config or RepresentationConfig()
    if config.newest_channels:
        spec, rest = newest_spec(observation_spec, config.newest_channels), replace(config, newest_channels=0)
        return Newest(make_representation(kind, spec, action_spec, rest, seed=seed), config.newest_channels)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if "+" in kind:
            embedding, surprise = kind.split("+", 1)
            return Both(
                embedding=_make(embedding, observation_spec, action_spec, config, seed),
                surprise=_make(surprise, observation_spec, action_spec, config, seed + 1),
            )
        return _make(kind, observation_spec, action_spec, config, seed)


def _make(
    kind: str, spec: ObservationSpec, actions: ActionSpec, config: RepresentationConfig, seed: int
) -> Representation:
    embedding = config.embedding
    if kind == "ap" and config.action_prediction.by == "cells":
        return CellPrediction(spec, actions, config.cells)
    if kind == "ap":
        return ActionPrediction(
            spec, actions, embedding=embedding, config=config.action_prediction, seed=seed
        )
    if kind in ("casm", "casnotm"):
        casm = replace(config.casm, mask=kind == "casm")
        return Casm(spec, actions, embedding=embedding, config=casm, seed=seed)
    if kind == "byol":
        return Byol(spec, actions, embedding=embedding, config=config.byol, seed=seed)
    if kind == "rnd":
        return RandomDistillation(spec, config=config.rnd, seed=seed)
    if kind == "rnd-on-ap":
        ap = _make("ap", spec, actions, config, seed)
        return RandomDistillation(on=ap, config=config.rnd_on_embedding, seed=seed)
    if kind == "random":
        return Random(spec, embedding=embedding)
    if kind == "frame":
        return Frame(spec, config.frame)
    raise ValueError(
        f"representation kind is {kind!r}; expected one of {', '.join(KINDS)}, or two joined by '+'"
    )
