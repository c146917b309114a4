"""The bonus of drop-in use beside true counts, after a random walk through a blocking maze."""

from __future__ import annotations

import json

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


def test_each_variant_is_walked_and_written(tmp_path):
    path = tmp_path / "truth.json"
    drop_in_truth.main(["--steps", "320", "--out", str(path)])
    records = json.loads(path.read_text())
    assert [record["variant"] for record in records] == list(drop_in_truth.VARIANTS)
    assert all(1 < record["visited places"] < 97 for record in records)


@pytest.mark.slow
def test_a_random_walk_is_counted_and_places_never_seen_stand_out():
    measures = drop_in_truth.walk(SMALL_WORLD, steps=30_000, seed=0)
    assert measures["correlation"] > 0.8
    assert measures["unvisited"] > 2 * measures["visited"]
