"""What every bonus must keep, run over all of them: one battery for one protocol."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from softcount import store
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
    RecodeBonusConfig,
    Surprise,
)
from softcount.bonuses.following import Following
from softcount.bonuses.per_task import PerTask
from softcount.memory import RecodeConfig
from softcount.memory.episodic import EpisodicConfig
from softcount.types import Bonus, Features

NUM_ENVS, DIM, STEPS = 4, 3, 60


def recode(kind: str) -> Callable[[], Bonus]:
    memory = RecodeConfig(size=60, dim=DIM, neighbours=4, warmup_atoms=20)
    config = RecodeBonusConfig(memory=memory, normaliser=NormaliserConfig(kind=kind, num_gathered=10))
    return lambda: Recode(config, seed=5)


def quick(config):
    return replace(config, normaliser=replace(config.normaliser, num_gathered=10))


class OneTask(PerTask):
    """Several tasks of which only one is ever met, so that it stands where one bonus stands."""

    def __init__(self):
        super().__init__([recode("none")(), recode("none")()], ["met", "never"])

    def observe(self, features, env_ids, is_first, task_ids=None):
        return super().observe(features, env_ids, is_first, np.zeros(len(env_ids), int))

    def score(self, features, env_ids=None, task_ids=None):
        return super().score(features, env_ids, np.zeros(len(features.embedding), int))

    def twin(self):
        other = OneTask()
        other.load_state_dict(self.state_dict())
        return other


EPISODIC = EpisodicConfig(dim=DIM, neighbours=3)
BONUSES: dict[str, Callable[[], Bonus]] = {
    "recode": recode("reward_std"),
    "recode, return_std": recode("return_std"),
    "recode, mean": recode("mean"),
    "recode, none": recode("none"),
    "episodic": lambda: Episodic(EpisodicBonusConfig(memory=EPISODIC), num_envs=NUM_ENVS),
    "ngu": lambda: Ngu(NguConfig(memory=EPISODIC), num_envs=NUM_ENVS),
    "rnd": lambda: Surprise(quick(RND)),
    "rnd on ap": lambda: Surprise(quick(RND_ON_AP)),
    "byol-explore": lambda: Surprise(BYOL_EXPLORE),
    "place count": PlaceCount,
    "recode that follows": lambda: Following(recode("none")()),
    "one per task": lambda: OneTask(),
}
CUT_ANYWHERE = [name for name in BONUSES if name != "byol-explore"]  # which works on whole batches


@pytest.fixture(params=BONUSES)
def make(request) -> Callable[[], Bonus]:
    return BONUSES[request.param]


def stream(seed: int = 0):
    """Sixty steps of four environments that walk among nine places; episodes end now and then."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(9, DIM)) * 4
    places = rng.integers(0, 9, (STEPS, NUM_ENVS))
    embeddings = (centres[places] + 0.1 * rng.normal(size=(STEPS, NUM_ENVS, DIM))).astype(np.float32)
    surprise = rng.gamma(1.0, 1.0, (STEPS, NUM_ENVS)).astype(np.float32)
    is_first = rng.random((STEPS, NUM_ENVS)) < 0.08
    is_first[0] = True
    return places, embeddings, surprise, is_first


def observe(bonus, places, embedding, surprise, env_ids, is_first):
    paid = bonus.observe(Features(embedding, surprise, places), env_ids, is_first)
    if bonus.wants_observations:
        bonus.keep(np.asarray(embedding))
    return paid


def score(bonus, places, embedding, surprise, env_ids):
    return bonus.score(Features(embedding, surprise, places), env_ids)


def run(bonus, start=0, end=STEPS, data=None):
    places, embeddings, surprise, is_first = data or stream()
    ids = np.arange(NUM_ENVS)
    rows = [
        observe(bonus, places[t], embeddings[t], surprise[t], ids, is_first[t]) for t in range(start, end)
    ]
    return np.stack(rows)


def test_it_is_a_bonus_that_says_where_it_is_made(make):
    bonus = make()
    assert isinstance(bonus, Bonus)
    assert bonus.paid_in in ("acting", "learning")


def test_rewards_are_finite_float32_never_negative_and_not_all_zero(make):
    rewards = run(make())
    assert rewards.dtype == np.float32
    assert rewards.shape == (STEPS, NUM_ENVS)
    assert np.isfinite(rewards).all()
    assert (rewards >= 0).all()
    assert rewards[-10:].max() > 0


def test_first_rows_are_paid_nothing(make):
    is_first = stream()[3]
    assert is_first[30:].any()
    assert (run(make())[is_first] == 0).all()


def test_equal_seeds_give_equal_rewards(make):
    np.testing.assert_array_equal(run(make()), run(make()))


