"""Maps: where several places share a cell, and worlds without a map."""

from types import SimpleNamespace

import numpy as np

from softcount.envs.coverage import Coverage
from softcount.report.world import describe_world, first_seen_map


class Halves:
    """Six places on a map of one line: two to a cell."""

    map_shape = (1, 3)
    num_places = None

    def cell_of(self, place):
        return 0, place // 2


def visited(places, num_places=None):
    coverage = Coverage(num_places)
    coverage.update_places(np.array(places))
    return coverage


def test_the_first_of_the_places_that_share_a_cell_dates_it():
    coverage = visited([3, 0, 2, 2, 1])
    np.testing.assert_array_equal(first_seen_map(coverage, Halves()), [[2, 1, np.nan]])
    world = describe_world(coverage, Halves())
    assert world["cells"] == [[0, 0], [0, 1]]
    assert (world["first_seen"], world["visits"]) == ([2, 1], [2, 3])
    assert (world["visited"], world["steps"], world["floor"], world["goal"]) == (4, 5, None, None)


def test_worlds_without_map_or_places_say_so():
    nowhere = SimpleNamespace(map_shape=None, num_places=None)
    world = describe_world(visited([5, 7]), nowhere)
    assert (world["visited"], "no map" in world["missing"]) == (2, True)
    assert "nothing to map" in describe_world(None, nowhere)["missing"]
    assert "cannot be built" in describe_world(visited([5]), None)["missing"]
