"""The bonus of drop-in use beside true counts, after a random walk through a blocking maze."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.drop_in import truth as drop_in_truth
from softcount.envs.disco_maze import DiscoMaze, DiscoMazeConfig
from softcount.integrations import SMALL_WORLD


def test_what_can_be_known_is_the_free_ways_and_one_guess_among_the_walls():
    maze = DiscoMaze(DiscoMazeConfig(size=7, lethal=False))
    visits = np.zeros(maze.num_places, int)
    free = {}
    for place in range(maze.num_places):
        row, column = maze.cell_of(place)
        free[place] = sum(
            maze.distances[row + down, column + right] >= 0
            for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0))
        )
    one, two = (next(place for place, num in free.items() if num == wanted) for wanted in (1, 2))
    visits[one], visits[two] = 1, 3
    assert drop_in_truth.knowable(maze, visits) == pytest.approx((2 / 4 * 1 + 3 / 4 * 3) / 4)


def test_a_walk_is_judged_and_all_variants_are_drawn():
    measures = drop_in_truth.walk(SMALL_WORLD, steps=320, seed=0)
    assert 1 < measures["visited places"] < 97
    assert [job.settings["variant"] for job in drop_in_truth.jobs()] == list(drop_in_truth.VARIANTS)
    rows = [{**measures, "variant": name, "correlation": 0.1 * i} for i, name in enumerate("abc")]
    order, heart = drop_in_truth.plot(rows).axes
    assert [bar.get_width() for bar in order.patches] == pytest.approx([0.0, 0.1, 0.2])
    assert [line.get_xdata()[0] for line in heart.lines] == [measures["knowable"]] * 3
    assert drop_in_truth.describe(rows)[2].startswith("c: correlation 0.20; accuracy ")


@pytest.mark.slow
def test_a_random_walk_is_counted_and_places_never_seen_stand_out():
    measures = drop_in_truth.walk(SMALL_WORLD, steps=30_000, seed=0)
    assert measures["correlation"] > 0.8
    assert measures["unvisited"] > 2 * measures["visited"]
