import numpy as np

from experiments.pictures.environments import PICTURES, Picture, draw, play


def test_random_play_is_counted_and_drawn(tmp_path):
    picture = Picture("maze", "disco-maze", 400, 8, options={"size": 11, "lethal": False})
    photograph, coverage, env = play(picture, seed=0)
    assert photograph.shape == (11, 11, 3)
    assert coverage.steps == 400
    assert 1 < coverage.num_visited <= 49
    again = play(picture, seed=0)
    assert np.array_equal(photograph, again[0])
    assert np.array_equal(coverage.visits, again[1].visits)
    draw(tmp_path / "maze.png", picture, photograph, coverage, env)
    assert (tmp_path / "maze.png").stat().st_size > 1000


def test_every_family_but_the_one_that_needs_a_server_has_a_picture():
    assert {picture.name.split("/")[0] for picture in PICTURES} == {
        "disco-maze",
        "atari",
        "noisy-atari",
        "minigrid",
        "vizdoom",
    }
