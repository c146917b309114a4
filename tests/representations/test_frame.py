"""FRAME against loops over pixels, and representations of the newest frame against those of one frame."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from oracles.sequences import sample_sequence

from softcount.representations import Frame, FrameConfig, RepresentationTrainer, make_representation
from softcount.representations.make import GRID, KINDS
from softcount.representations.newest import Newest
from softcount.types import ArraySpec, DiscreteActions

ACTIONS = DiscreteActions(3)


def cell_means(image, rows, columns):
    """Means over cells whose borders are rounded outwards, one pixel after the other."""
    height, width, channels = image.shape
    means = []
    for row in range(rows):
        for column in range(columns):
            top, bottom = math.floor(row * height / rows), math.ceil((row + 1) * height / rows)
            left, right = math.floor(column * width / columns), math.ceil((column + 1) * width / columns)
            for channel in range(channels):
                values = [
                    float(image[y, x, channel]) / 255 for y in range(top, bottom) for x in range(left, right)
                ]
                means.append(sum(values) / len(values))
    return means


@pytest.mark.parametrize("shape", [(42, 40, 1), (21, 16, 3), (9, 7)])
def test_a_frame_is_the_means_of_its_cells(shape):
    images = np.random.default_rng(0).integers(0, 256, (2, *shape), dtype=np.uint8)
    frame = Frame(ArraySpec(shape, "uint8"), FrameConfig(rows=6, columns=5))
    embedding = frame.represent(torch.from_numpy(images))[0].embedding
    expected = [cell_means(image.reshape(*shape[:2], -1), 6, 5) for image in images]
    np.testing.assert_allclose(embedding, expected, rtol=1e-5)
    assert frame.dim == len(expected[0])
    sequence = torch.from_numpy(images)[:, None]
    assert torch.equal(frame.embed(sequence)[:, 0], embedding)


def test_small_pictures_keep_their_size_and_vectors_are_taken_as_they_are():
    small = Frame(ArraySpec((3, 2, 1), "float32"))
    picture = torch.rand(4, 3, 2, 1)
    assert torch.allclose(small.represent(picture)[0].embedding, picture.flatten(1))
    vector = torch.rand(4, 7)
    flat = Frame(ArraySpec((7,), "float32"))
    assert torch.equal(flat.represent(vector)[0].embedding, vector)
    assert flat.dim == 7


def test_a_frame_learns_nothing():
    frame = Frame(ArraySpec((4, 4, 1), "uint8"))
    trainer = RepresentationTrainer(frame)
    assert trainer.update(sample_sequence(ArraySpec((4, 4, 1), "uint8"), ACTIONS)) == {}
    assert trainer.acting_state() == {}


def test_parts_of_a_dict_stand_one_after_the_other():
    specs = {"view": ArraySpec((4, 6, 1), "uint8"), "speed": ArraySpec((), "float32")}
    frame = Frame(specs, FrameConfig(rows=2, columns=2))
    view = torch.zeros(2, 1, 4, 6, 1, dtype=torch.uint8)
    view[1, 0, :2, 3:] = 255
    observation = {"view": view, "speed": torch.tensor([[0.5], [-2.0]])}
    assert frame.dim == 5
    assert frame.embed(observation)[:, 0].tolist() == [[0, 0, 0, 0, 0.5], [0, 1, 0, 0, -2.0]]


def test_what_is_no_picture_is_refused():
    with pytest.raises(ValueError, match="expected pictures and flat vectors"):
        Frame(ArraySpec((2, 3, 4, 5), "uint8"))
    with pytest.raises(ValueError, match=r"FrameConfig\.rows is 0; expected at least 1"):
        FrameConfig(rows=0)


STACK, ONE = ArraySpec((6, 5, 3), "uint8"), ArraySpec((6, 5, 1), "uint8")


def of_newest(sequence):
    steps = sequence.steps
    return sequence._replace(steps=steps._replace(observation=steps.observation[..., 2:]))


@pytest.mark.parametrize("kind", [*KINDS, "ap+rnd"])
def test_only_the_newest_frame_is_seen(kind):
    settings = replace(GRID, newest_channels=1)
    newest = make_representation(kind, STACK, ACTIONS, settings, seed=3)
    plain = make_representation(kind, ONE, ACTIONS, GRID, seed=3)
    assert isinstance(newest, Newest)
    assert newest.dim == plain.dim
    stacked = sample_sequence(STACK, ACTIONS)
    single = of_newest(stacked)
    trainers = [RepresentationTrainer(module) for module in (newest, plain)]
    for trainer, sequence in zip(trainers, (stacked, single)):
        assert trainer.needs_statistics == ("rnd" in kind and kind != "rnd-on-ap")
        if trainer.needs_statistics:
            trainer.learn_statistics(sequence.steps.observation.flatten(0, 1))
    updates = [
        trainer.update(sequence) for trainer, sequence in zip(trainers, (stacked, single)) for _ in range(2)
    ]
    assert updates[0] == updates[2]
    assert updates[1] == updates[3]
    observations = stacked.steps.observation[0], single.steps.observation[0]
    shown = [
        module.eval().represent(x, None, None, module.initial_state(len(x)))[0]
        for module, x in zip((newest, plain), observations)
    ]
    for ours, theirs in zip(*shown):
        assert (ours is None) == (theirs is None)
        assert ours is None or torch.equal(ours, theirs)
    if newest.dim is not None:
        assert torch.equal(newest.embed(stacked.steps.observation), plain.embed(single.steps.observation))
    if kind == "byol":
        surprises = [t.surprise(s) for t, s in zip(trainers, (stacked, single))]
        assert np.array_equal(*surprises)


def test_more_channels_than_there_are_cannot_be_seen():
    with pytest.raises(ValueError, match="newest_channels is 4, but observations are"):
        make_representation("ap", STACK, ACTIONS, replace(GRID, newest_channels=4))
