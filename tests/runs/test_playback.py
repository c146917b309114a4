"""Looking at a run: the same episodes each time, nothing of the run changed, frames found in observations."""

from dataclasses import replace

import numpy as np
import pytest
from launch.test_local import TINY

from softcount.envs.disco_maze import PALETTE
from softcount.runs.playback import as_image, open_run, play, write_gif
from softcount.runs.run import Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("playback") / "run"
    run = Run.create(folder, replace(TINY, steps=200, evaluate_every=0))
    list(run.train())
    run.close()
    return folder


def test_the_same_run_plays_the_same_and_stays_as_it_is(folder):
    loop = open_run(folder)
    (memory,) = loop.roles.memory.bonus.memories().values()
    before = memory.atoms.copy(), memory.counts.copy()
    one, other = (play(TINY, loop, 3, keep_frames=True) for _ in range(2))
    assert one.places == other.places
    assert one.intrinsics == other.intrinsics
    assert len(one.evaluation.episodes) == 3
    for after, kept in zip((memory.atoms, memory.counts), before, strict=True):
        np.testing.assert_array_equal(after, kept)


def test_what_the_first_episode_met_is_told_row_by_row(folder):
    played = play(TINY, open_run(folder), 2, keep_frames=True)
    first = played.evaluation.episodes[0]
    assert len(played.rewards) == len(played.intrinsics) == len(played.places) == first.length + 1
    assert len(played.evaluation.frames) == first.length + 1
    assert sum(played.rewards) == pytest.approx(first.extrinsic_return)
    assert played.behaviour.startswith("mixture ")


def test_pictures_are_found_in_observations():
    grey, palette = np.full((4, 4), 200, np.uint8), np.full((4, 4), 2, np.uint8)
    np.testing.assert_array_equal(as_image(grey), grey)
    np.testing.assert_array_equal(as_image(palette), PALETTE[palette])
    np.testing.assert_array_equal(as_image(grey[..., None]), grey)
    np.testing.assert_array_equal(as_image({"vector": np.zeros(3), "image": grey}), grey)
    with pytest.raises(ValueError, match=r"shape \(3,\) and dtype float64 cannot be drawn"):
        as_image(np.zeros(3))


def test_an_animation_has_every_frame_enlarged_without_blurring(tmp_path):
    from PIL import Image

    frames = [np.full((5, 4), value, np.uint8) for value in (100, 150, 250)]
    write_gif(tmp_path / "below" / "film.gif", frames, side=20)
    with Image.open(tmp_path / "below" / "film.gif") as film:
        assert film.n_frames == 3
        assert film.size == (16, 20)
