"""The memory server: what happens to last observations, and what an evaluator may not change."""

import numpy as np
import pytest

from softcount.bonuses.episodic import Episodic, EpisodicBonusConfig
from softcount.bonuses.following import Following
from softcount.bonuses.ngu import Ngu
from softcount.bonuses.normalise import NormaliserConfig
from softcount.bonuses.per_task import PerTask
from softcount.bonuses.place_count import PlaceCount
from softcount.bonuses.recode import Recode, RecodeBonusConfig
from softcount.bonuses.surprise import Surprise
from softcount.memory import RecodeConfig
from softcount.roles.memory_server import MemoryServer
from softcount.types import Features, take_rows

IDS = np.arange(3)
NO = np.zeros(3, bool)
LAST = np.array([False, True, False])


def recode(warmup_atoms=1):
    config = RecodeConfig(size=50, dim=2, warmup_atoms=warmup_atoms)
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
    server(features(0), IDS, NO, NO)
    rewards = server(features(1), IDS, NO, LAST)
    assert (rewards[1] > 0) == is_paid
    assert (rewards[[0, 2]] > 0).all()
    assert server.bonus.memory.num_observed == num_observed


@pytest.mark.parametrize(
    "bonus", [Surprise(), Ngu(num_envs=3), recode(), Following(recode()), Episodic(num_envs=3), PlaceCount()]
)
def test_features_that_tell_nothing_yet_are_neither_paid_nor_remembered(bonus):
    server = MemoryServer(bonus)
    before = dict(leaves(server.state_dict()))
    assert server(Features(), IDS, NO, NO, None, np.zeros((3, 5))).tolist() == [0, 0, 0]
    assert server.score(Features(), IDS, NO, NO).tolist() == [0, 0, 0]
    server.begin_evaluation()
    assert server.evaluate(Features(), IDS, NO).tolist() == [0, 0, 0]
    after = dict(leaves(server.state_dict()))
    assert before.keys() == after.keys()
    for path in before:
        np.testing.assert_array_equal(before[path], after[path], err_msg=path)


def test_ngu_waits_until_both_of_its_features_are_there():
    server = MemoryServer(Ngu(num_envs=3))
    before = dict(leaves(server.state_dict()))
    embedding = np.ones((3, server.bonus.config.memory.dim), np.float32)
    for features in (Features(embedding=embedding), Features(surprise=np.ones(3, np.float32))):
        assert server(features, IDS, NO, NO).tolist() == [0, 0, 0]
    for path, value in leaves(server.state_dict()):
        np.testing.assert_array_equal(value, before[path], err_msg=path)


def test_without_a_bonus_everything_is_worth_nothing():
    server = MemoryServer(None)
    assert server(features(), IDS, NO, NO).tolist() == [0, 0, 0]
    assert server.score(features(), IDS, NO, NO).tolist() == [0, 0, 0]
    server.begin_evaluation()
    assert server.evaluate(features(), IDS, NO).tolist() == [0, 0, 0]
    assert server.num_founded() == 0
    assert server.metrics() == server.describe() == server.state_dict() == {}


def test_true_counts_read_places():
    server = MemoryServer(PlaceCount())
    place = np.array([4, 4, -1])
    np.testing.assert_allclose(server(Features(place=place), IDS, NO, NO), [1, 2**-0.5, 0], rtol=1e-6)
    server.begin_evaluation()
    for asked in (
        server.score(Features(place=place), IDS, NO, NO),
        server.evaluate(Features(place=place), IDS, NO),
    ):
        np.testing.assert_allclose(asked, [3**-0.5, 3**-0.5, 0], rtol=1e-6)
    assert server.bonus.counts.tolist() == [0, 0, 0, 0, 2]


@pytest.mark.parametrize(
    ("treatment", "counted", "paid"), [("paid", 2, 1.0), ("unpaid", 2, 0.0), ("skipped", 1, 0.0)]
)
def test_true_counts_treat_last_observations_alike(treatment, counted, paid):
    server = MemoryServer(PlaceCount(), treatment)
    rewards = server(Features(place=np.array([0, 1, 2])), IDS, NO, LAST)
    np.testing.assert_array_equal(rewards, [1.0, paid, 1.0])
    assert server.bonus.counts[:2].sum() == counted


