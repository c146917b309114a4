"""Torso, memory and agent follow from the spaces, and one line says which."""

from __future__ import annotations

import pytest

from softcount.fitting import Spaces, agent_for, describe
from softcount.presets import LAPTOP, suited
from softcount.types import ArraySpec, ContinuousActions, DiscreteActions, MultiDiscreteActions

VECTOR, GRID, FRAME = (
    ArraySpec((6,), "float32"),
    ArraySpec((7, 7, 3), "uint8"),
    ArraySpec((84, 84, 4), "uint8"),
)
MOVES, NUMBERS, SEVERAL = DiscreteActions(4), ContinuousActions((-1.0,), (1.0,)), MultiDiscreteActions((2, 3))


@pytest.mark.parametrize(
    ("seen", "words", "atoms"),
    [
        (VECTOR, "6 numbers and 4 actions: dense layers, 2,000 atoms", 2000),
        (ArraySpec((500,), "float32"), "500 numbers and 4 actions: dense layers, 4,000 atoms", 4000),
        (ArraySpec((9000,), "float32"), "20,000 atoms", 20_000),
        (GRID, "grids of 7×7 and 4 actions: a grid torso, 2,000 atoms", 2000),
        (FRAME, "frames of 84×84 and 4 actions: convolutions, 5,000 atoms", 5000),
        (
            {"a": FRAME, "b": VECTOR},
            "6 numbers, frames of 84×84 and 4 actions: convolutions and dense layers",
            5000,
        ),
    ],
)
def test_what_is_chosen_follows_what_is_seen(seen, words, atoms):
    spaces = Spaces(seen, MOVES)
    config = suited(LAPTOP, "MEME-RECODE-AP", spaces)
    assert words in describe(config, spaces)
    assert config.recode.memory.size == atoms


def test_every_agent_can_act_where_it_is_proposed_and_the_other_is_named_where_it_cannot():
    assert [agent_for(Spaces(VECTOR, actions)) for actions in (MOVES, NUMBERS, SEVERAL)] == [
        "MEME-RECODE-AP",
        "VMPO-RECODE-AP",
        "VMPO-RECODE-AP",
    ]
    for actions in (NUMBERS, SEVERAL):
        suited(LAPTOP, "VMPO-RND", Spaces(VECTOR, actions))
        with pytest.raises(ValueError, match="VMPO-RND can"):
            suited(LAPTOP, "MEME-RND", Spaces(VECTOR, actions))


@pytest.mark.parametrize(
    "agent", ["MEME-RECODE-AP", "MEME-RND", "VMPO-NGU-CASM", "VMPO-BYOL-Explore", "MEME"]
)
@pytest.mark.parametrize("env", ["gym/CartPole-v1", "gym/FrozenLake-v1", "gym/Blackjack-v1"])
def test_agents_are_built_and_step_in_worlds_that_no_preset_knows(agent, env):
    from dataclasses import replace

    from softcount.envs.make import specs_of
    from softcount.runs.run import make_loop

    spaces = Spaces(*specs_of(env, {}))
    config = suited(LAPTOP, agent, spaces)
    config = replace(config, env=env, env_options={}, num_envs=4, evaluation_episodes=1, overlap=False)
    loop = make_loop(config)
    for _ in range(3):
        loop.step()
    assert loop.num_steps > 0
