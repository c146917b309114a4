"""Pictures of environments: the same play is photographed and counted."""

import numpy as np

from experiments.pictures import environments
from experiments.pictures.environments import PICTURES, Picture
from softcount.envs.make import make


def test_random_play_is_counted_and_drawn():
    picture = Picture("maze", "disco-maze", 400, 8, options={"size": 11, "lethal": False})
    row = environments.measure(picture)
    assert row == environments.measure(picture)
    assert row["coverage_steps"] == sum(row["visits"]) == 400
    assert row["visited"] == len(row["places"])
    assert 1 < row["visited"] <= 49
    seen, covered, *_ = environments.plot(picture, [row]).axes
    maze = make("disco-maze", 8, 0, **picture.options)
    image = seen.images[0].get_array()
    np.testing.assert_array_equal(image, environments.photograph(picture, maze))
    shown = covered.images[-1].get_array()
    assert np.nansum(np.ma.filled(shown, np.nan)) == 400
    (said,) = environments.describe([row])
    assert said == f"random actions reach {row['visited']} of 49 places in 400 steps"


def test_every_family_but_the_one_that_needs_a_server_has_a_picture():
    assert {picture.name.split("/")[0] for picture in PICTURES} == {
        "disco-maze",
        "atari",
        "noisy-atari",
        "minigrid",
        "vizdoom",
    }


def test_a_small_part_of_a_map_is_drawn_large_and_says_so():
    maze = Picture("maze", "disco-maze", 8, 8, options={"size": 21})
    _, covered, *_ = environments.plot(maze, [environments.measure(maze)]).axes
    assert covered.get_title().endswith(", a part of the map")
    left, right = covered.get_xlim()
    assert (left, right) == (-1.5, 3.5)  # two cells around the start, in the first column of the floor


def test_screens_on_a_ring_are_counted_from_the_start_both_ways():
    axes = environments.new_figure(2, 2).subplots()
    coverage = environments.Coverage(10)
    coverage.update_places(np.array([0, 0, 0, 1, 9, 9]))
    environments._draw_ring(axes, coverage)
    bars = {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in axes.patches}
    assert bars == {-1: 2, 0: 3, 1: 1}