def test_a_state_written_to_disk_continues_bit_for_bit(make, tmp_path):
    bonus = make()
    run(bonus, 0, 35)
    store.save(tmp_path / "bonus", bonus.state_dict(), kind="bonus")
    other = make()
    other.load_state_dict(store.load(tmp_path / "bonus", kind="bonus"))
    np.testing.assert_array_equal(run(bonus, 35), run(other, 35))
    np.testing.assert_equal(bonus.state_dict(), other.state_dict())


def test_a_state_taken_is_not_changed_by_what_follows(make):
    bonus = make()
    run(bonus, 0, 20)
    state = bonus.state_dict()
    rest = run(bonus, 20)
    other = make()
    other.load_state_dict(state)
    run(other, 20)
    again = make()
    again.load_state_dict(state)
    np.testing.assert_array_equal(rest, run(again, 20))


def test_scoring_changes_nothing(make):
    bonus, twin = make(), make()
    places, embeddings, surprise, _ = stream(seed=9)
    ids = np.arange(NUM_ENVS)
    run(bonus, 0, 30)
    run(twin, 0, 30)
    first = score(bonus, places[0], embeddings[0], surprise[0], ids)
    second = score(bonus, places[0], embeddings[0], surprise[0], ids)
    np.testing.assert_array_equal(first, second)
    assert first.shape == (NUM_ENVS,)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(run(bonus, 30), run(twin, 30))


@pytest.mark.parametrize("name", CUT_ANYWHERE)
def test_a_batch_is_its_rows_one_by_one(name):
    data = stream()
    places, embeddings, surprise, is_first = data
    whole, bonus = run(BONUSES[name]()), BONUSES[name]()
    for t in range(STEPS):
        for i in range(NUM_ENVS):
            one = slice(i, i + 1)
            row = (places[t, one], embeddings[t, one], surprise[t, one], np.array([i]), is_first[t, one])
            assert observe(bonus, *row)[0] == whole[t, i]


def test_inputs_are_not_changed(make):
    data = stream()
    before = [array.copy() for array in data]
    run(make(), data=data)
    for array, copy in zip(data, before, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_metrics_are_plain_numbers(make):
    bonus = make()
    run(bonus)
    metrics = bonus.metrics()
    assert "reward" in metrics
    assert all(type(value) is float and np.isfinite(value) for value in metrics.values())


@pytest.mark.parametrize(
    ("env_ids", "is_first", "says"),
    [
        (np.arange(3), np.zeros(4, bool), "env_ids are int64 of shape"),
        (np.arange(4) - 1, np.zeros(4, bool), "whole numbers of at least 0"),
        (np.arange(4), np.zeros(4), "is_first is float64"),
        (np.arange(4), np.zeros((4, 1), bool), "expected 4 booleans"),
    ],
)
def test_rows_that_do_not_fit_are_refused_and_change_nothing(make, env_ids, is_first, says):
    places, embeddings, surprise, _ = stream()
    bonus, twin = make(), make()
    with pytest.raises(ValueError, match=says):
        observe(bonus, places[0], embeddings[0], surprise[0], env_ids, is_first)
    np.testing.assert_array_equal(run(bonus), run(twin))


@pytest.mark.parametrize("name", ["episodic", "ngu"])
def test_an_episode_end_empties_the_memory_of_that_environment_alone(name):
    embedding = np.zeros((NUM_ENVS, DIM), np.float32)
    surprise, ids = np.ones(NUM_ENVS, np.float32), np.arange(NUM_ENVS)
    bonus = BONUSES[name]()
    for t in range(20):
        wander = embedding + np.float32(t % 7)
        bonus.observe(Features(wander, surprise), ids, np.full(NUM_ENVS, t == 0))
    is_first = np.array([False, True, False, False])
    bonus.observe(Features(embedding + 100, surprise), ids, is_first)
    known = bonus.score(Features(embedding + 3, surprise), ids)
    assert known[0] == known[2] == known[3] > 0
    assert known[1] == 0  # fewer than k neighbours in the new episode


def test_a_loaded_bonus_reports_what_the_saved_one_did(make, tmp_path):
    bonus, other = make(), make()
    run(bonus, 0, 35)
    store.save(tmp_path / "bonus", bonus.state_dict(), kind="bonus")
    other.load_state_dict(store.load(tmp_path / "bonus", kind="bonus"))
    assert bonus.metrics()
    assert other.metrics() == bonus.metrics()


def test_a_twin_lives_its_own_life(make):
    bonus = make()
    run(bonus, 0, 30)
    before = bonus.state_dict()
    twin = bonus.twin()
    np.testing.assert_array_equal(run(twin, 30), run(make_at_30(make), 30))
    np.testing.assert_equal(bonus.state_dict(), before)


def make_at_30(make):
    bonus = make()
    run(bonus, 0, 30)
    return bonus


def test_it_says_what_it_remembers_in_plain_numbers(make):
    bonus = make()
    run(bonus, 0, 35)
    assert bonus.lasts in ("life", "episode")
    assert bonus.is_paying
    assert all(np.isfinite(x) for x in (*bonus.metrics().values(), *bonus.describe().values()))
