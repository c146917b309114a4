"""From a configuration to roles: every part gets the settings that were written for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from launch.test_local import TINY

from softcount.agents.meme.bandit import BanditConfig
from softcount.launch.build import build, build_evaluator, seeds_of

CONFIG = replace(
    TINY,
    epsilon_base=0.5,
    epsilon_power=3.0,
    bandit=BanditConfig(discount=0.9, epsilon=0.25, bonus=2.0),
    batch_size=5,
    memory=replace(TINY.memory, embeddings_per_step=7, far_tolerance=0.3),
    terminal_observations="unpaid",
)


@pytest.fixture(scope="module")
def roles():
    return build(CONFIG)


def test_epsilon_falls_along_the_actors_as_configured(roles):
    expected = [0.5 ** (1 + 3 * actor / 3) for actor in range(4)]
    np.testing.assert_allclose(roles.actor.epsilon, expected)


def test_every_environment_has_a_bandit_of_its_own_with_the_configured_settings(roles):
    assert len(roles.actor.bandits) == 4
    assert all(bandit.config == CONFIG.bandit and bandit.num_arms == 6 for bandit in roles.actor.bandits)
    draws = [[bandit.rng.random() for _ in range(3)] for bandit in build(CONFIG).actor.bandits]
    assert len({tuple(draw) for draw in draws}) == 4


def test_the_memory_has_the_configured_constants_and_the_representations_size(roles):
    dim = CONFIG.representation.embedding.dim
    assert dim != CONFIG.memory.dim
    assert roles.memory.bonus.memory.config == replace(CONFIG.memory, dim=dim)
    assert roles.memory.terminal_observations == "unpaid"


def test_batches_have_the_configured_size_and_length():
    roles = build(CONFIG)
    nothing = np.zeros(4, np.float32)
    for _ in range(CONFIG.replay.trace_length + CONFIG.replay.period + 1):
        row, state = roles.actor.step(roles.inference(roles.actor.request()), nothing)
        roles.replay.add(row, state)
    sample = roles.replay.sample()
    assert sample.sequence.steps.reward.shape == (CONFIG.replay.trace_length + 1, 5)


def test_agent_and_trainer_have_their_own_settings(roles):
    assert roles.learner.agent.config == CONFIG.meme
    assert roles.learner.trainer.config == CONFIG.trainer
    assert roles.inference.config == CONFIG.meme


def test_one_seed_gives_all_parts_seeds_of_their_own():
    one, other = seeds_of(0), seeds_of(1)
    assert len(set(one)) == len(one)
    assert not set(one) & set(other)
    weights = [build(replace(CONFIG, seed=seed)).learner.parameters() for seed in (3, 3, 4)]
    for part in ("policy", "representation"):
        first, again, different = (getattr(x, part) for x in weights)
        assert all(np.array_equal(first[name], again[name]) for name in first)
        assert any(not np.array_equal(first[name], different[name]) for name in first)


def test_an_evaluator_plays_the_configured_number_of_episodes_in_worlds_of_its_own(roles):
    evaluator = build_evaluator(replace(CONFIG, evaluation_episodes=3), roles.inference)
    assert evaluator.env.num_envs == 3
    assert evaluator.env is not roles.actor.env
