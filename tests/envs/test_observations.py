"""Every space that can be read becomes arrays that say the same; the rest is refused at once."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from softcount.envs.observations import ObservationReader
from softcount.types import ArraySpec

IMAGE = np.arange(4 * 6 * 5).reshape(4, 6, 5).astype(np.uint8)


@pytest.mark.parametrize(
    ("space", "value", "expected"),
    [
        (spaces.Discrete(4), 2, [0, 0, 1, 0]),
        (spaces.Discrete(3, start=-1), 1, [0, 0, 1]),
        (spaces.MultiDiscrete([2, 3]), [1, 2], [0, 1, 0, 0, 1]),
        (spaces.MultiDiscrete([2, 3], start=[5, 0]), [5, 1], [1, 0, 0, 1, 0]),
        (spaces.MultiDiscrete([[2, 2], [2, 2]]), [[0, 1], [1, 0]], [[[1, 0], [0, 1]], [[0, 1], [1, 0]]]),
        (spaces.MultiBinary(3), [1, 0, 1], [1, 0, 1]),
        (spaces.MultiBinary([2, 2]), [[1, 0], [0, 1]], [1, 0, 0, 1]),
        (spaces.Box(-9, 9, (2,), np.int32), [3, -4], [3, -4]),
        (spaces.Box(-9, 9, (), np.float64), 0.5, [0.5]),
        (spaces.Box(0, 1, (2, 2), np.float32), [[0, 1], [1, 0]], [[[0], [1]], [[1], [0]]]),
        (spaces.Box(0, 9, (2, 2), np.int64), [[0, 1], [9, 0]], [[0, 1], [9, 0]]),
    ],
)
def test_a_value_becomes_what_it_means(space, value, expected):
    reader = ObservationReader(space)
    batch = np.array([value, value])
    read = reader.read(batch)
    assert read.tolist() == [expected, expected]
    assert isinstance(reader.spec, ArraySpec)
    assert read.shape[1:] == reader.spec.shape
    assert read.dtype == reader.spec.dtype
    np.testing.assert_array_equal(reader.stack([np.array(value), np.array(value)]), read)


@pytest.mark.parametrize(
    ("shape", "turned"), [((6, 5, 4), (0, 1, 2)), ((4, 6, 5), (1, 2, 0)), ((3, 6, 5), (1, 2, 0))]
)
def test_images_have_their_channels_last(shape, turned):
    image = IMAGE[: shape[0]] if shape[0] < 5 else IMAGE.transpose(1, 2, 0)
    reader = ObservationReader(spaces.Box(0, 255, shape, np.uint8))
    np.testing.assert_array_equal(reader.read(image[None])[0], image.transpose(turned))
    assert reader.spec.dtype == "uint8"


@pytest.mark.parametrize("is_first", [False, True])
def test_stacked_frames_become_channels_oldest_first(is_first):
    frames = np.random.default_rng(0).integers(0, 255, (4, 8, 9, 3)).astype(np.uint8)
    given = frames.transpose(0, 3, 1, 2) if is_first else frames
    reader = ObservationReader(spaces.Box(0, 255, given.shape, np.uint8))
    expected = np.concatenate(list(frames), axis=-1)
    np.testing.assert_array_equal(reader.read(given[None])[0], expected)


def test_dicts_and_tuples_are_taken_apart_under_names():
    inner = spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1, (3,), np.float32)))
    space = spaces.Dict({"a.b": spaces.MultiBinary(2), "inner": inner})
    reader = ObservationReader(space)
    shapes = {name: spec.shape for name, spec in reader.spec.items()}
    assert shapes == {"a_b": (2,), "inner/0": (2,), "inner/1": (3,)}
    batch = batch_space(space, 3).sample()
    read = reader.read(batch)
    np.testing.assert_array_equal(read["inner/0"].argmax(1), batch["inner"][0])
    np.testing.assert_array_equal(read["inner/1"], batch["inner"][1])
    rows = [{"a.b": batch["a.b"][i], "inner": tuple(part[i] for part in batch["inner"])} for i in range(3)]
    stacked = reader.stack(rows)
    assert all(np.array_equal(stacked[name], read[name]) for name in read)


@pytest.mark.parametrize(
    "space",
    [
        spaces.Text(5),
        spaces.Graph(spaces.Box(0, 1, (2,)), None),
        spaces.Sequence(spaces.Discrete(2)),
        spaces.Dict(x=spaces.Text(3)),
        spaces.Dict({}),
        spaces.Discrete(20_000),
        spaces.Box(0, 1, (2, 2, 2, 2, 2)),
        spaces.Dict({"a.b": spaces.Discrete(2), "a_b": spaces.Discrete(2)}),
    ],
)
def test_what_cannot_be_read_is_refused_when_it_is_made(space):
    with pytest.raises(TypeError, match="cannot observe"):
        ObservationReader(space)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[0, 3]], r"obs holds a category out of range; expected \[2, 3\] of them"),
        ([[-1, 0]], "out of range"),
        ([[0.5, 0]], "out of range"),
        ([[0, 0, 0]], r"obs has shape \(1, 3\); expected \(1, 2\)"),
        ([["a", "b"]], "obs has dtype <U1; expected numbers"),
        ([[np.nan, 0]], "NaN"),
    ],
)
def test_wrong_values_are_named(value, message):
    with pytest.raises(ValueError, match=message):
        ObservationReader(spaces.MultiDiscrete([2, 3])).read(np.array(value), "obs", 1)


def test_a_missing_part_is_named():
    reader = ObservationReader(spaces.Dict(x=spaces.Discrete(2), y=spaces.Discrete(2)))
    with pytest.raises(ValueError, match="obs is dict and lacks 'y'"):
        reader.read({"x": [0]}, "obs", 1)
