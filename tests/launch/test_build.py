"""From a configuration to roles: every part gets the settings that were written for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from launch.test_local import TINY

from softcount.agents.meme.bandit import BanditConfig
from softcount.bonuses import (
    Episodic,
    EpisodicBonusConfig,
    Ngu,
    NguConfig,
    PlaceCount,
    Recode,
    Surprise,
    SurpriseConfig,
)
from softcount.bonuses.following import Following
from softcount.bonuses.per_task import PerTask
from softcount.config import with_fields
from softcount.envs.make import make
from softcount.launch import build as build_module
from softcount.launch.build import build, build_evaluator, seeds_of
from softcount.memory import native_engine as native
from softcount.memory.episodic import EpisodicConfig
from softcount.presets import suited
from softcount.runs.run import make_loop

CONFIG = replace(
    TINY,
    meme=replace(
        TINY.meme,
        epsilon_base=0.5,
        epsilon_power=3.0,
        bandit=BanditConfig(discount=0.9, epsilon=0.25, bonus=2.0),
        batch_size=5,
        importance_exponent=0.4,
    ),
    recode=replace(TINY.recode, memory=replace(TINY.recode.memory, embeddings_per_step=7, far_tolerance=0.3)),
    terminal_observations="unpaid",
)


@pytest.fixture(scope="module")
def roles():
    return build(CONFIG)


def test_epsilon_falls_along_the_actors_as_configured(roles):
    expected = [0.5 ** (1 + 3 * actor / 3) for actor in range(4)]
    np.testing.assert_allclose(roles.actor.behaviour.epsilon, expected)


def test_every_environment_has_a_bandit_of_its_own_with_the_configured_settings(roles):
    bandits = roles.actor.behaviour.bandits
    assert len(bandits) == 4
    assert all(bandit.config == CONFIG.meme.bandit and bandit.num_arms == 6 for bandit in bandits)
    draws = [[bandit.rng.random() for _ in range(3)] for bandit in build(CONFIG).actor.behaviour.bandits]
    assert len({tuple(draw) for draw in draws}) == 4


def test_the_memory_has_the_configured_constants_and_the_representations_size(roles):
    dim = CONFIG.representation.embedding.dim
    assert dim != CONFIG.recode.memory.dim
    (memory,) = roles.memory.bonus.memories().values()
    assert memory.config == replace(CONFIG.recode.memory, dim=dim)
    assert roles.memory.terminal_observations == "unpaid"


def test_batches_have_the_configured_size_and_length():
    roles = build(CONFIG)
    nothing = np.zeros(4, np.float32)
    for _ in range(CONFIG.meme.replay.trace_length + CONFIG.meme.replay.period + 1):
        row, state = roles.actor.step(roles.inference(roles.actor.request()), nothing)
        roles.replay.add(row, state)
    sample = roles.replay.sample()
    assert sample.sequence.steps.reward.shape == (CONFIG.meme.replay.trace_length + 1, 5)


def test_agent_and_trainer_have_their_own_settings(roles):
    assert roles.learner.agent.config == CONFIG.meme
    assert roles.learner.trainer.config == CONFIG.trainer
    assert roles.inference.network.meme == CONFIG.meme
    assert roles.replay.importance_exponent == CONFIG.meme.importance_exponent == 0.4


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
    behaviour = build(with_fields(CONFIG, {"meme.evaluation_epsilon": 0.07})).actor.behaviour.for_evaluation(
        3
    )
    assert behaviour.epsilon.tolist() == [0.07] * 3


KINDS = {
    "MEME-RECODE-AP": Following,
    "MEME-EMM-AP": Episodic,
    "MEME-NGU-AP": Ngu,
    "MEME-RND": Surprise,
    "MEME-RNDonAP": Surprise,
    "MEME-BYOL-Explore": Surprise,
    "MEME-COUNT": PlaceCount,
    "MEME": type(None),
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("rule", ["paid", "skipped"])
def test_every_bonus_has_exactly_one_owner_who_pays_when_it_says(name, rule):
    roles = build(replace(suited(TINY, name), terminal_observations=rule))
    owners = {"acting": roles.memory, "learning": roles.learner}
    owned = {when: role.bonus for when, role in owners.items() if role.bonus is not None}
    assert all(role.terminal_observations == rule for role in owners.values())
    assert len(owned) == (name != "MEME")
    for when, bonus in owned.items():
        assert bonus.paid_in == when == ("learning" if name == "MEME-BYOL-Explore" else "acting")
        assert type(bonus) is KINDS[name]


def test_a_bonus_that_is_told_to_be_paid_in_learning_belongs_to_the_learner():
    surprise = SurpriseConfig(paid_in="learning")
    roles = build(replace(suited(TINY, "MEME-RND"), surprise=surprise))
    assert roles.memory.bonus is None
    assert roles.learner.bonus.config == surprise


def test_atoms_follow_only_where_the_run_moves_them():
    assert type(build(with_fields(TINY, {"recode.reembed_every": 0})).memory.bonus) is Recode
    assert type(build(with_fields(TINY, {"recode.reembed_every": 5})).memory.bonus) is Following


def test_what_every_bonus_is_made_of_is_configured():
    near = EpisodicConfig(neighbours=3, capacity=77)
    config = replace(
        TINY,
        episodic=EpisodicBonusConfig(memory=near),
        ngu=NguConfig(memory=near, largest_factor=2.5),
        engine="numpy",
    )
    config = with_fields(config, {"recode.reembed_every": 0, "meme.relabel": False})
    dim = config.representation.embedding.dim
    for name in ("MEME-EMM-AP", "MEME-NGU-AP"):
        bonus = build(suited(config, name)).memory.bonus
        assert bonus.config.memory == replace(near, dim=dim)
    assert bonus.config.largest_factor == 2.5
    assert build(config).memory.bonus.memory.engine == "numpy"


def test_the_memory_has_the_configured_number_of_threads(monkeypatch):
    made = []

    class Recording(native.NativeEngine):
        def __init__(self, config, num_threads):
            made.append(num_threads)
            super().__init__(config, num_threads)

    monkeypatch.setattr(native, "NativeEngine", Recording)
    build(replace(TINY, engine="native", memory_threads=3))
    assert made == [3]


TWO_TASKS = {"env": "disco-maze:layout=1,disco-maze:layout=2", "env_options": {"size": 7}}


@pytest.mark.parametrize("per_task", [False, True])
def test_tasks_share_a_memory_unless_each_is_to_have_its_own(per_task):
    bonus = build(replace(TINY, **TWO_TASKS, memory_per_task=per_task)).memory.bonus
    assert isinstance(bonus, PerTask) == per_task
    expected = ["disco-maze:layout=1", "disco-maze:layout=2"] if per_task else [""]
    assert list(bonus.memories()) == expected
    assert not isinstance(build(replace(TINY, memory_per_task=True)).memory.bonus, PerTask)  # one task


class Unplaced:
    """A world that does not know its places."""

    def __init__(self, env):
        self.env, self.num_places = env, None

    def __getattr__(self, name):
        return getattr(self.env, name)

    def reset(self, seed=None):
        return self.env.reset(seed)._replace(place=None)

    def step(self, actions):
        return self.env.step(actions)._replace(place=None)


def test_true_counts_need_a_world_that_knows_its_places(monkeypatch):
    monkeypatch.setattr(build_module, "make", lambda *args, **options: Unplaced(make(*args, **options)))
    with pytest.raises(ValueError, match="knows its places; disco-maze does not"):
        build(replace(TINY, agent="MEME-COUNT"))
    loop = make_loop(replace(TINY, agent="MEME", overlap=False))
    for _ in range(3):
        loop.step()
    assert loop.coverage is None
