"""One bonus per task: every row goes to its own, in order, and state and atoms come back apart."""

import numpy as np
import pytest

from softcount import store
from softcount.bonuses import NormaliserConfig
from softcount.bonuses.make import BonusConfig, Place, make_bonus
from softcount.bonuses.per_task import PerTask
from softcount.bonuses.place_count import PlaceCount
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.memory import RecodeConfig
from softcount.types import Features, take_rows

CONFIG = BonusConfig(
    recode=RecodeBonusConfig(
        memory=RecodeConfig(size=30, warmup_atoms=3, neighbours=3),
        normaliser=NormaliserConfig(kind="none"),
        reembed_every=5,
    )
)
NUM, DIM = 6, 2
IDS, NO = np.arange(NUM), np.zeros(NUM, bool)
TASKS = np.array([0, 1, 1, 0, 1, 0])


def both():
    return make_bonus("recode", CONFIG, Place(dim=DIM, num_envs=NUM, seed=5), tasks=("a", "b"))


def alone(task):
    return make_bonus("recode", CONFIG, Place(dim=DIM, num_envs=NUM // 2, seed=5 + task))


def stream(num, seed=0):
    rng = np.random.default_rng(seed)
    return [Features(embedding=rng.normal(size=(NUM, DIM)).astype(np.float32)) for _ in range(num)]


def test_every_row_is_paid_by_its_own_tasks_bonus_alone():
    bonus, singles = both(), [alone(0), alone(1)]
    for features in stream(40):
        paid = bonus.observe(features, IDS, NO, TASKS)
        scores = bonus.score(features, IDS, TASKS)
        for task, single in enumerate(singles):
            rows = np.flatnonzero(task == TASKS)
            own = take_rows(features, rows)
            np.testing.assert_array_equal(paid[rows], single.observe(own, IDS[rows], NO[rows]))
            np.testing.assert_array_equal(scores[rows], single.score(own))
    assert paid.any()
    assert bonus.metrics()["atoms/b"] == singles[1].metrics()["atoms"]
    assert bonus.describe()["occupied/a"] == singles[0].describe()["occupied"]
    assert bonus.metrics()["reward"] == pytest.approx(np.mean([s.metrics()["reward"] for s in singles]))


def test_atoms_of_all_tasks_follow_in_one_order():
    bonus = both()
    for features in stream(20):
        bonus.observe(features, IDS, NO, TASKS)
        bonus.keep({"xy": features.embedding})
    num = bonus.num_founded
    sizes = [len(memory) for memory in bonus.memories().values()]
    assert num == sum(sizes)
    assert min(sizes) > 3
    cut = sizes[0] - 2  # a border within the first task's atoms, so that a part spans both
    parts = [bonus.founding_observations(0, cut), bonus.founding_observations(cut, num)]
    kept = np.concatenate([part["xy"] for part in parts])
    bonus.move_atoms(Features(embedding=-3 * kept))
    moved = np.concatenate([memory.atoms for memory in bonus.memories().values()])
    np.testing.assert_array_equal(moved, -3 * kept)
    own = set(map(bytes, np.concatenate([f.embedding[TASKS == 0] for f in stream(20)])))
    assert set(map(bytes, kept[: sizes[0]])) <= own


def test_a_state_written_to_disk_continues_bit_for_bit(tmp_path):
    bonus = both()
    for features in stream(15):
        bonus.observe(features, IDS, NO, TASKS)
        bonus.keep(features.embedding)
    store.save(tmp_path / "bonus", bonus.state_dict(), kind="bonus")
    other = both()
    other.load_state_dict(store.load(tmp_path / "bonus", kind="bonus"))
    for features in stream(10, seed=1):
        np.testing.assert_array_equal(
            bonus.observe(features, IDS, NO, TASKS), other.observe(features, IDS, NO, TASKS)
        )
    assert bonus.metrics() == other.metrics()
    with pytest.raises(ValueError, match="the state is of 2 tasks; expected 1"):
        PerTask([PlaceCount()], ["a"]).load_state_dict(bonus.state_dict())


def test_the_task_of_every_row_must_be_known():
    with pytest.raises(ValueError, match="task_ids is None"):
        both().observe(stream(1)[0], IDS, NO)
    with pytest.raises(ValueError, match="expected 6 numbers from 0 to 1"):
        both().observe(stream(1)[0], IDS, NO, TASKS + 1)
    with pytest.raises(ValueError, match="1 bonuses were given for 2 tasks"):
        PerTask([PlaceCount()], ["a", "b"])
