"""The memory server: what happens to last observations, and what an evaluator may not change."""

import numpy as np
import pytest

from softcount.bonuses.episodic import Episodic, EpisodicBonusConfig
from softcount.bonuses.ngu import Ngu
from softcount.bonuses.normalise import NormaliserConfig
from softcount.bonuses.place_count import PlaceCount
from softcount.bonuses.recode import Recode, RecodeBonusConfig
from softcount.bonuses.surprise import Surprise
from softcount.memory import RecodeConfig
from softcount.roles.memory_server import MemoryServer
from softcount.types import Features

IDS = np.arange(3)
NO = np.zeros(3, bool)
LAST = np.array([False, True, False])


def recode():
    config = RecodeConfig(size=50, dim=2, warmup_atoms=1)
    return Recode(RecodeBonusConfig(memory=config, normaliser=NormaliserConfig(kind="none")), seed=0)


def leaves(state, path=""):
    if isinstance(state, dict):
        for key, value in state.items():
            yield from leaves(value, f"{path}/{key}")
    elif isinstance(state, list):
        for i, value in enumerate(state):
            yield from leaves(value, f"{path}/{i}")
    else:
        yield path, state


def features(seed=0):
    return Features(embedding=np.random.default_rng(seed).normal(size=(3, 2)).astype(np.float32))


@pytest.mark.parametrize(
    ("treatment", "is_paid", "num_observed"), [("paid", True, 6), ("unpaid", False, 6), ("skipped", False, 5)]
)
def test_last_observations_are_paid_absorbed_or_skipped(treatment, is_paid, num_observed):
    server = MemoryServer(recode(), treatment)
    server(features(0), IDS, NO, NO, None)
    rewards = server(features(1), IDS, NO, LAST, None)
    assert (rewards[1] > 0) == is_paid
    assert (rewards[[0, 2]] > 0).all()
    assert server.bonus.memory.num_observed == num_observed


@pytest.mark.parametrize("bonus", [Surprise(), Ngu(num_envs=3), recode()])
def test_features_that_tell_nothing_yet_are_neither_paid_nor_remembered(bonus):
    server = MemoryServer(bonus)
    before = dict(leaves(server.state_dict()))
    assert server(Features(), IDS, NO, NO, None).tolist() == [0, 0, 0]
    assert server.scorer()(Features(), IDS, NO, None).tolist() == [0, 0, 0]
    after = dict(leaves(server.state_dict()))
    assert before.keys() == after.keys()
    for path in before:
        np.testing.assert_array_equal(before[path], after[path], err_msg=path)


def test_without_a_bonus_everything_is_worth_nothing():
    assert MemoryServer(None)(Features(), IDS, NO, NO, None).tolist() == [0, 0, 0]


def test_true_counts_need_places():
    server = MemoryServer(PlaceCount())
    np.testing.assert_allclose(
        server(Features(), IDS, NO, NO, np.array([4, 4, -1])), [1, 2**-0.5, 0], rtol=1e-6
    )
    with pytest.raises(ValueError, match="knows its places"):
        server(Features(), IDS, NO, NO, None)


def test_a_scorer_of_a_shared_memory_pays_what_would_be_paid_and_changes_nothing():
    server = MemoryServer(recode())
    server(features(0), IDS, NO, NO, None)
    before = server.bonus.memory.state_dict()
    is_first = np.array([True, False, False])
    scores = server.scorer()(features(1), IDS, is_first, None)
    expected = server.bonus.score(features(1))
    np.testing.assert_array_equal(scores, [0.0, *expected[1:]])
    np.testing.assert_array_equal(before["atoms"], server.bonus.memory.state_dict()["atoms"])
    assert before["num_observed"] == server.bonus.memory.num_observed


def test_a_scorer_of_an_episodic_memory_plays_on_a_copy():
    config = EpisodicBonusConfig()
    bonus = Episodic(config, num_envs=3)
    dim = config.memory.dim
    rows = [np.random.default_rng(i).normal(size=(3, dim)).astype(np.float32) for i in range(30)]
    server, twin = MemoryServer(bonus), MemoryServer(Episodic(config, num_envs=3))
    for e in rows[:15]:
        for s in (server, twin):
            s(Features(embedding=e), IDS, NO, NO, None)
    score = server.scorer()
    paid = [score(Features(embedding=e), IDS, NO, None) for e in rows[15:]]
    expected = [twin(Features(embedding=e), IDS, NO, NO, None) for e in rows[15:]]
    np.testing.assert_array_equal(paid, expected)
    again = [server(Features(embedding=e), IDS, NO, NO, None) for e in rows[15:]]
    np.testing.assert_array_equal(again, expected)
    assert np.any(expected)
