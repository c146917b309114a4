"""Defaults of drop-in use: what is chosen, and that the bonus knows a blocking maze's places by it."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from softcount.envs.disco_maze import DiscoMaze, DiscoMazeConfig
from softcount.integrations import SMALL_WORLD, IntrinsicReward
from softcount.integrations.defaults import SETTLING_GRID, choose_representation
from softcount.presets import LAPTOP
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
    chosen = choose_representation(ArraySpec(shape, dtype)).embedding
    assert (chosen.torso, chosen.dim, chosen.layer_norm) == (torso, dim, True)


def test_a_named_encoder_is_taken_as_it_is():
    assert choose_representation(ArraySpec((15, 15, 3), "uint8"), "grid").embedding.torso == "grid"


def test_small_worlds_have_the_laptop_presets_memory_but_for_its_size():
    for name in ("neighbours", "count_discount", "kernel_epsilon", "reward_constant"):
        assert getattr(SMALL_WORLD.memory, name) == getattr(LAPTOP.memory, name)
    assert SMALL_WORLD.memory.size == SMALL_WORLD.memory.warmup_atoms == 2 * LAPTOP.memory.size
    assert SMALL_WORLD.normaliser == LAPTOP.normaliser


@pytest.mark.slow
def test_a_random_walk_is_counted_and_places_never_seen_stand_out():
    config = DiscoMazeConfig(size=15, lethal=False)
    envs, rng = DiscoMaze(config, num_envs=32, seed=0), np.random.default_rng(0)
    space = spaces.Box(0, 255, (15, 15, 3), np.uint8)
    bonus = IntrinsicReward("RECODE-AP", space, spaces.Discrete(4), num_envs=32, config=SMALL_WORLD)
    visits, before = np.zeros(envs.num_places), envs.reset()
    for _ in range(30_000 // 32):
        actions = rng.integers(4, size=32)
        after = envs.step(actions)
        is_cut = after.is_last & ~after.is_terminal
        bonus.step(before.observation, actions, after.observation, after.is_terminal, is_cut)
        np.add.at(visits, after.place, 1)
        before = after
    everywhere = DiscoMaze(config, num_envs=envs.num_places, seed=1)
    everywhere.reset()
    everywhere.set_state({**everywhere.get_state(), "cell": everywhere.maze.cells})
    scores = bonus.score(everywhere._draw())
    known = visits > 0
    correlation = np.corrcoef(np.log(scores[known]), -np.log(visits[known]))[0, 1]
    assert correlation > 0.8
    assert np.median(scores[~known]) > 3 * np.median(scores[visits > np.median(visits[known])])
