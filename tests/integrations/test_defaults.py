"""Defaults of drop-in use: which encoder is chosen, and where the constants of small worlds come from."""

from __future__ import annotations

import pytest

from softcount.integrations import SMALL_WORLD
from softcount.integrations.defaults import SETTLING_GRID, choose_representation
from softcount.presets import LAPTOP
from softcount.representations.rnd import NGU_RND, RndConfig
from softcount.types import ArraySpec


@pytest.mark.parametrize(
    ("shape", "dtype", "torso", "dim"),
    [
        ((15, 15, 3), "uint8", SETTLING_GRID, 16),
        ((84, 84, 4), "uint8", "dqn", 32),
        ((5,), "float32", "mlp", 16),
    ],
)
def test_the_encoder_follows_from_the_shape(shape, dtype, torso, dim):
    chosen = choose_representation(ArraySpec(shape, dtype), "ap").embedding
    assert (chosen.torso, chosen.dim, chosen.layer_norm) == (torso, dim, True)


def test_a_named_encoder_is_taken_as_it_is():
    assert choose_representation(ArraySpec((15, 15, 3), "uint8"), "ap", "grid").embedding.torso == "grid"


def test_frames_are_distilled_as_in_the_paper_of_the_bonus():
    frame = ArraySpec((84, 84, 4), "uint8")
    assert choose_representation(frame, "rnd").rnd == RndConfig()
    assert choose_representation(frame, "ap+rnd").rnd == NGU_RND


def test_small_worlds_have_the_laptop_presets_memory_but_for_its_size():
    for name in ("neighbours", "count_discount", "kernel_epsilon", "reward_constant"):
        assert getattr(SMALL_WORLD.memory, name) == getattr(LAPTOP.recode.memory, name)
    assert SMALL_WORLD.memory.size == SMALL_WORLD.memory.warmup_atoms == 2 * LAPTOP.recode.memory.size
    assert SMALL_WORLD.normaliser == LAPTOP.recode.normaliser
