"""Rewards far below 1: values measured in their own size explore as with rewards of 1."""

from dataclasses import replace

import numpy as np
import pytest

from softcount.presets import LAPTOP, suited
from softcount.runs.run import make_loop

STEPS = 60_000


def places_found(scale, value_unit):
    """Places that true counts lead to when every reward, of the game and of the counts, is multiplied."""
    config = suited(LAPTOP, "MEME-COUNT")
    network = replace(config.meme.network, value_unit=value_unit)
    config = replace(config, overlap=False, meme=replace(config.meme, network=network))
    loop = make_loop(config)
    memory, env = loop.roles.memory, loop.roles.actor.env
    step, score = env.step, memory.score
    scaled = type("Scaled", (), {"__getattr__": lambda self, name: getattr(memory, name)})()
    type(scaled).__call__ = lambda self, *asked: memory(*asked) * np.float32(scale)
    scaled.score = lambda *asked: score(*asked) * np.float32(scale)
    env.step = lambda actions: (lambda t: t._replace(reward=t.reward * np.float32(scale)))(step(actions))
    loop.roles = replace(loop.roles, memory=scaled)
    while loop.num_steps < STEPS:
        loop.step()
    return loop.coverage.num_visited


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_rewards_of_a_ten_thousandth_show_as_many_places_as_rewards_of_one():
    usual = places_found(1.0, "one")
    small, swallowed = places_found(1e-4, "running"), places_found(1e-4, "one")
    print(f"places: {usual} usual, {small} in a running unit, {swallowed} without")
    assert small >= 0.9 * usual
    assert swallowed < 0.7 * usual
