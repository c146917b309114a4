"""The clip: frames survive exactly, rewards belong to their frames."""

import base64
import copy
import io
from dataclasses import replace

import numpy as np
import pytest
from launch.test_local import assert_same, everything
from PIL import Image

from softcount.report.clip import _as_data_uri, brighten, describe_clip, film_strip
from softcount.runs.playback import as_image, open_run, play
from softcount.runs.run import read_config


@pytest.fixture(scope="module")
def played(run):
    config, loop = read_config(run), open_run(run)
    return config, loop, play(config, loop, 2, keep_frames=True)


def decode(uri):
    head, _, body = uri.partition(",")
    assert head == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(body))).convert("RGB"))


def test_every_frame_of_the_strip_is_the_frame_that_was_seen(played):
    config, loop, seen = played
    clip = describe_clip(config, loop, 2)
    strip, frames = decode(clip["image"]), seen.evaluation.frames
    assert clip["num_frames"] == len(frames) == len(clip["rewards"]) == len(clip["intrinsics"])
    for i, frame in enumerate(frames):
        top, left = (7 * x for x in divmod(i, clip["columns"]))
        np.testing.assert_array_equal(strip[top : top + 7, left : left + 7], frame)


def test_the_path_starts_at_the_start_and_moves_one_cell_at_a_time(played):
    config, loop, _ = played
    cells = describe_clip(config, loop, 2)["cells"]
    assert cells[0] == [5, 1]
    free = np.array([cell for cell in cells if cell is not None])
    assert (np.abs(np.diff(free, axis=0)).sum(axis=1) == 1).all()


def test_rewards_and_bonuses_add_up_to_the_episode(played):
    config, _, seen = played
    matching = [e for e in seen.evaluation.episodes if e.length == len(seen.rewards) - 1]
    assert sum(seen.rewards) in [e.extrinsic_return for e in matching]
    assert seen.intrinsics[0] == 0.0
    assert max(seen.intrinsics) > 0
    assert seen.places[-1] < 0  # it died in a wall, which is not paid:
    assert (config.terminal_observations, seen.intrinsics[-1]) == ("skipped", 0.0)


def test_a_bonus_that_pays_for_the_last_observation_is_shown_to_do_so(played):
    config, loop, seen = played
    paid = play(replace(config, terminal_observations="paid"), loop, 2)
    assert paid.intrinsics[:-1] == seen.intrinsics[:-1]
    assert paid.intrinsics[-1] > 0


def test_palette_and_grey_observations_become_pictures():
    np.testing.assert_array_equal(as_image(np.array([[0, 6]], np.uint8)), [[[0, 0, 0], [255, 255, 255]]])
    grey = np.array([[[7], [200]]], np.uint8)
    np.testing.assert_array_equal(as_image(grey), [[7, 200]])


def test_playing_changes_nothing(played):
    config, loop, first = played
    before = copy.deepcopy(everything(loop))
    again = play(config, loop, 2, keep_frames=True)
    assert again.intrinsics == first.intrinsics
    np.testing.assert_array_equal(again.evaluation.frames, first.evaluation.frames)
    assert_same(before, everything(loop))


def test_a_clip_says_which_mixture_played(played):
    config, loop, seen = played
    best = loop.roles.actor.behaviour.best_mixture()
    assert describe_clip(config, loop, 2)["behaviour"] == seen.behaviour == f"mixture {best}"
    assert {episode.condition for episode in seen.evaluation.episodes} == {best}


@pytest.mark.parametrize("num_colours", [3, 256, 300])
def test_pictures_keep_their_colours(num_colours):
    rng = np.random.default_rng(num_colours)
    palette = rng.choice(2**24, num_colours, replace=False)
    colours = np.stack([palette >> 16, palette >> 8 & 255, palette & 255], axis=1).astype(np.uint8)
    image = colours[rng.permutation(np.arange(40 * 30) % num_colours).reshape(40, 30)]
    np.testing.assert_array_equal(decode(_as_data_uri(image)), image)


def test_symbols_are_stretched_over_all_frames_alike_and_colours_are_left_alone():
    first, second = np.full((1, 1, 3), 2, np.uint8), np.full((1, 1, 3), 10, np.uint8)
    assert [int(image.max()) for image in brighten([first, second])] == [51, 255]
    colours = [np.full((1, 1, 3), 40, np.uint8)]
    assert brighten(colours) is colours


def test_a_strip_of_wide_frames_is_about_square():
    strip, columns = film_strip([np.zeros((10, 40, 3), np.uint8)] * 16)
    assert (strip.shape, columns) == ((80, 80, 3), 2)
