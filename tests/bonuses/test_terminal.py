"""The last observation of an episode that ends for good: paid, unpaid or not shown at all."""

import numpy as np
import pytest

from softcount.bonuses import PlaceCount
from softcount.bonuses.terminal import observe, shown
from softcount.types import Features

IS_TERMINAL = np.array([False, True, True])


@pytest.mark.parametrize(
    ("rule", "paid", "counts"),
    [("paid", [1, 1, 1], [1, 1, 1]), ("unpaid", [1, 0, 0], [1, 1, 1]), ("skipped", [1, 0, 0], [1, 0, 0])],
)
def test_each_rule_pays_and_counts_as_it_says(rule, paid, counts):
    bonus, never = PlaceCount(), np.zeros(3, bool)
    places = Features(place=np.array([0, 1, 2]))
    rewards = observe(bonus, places, np.arange(3), never, IS_TERMINAL, rule)
    assert rewards.dtype == np.float32
    np.testing.assert_allclose(rewards, paid)
    seen = np.zeros(3, int)
    seen[: len(bonus.counts)] = bonus.counts
    assert seen.tolist() == counts


def test_rows_are_shown_with_their_own_ids_tasks_and_flags():
    class Listening(PlaceCount):
        def observe(self, features, env_ids, is_first, task_ids=None):
            self.heard = (features.place.tolist(), env_ids.tolist(), is_first.tolist(), task_ids.tolist())
            return np.full(len(env_ids), 7.0)

    bonus = Listening()
    arguments = (Features(place=np.array([5, 6, 7])), np.array([2, 4, 6]), np.array([True, False, False]))
    rewards = observe(bonus, *arguments, np.array([False, True, False]), "skipped", np.array([1, 0, 3]))
    assert bonus.heard == ([5, 7], [2, 6], [True, False], [1, 3])
    assert rewards.tolist() == [7, 0, 7]


def test_where_all_end_and_are_skipped_the_bonus_is_not_asked():
    assert shown(np.ones(2, bool), "skipped").tolist() == []
    rewards = observe(PlaceCount(), Features(), np.arange(2), np.zeros(2, bool), np.ones(2, bool), "skipped")
    assert rewards.tolist() == [0, 0]
