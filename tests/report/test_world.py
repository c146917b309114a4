"""Maps: where several places share a cell, and worlds without a map."""

import numpy as np

from softcount.envs.worlds import Chart, World
from softcount.measure.coverage import Coverage
from softcount.report.world import cells_of, describe_worlds, first_seen_map

HALVES = Chart((1, 3), np.arange(6), np.array([[0, place // 2] for place in range(6)]))  # two to a cell


def world_of(numbers, chart=HALVES, **changes):
    return World("line", None, np.array(numbers), np.array(numbers), chart, None)._replace(**changes)


def visited(places, num_places=None):
    coverage = Coverage(num_places)
    coverage.update_places(np.array(places))
    return coverage


def test_the_first_of_the_places_that_share_a_cell_dates_it():
    coverage = visited([3, 0, 2, 2, 1])
    np.testing.assert_array_equal(first_seen_map(coverage, HALVES), [[2, 1, np.nan]])
    (world,) = describe_worlds(coverage, [world_of([0, 1, 2, 3])])
    assert world["cells"] == [[0, 0], [0, 1]]
    assert (world["first_seen"], world["visits"]) == ([2, 1], [2, 3])
    assert (world["visited"], world["steps"], world["floor"], world["goal"]) == (4, 5, None, None)
    assert world["task"] is None  # the only one


def test_every_task_has_a_map_of_its_own_places_and_knows_its_goal():
    coverage = visited([3, 8, 2, 8, 7], num_places=12)
    first = world_of([2, 3], task="one", num_places=6)
    second = world_of([7, 8], task="two", num_places=6, places=np.array([1, 2]), goal=(0, 2))
    one, two = describe_worlds(coverage, [first, second])
    assert (one["task"], two["task"]) == ("one", "two")
    assert (one["cells"], one["visits"], one["first_seen"]) == ([[0, 1]], [2], [1])
    assert (two["cells"], two["visits"], two["first_seen"]) == ([[0, 0], [0, 1]], [1, 2], [5, 2])
    assert (one["visited"], one["places"], len(one["floor"]), one["goal"]) == (2, 6, 6, None)
    assert (two["visited"], two["goal"]) == (2, [0, 2])
    assert cells_of(second, [8, -1, 7, 3]) == [[0, 1], None, [0, 0], None]


def test_worlds_without_map_or_places_say_so():
    nowhere = world_of([5, 7], chart=None)
    (world,) = describe_worlds(visited([5, 7]), [nowhere])
    assert (world["visited"], "no map" in world["missing"]) == (2, True)
    assert "nothing to map" in describe_worlds(None, [nowhere])[0]["missing"]
    assert "cannot be built" in describe_worlds(visited([5]), None)[0]["missing"]
    assert cells_of(nowhere, [5]) == [None]
