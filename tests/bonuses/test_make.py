"""Bonuses by kind: each gets its own constants, and nothing of another's."""

import numpy as np
import pytest

from softcount.bonuses import (
    BYOL_EXPLORE,
    RND,
    RND_ON_AP,
    Episodic,
    EpisodicBonusConfig,
    Ngu,
    NguConfig,
    NormaliserConfig,
    PlaceCount,
    Recode,
    Surprise,
    SurpriseConfig,
)
from softcount.bonuses.following import Following
from softcount.bonuses.make import BonusConfig, Place, make_bonus
from softcount.bonuses.per_task import PerTask
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.memory import RecodeConfig
from softcount.memory.episodic import EpisodicConfig
from softcount.taxonomy import parse
from softcount.types import Features


def make(name, config=None, **place):
    recipe = parse(name)
    place = {"dim": 4, "num_envs": 2, "representation": recipe.representation, **place}
    return make_bonus(recipe.bonus, config, Place(**place))


def test_each_recipe_gets_its_bonus():
    assert isinstance(make("RECODE-AP"), Recode)
    assert isinstance(make("EMM-AP"), Episodic)
    assert isinstance(make("NGU-AP"), Ngu)
    assert isinstance(make("MEME-COUNT"), PlaceCount)
    assert make("MEME") is None
    for name, config in {"RND": RND, "RNDonAP": RND_ON_AP, "BYOL-Explore": BYOL_EXPLORE}.items():
        bonus = make(name)
        assert isinstance(bonus, Surprise)
        assert bonus.config == config


def test_the_size_of_the_embedding_reaches_every_memory():
    for name in ("RECODE-AP", "EMM-AP", "NGU-AP"):
        assert make(name, dim=7).memory.config.dim == 7
        with pytest.raises(ValueError, match="expected their size as dim"):
            make(name, dim=None)


@pytest.mark.parametrize(("said", "expected"), [(None, 10), (3, 3), (1, 1)])
def test_a_time_step_of_the_memory_is_one_embedding_of_every_environment(said, expected):
    memory = RecodeConfig(count_discount=0.9, embeddings_per_step=said)
    bonus = make("RECODE-AP", BonusConfig(recode=RecodeBonusConfig(memory=memory)), num_envs=10)
    assert bonus.config.memory.embedding_discount == pytest.approx(0.9 ** (1 / expected), rel=1e-14)


def test_every_constant_can_be_set():
    own = NormaliserConfig(kind="mean")
    episodic = EpisodicConfig(neighbours=3, capacity=77)
    config = BonusConfig(
        recode=RecodeBonusConfig(memory=RecodeConfig(size=33), normaliser=own),
        episodic=EpisodicBonusConfig(memory=episodic, normaliser=own),
        ngu=NguConfig(memory=episodic, largest_factor=2.5),
        surprise=SurpriseConfig(normaliser=own, paid_in="learning"),
        engine="numpy",
    )
    assert make("RECODE-AP", config).memory.config.size == 33
    assert make("RECODE-AP", config).memory.engine == "numpy"
    assert make("EMM-AP", config).memory.config.capacity == 77
    ngu = make("NGU-AP", config)
    assert (ngu.memory.config.capacity, ngu.config.largest_factor) == (77, 2.5)
    assert make("RND", config).paid_in == "learning"
    for name in ("RECODE-AP", "EMM-AP", "RND"):
        assert make(name, config).config.normaliser == own


def test_atoms_follow_only_where_that_is_asked_for():
    follows = make("RECODE-AP", BonusConfig(recode=RecodeBonusConfig(reembed_every=5)))
    assert isinstance(follows, Following)
    assert follows.wants_observations
    assert not make("RECODE-AP").wants_observations


def test_several_tasks_get_a_bonus_each_with_seeds_of_their_own():
    config = BonusConfig(recode=RecodeBonusConfig(memory=RecodeConfig(size=20, warmup_atoms=2)))
    both = make_bonus("recode", config, Place(dim=2, seed=3), tasks=("a", "b"))
    assert isinstance(both, PerTask)
    alone = [make_bonus("recode", config, Place(dim=2, seed=seed)).state_dict() for seed in (3, 4)]
    for bonus, state in zip(both.bonuses, alone, strict=True):
        np.testing.assert_equal(bonus.state_dict(), state)
    assert str(alone[0]) != str(alone[1])
    assert isinstance(make_bonus("recode", config, Place(dim=2), tasks=("a",)), Recode)
    assert make_bonus("none", tasks=("a", "b")) is None


@pytest.mark.parametrize(("said", "expected"), [(None, 4), (3, 3)])
def test_a_time_step_of_a_tasks_own_memory_is_one_embedding_of_its_environments(said, expected):
    config = BonusConfig(recode=RecodeBonusConfig(memory=RecodeConfig(embeddings_per_step=said)))
    both = make_bonus("recode", config, Place(dim=2, num_envs=8), tasks=("a", "b"))
    assert [memory.config.embeddings_per_step for memory in both.memories().values()] == [expected] * 2


def test_an_unknown_kind_is_named():
    with pytest.raises(ValueError, match="bonus kind is 'recod'; expected one of recode, episodic"):
        make_bonus("recod")


def test_a_bonus_reads_what_it_is_made_of():
    embedding, surprise, place = np.zeros((2, 4), np.float32), np.zeros(2, np.float32), np.zeros(2, int)
    reads = {
        "RECODE-AP": Features(embedding=embedding),
        "EMM-AP": Features(embedding=embedding),
        "NGU-AP": Features(embedding=embedding, surprise=surprise),
        "RND": Features(surprise=surprise),
        "COUNT": Features(place=place),
    }
    for name, features in reads.items():
        bonus = make(name)
        assert bonus.can_read(features)
        for part in ("embedding", "surprise", "place"):
            if getattr(features, part) is not None:
                assert not bonus.can_read(features._replace(**{part: None}))
