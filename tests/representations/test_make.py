"""Representations by name, and the paper's tables."""

from __future__ import annotations

import pytest
import torch

from softcount.presets import ATARI, DM_HARD_8
from softcount.representations import (
    KINDS,
    ActionPrediction,
    Both,
    Byol,
    Casm,
    CasmConfig,
    Frame,
    Random,
    RandomDistillation,
    make_representation,
)
from softcount.representations.make import GRID
from softcount.torsos import TORSOS
from softcount.types import ArraySpec, DiscreteActions

SPEC, ACTIONS = ArraySpec((4, 4, 3), "uint8"), DiscreteActions(4)


def build(kind, seed=0):
    return make_representation(kind, SPEC, ACTIONS, GRID, seed=seed)


def test_kinds():
    types = [ActionPrediction, Casm, Casm, Byol, RandomDistillation, RandomDistillation, Random, Frame]
    assert [type(build(kind)) for kind in KINDS] == types
    assert build("casm").config.mask
    assert not build("casnotm").config.mask
    assert isinstance(build("rnd-on-ap").on, ActionPrediction)
    both = build("casm+rnd")
    assert isinstance(both, Both)
    assert isinstance(both.embedding, Casm)
    assert isinstance(both.surprising, RandomDistillation)


@pytest.mark.parametrize("kind", [*(kind for kind in KINDS if kind != "frame"), "ap+rnd"])
def test_a_seed_gives_the_same_weights_and_leaves_the_global_generator_alone(kind):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, two, other = build(kind, 3), build(kind, 3), build(kind, 4)
    assert torch.equal(torch.get_rng_state(), before)
    pairs = list(zip(one.state_dict().values(), two.state_dict().values(), strict=True))
    assert all(torch.equal(a, b) for a, b in pairs)
    weights = zip(one.parameters(), other.parameters(), strict=True)
    assert any(not torch.equal(a, b) for a, b in weights)


def test_unknown_kinds_are_named():
    with pytest.raises(
        ValueError, match="'icm'; expected one of ap, casm, casnotm, byol, rnd, rnd-on-ap, random, frame"
    ):
        build("icm")


def test_the_papers_tables():
    """Transcribed from the three tables of the paper's appendix "Hyper-parameters"."""
    assert (ATARI.trainer.optimiser.learning_rate, ATARI.trainer.optimiser.weight_decay) == (6e-4, 0.05)
    assert (DM_HARD_8.trainer.optimiser.learning_rate, DM_HARD_8.trainer.optimiser.weight_decay) == (
        3e-4,
        0.1,
    )
    atari, hard = (TORSOS[config.representation.embedding.torso] for config in (ATARI, DM_HARD_8))
    assert (atari.initial_stride, atari.blocks) == (4, (2, 3, 4, 4))
    assert (hard.initial_stride, hard.blocks) == (2, (2, 4, 12, 6))
    assert atari.channels == hard.channels == (64, 128, 128, 64)
    assert atari.strides == hard.strides == (1, 2, 2, 2)
    for config in (ATARI.representation.casm, DM_HARD_8.representation.casm, CasmConfig()):
        assert config.mask
        assert config.mask_rate == 0.8
        assert config.num_masks == 4
        assert config.action_dim == 32
        assert config.transformer.num_layers == 2
        assert config.transformer.width == 128
        assert config.transformer.num_heads == 4
        assert config.transformer.hidden_sizes == (512,)
        assert config.hidden_sizes == (128,)
    assert ATARI.representation.embedding.dim == DM_HARD_8.representation.embedding.dim == 32