@pytest.mark.parametrize(("treatment", "is_paid"), [("paid", True), ("unpaid", False), ("skipped", False)])
def test_a_score_is_what_would_be_paid_and_withheld_rows_stay_unpaid(treatment, is_paid):
    server = MemoryServer(recode(), treatment)
    server(features(0), IDS, NO, NO)
    before = dict(leaves(server.state_dict()))
    is_first = np.array([True, False, False])
    scores = server.score(features(1), IDS, is_first, LAST)
    expected = server.bonus.score(features(1))
    assert (expected > 0).all()
    np.testing.assert_array_equal(scores, [0.0, expected[1] * is_paid, expected[2]])
    assert scores.dtype == np.float32
    for path, value in leaves(server.state_dict()):
        np.testing.assert_array_equal(value, before[path], err_msg=path)


def test_an_evaluation_of_a_shared_memory_is_told_what_would_be_paid_and_changes_nothing():
    server = MemoryServer(recode())
    server(features(0), IDS, NO, NO)
    before = dict(leaves(server.state_dict()))
    is_first = np.array([True, False, False])
    server.begin_evaluation()
    scores = server.evaluate(features(1), IDS, is_first)
    expected = server.bonus.score(features(1))
    np.testing.assert_array_equal(scores, [0.0, *expected[1:]])
    after = dict(leaves(server.state_dict()))
    assert before.keys() == after.keys()
    for path in before:
        np.testing.assert_array_equal(before[path], after[path], err_msg=path)


def test_an_evaluation_of_an_episodic_memory_plays_on_a_copy():
    config = EpisodicBonusConfig()
    dim = config.memory.dim
    rows = [np.random.default_rng(i).normal(size=(3, dim)).astype(np.float32) for i in range(30)]
    server, twin = MemoryServer(Episodic(config, num_envs=3)), MemoryServer(Episodic(config, num_envs=3))
    for e in rows[:15]:
        for s in (server, twin):
            s(Features(embedding=e), IDS, NO, NO)
    expected = [twin(Features(embedding=e), IDS, NO, NO) for e in rows[15:]]
    for _ in range(2):  # each begins where the actors are
        server.begin_evaluation()
        paid = [server.evaluate(Features(embedding=e), IDS, NO) for e in rows[15:]]
        np.testing.assert_array_equal(paid, expected)
    again = [server(Features(embedding=e), IDS, NO, NO) for e in rows[15:]]
    np.testing.assert_array_equal(again, expected)
    assert np.any(expected)


def per_task(treatment="paid"):
    return MemoryServer(PerTask([recode(), recode()], ["one", "two"]), treatment)


@pytest.mark.parametrize("treatment", ["paid", "unpaid", "skipped"])
def test_rows_reach_the_bonus_of_their_task(treatment):
    server, tasks = per_task(treatment), np.array([1, 0, 1])
    alone = [MemoryServer(recode(), treatment) for _ in range(2)]
    for step in range(5):
        is_terminal = LAST if step == 3 else NO
        paid = server(features(step), IDS, NO, is_terminal, tasks)
        scores = server.score(features(step + 1), IDS, NO, LAST, tasks)
        server.begin_evaluation()
        played = server.evaluate(features(step + 1), IDS, NO, tasks)
        for task in (0, 1):
            rows = np.flatnonzero(tasks == task)
            own, after = (take_rows(features(seed), rows) for seed in (step, step + 1))
            np.testing.assert_array_equal(paid[rows], alone[task](own, rows, NO[rows], is_terminal[rows]))
            np.testing.assert_array_equal(scores[rows], alone[task].score(after, rows, NO[rows], LAST[rows]))
            alone[task].begin_evaluation()
            np.testing.assert_array_equal(played[rows], alone[task].evaluate(after, rows, NO[rows]))
    assert scores.any()
    assert played.any()


@pytest.mark.parametrize("treatment", ["paid", "unpaid", "skipped"])
def test_founding_observations_are_those_of_the_atoms_whatever_happens_to_last_ones(treatment):
    server = MemoryServer(Following(recode(warmup_atoms=50)), treatment)  # all become atoms
    for step in range(12):
        embedding = features(step)
        is_terminal = (np.arange(3) + step) % 4 == 3
        server(embedding, IDS, NO, is_terminal, None, {"sensor": embedding.embedding})
    num = server.num_founded()
    atoms = server.bonus.memories()[""].atoms
    assert num == len(atoms) > 20
    np.testing.assert_array_equal(server.founding_observations(0, num)["sensor"], atoms)
    np.testing.assert_array_equal(server.founding_observations(3, 9)["sensor"], atoms[3:9])
    server.move_atoms(Features(embedding=2 * atoms))
    np.testing.assert_array_equal(server.bonus.memories()[""].atoms, 2 * atoms)
