"""Torsos: shapes, exact values worked by hand, and what each promises about its input."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from softcount.torsos import (
    DqnConfig,
    GridConfig,
    GridTorso,
    MlpConfig,
    encode,
    make_torso,
)
from softcount.torsos.nfnet import NfNetConfig
from softcount.types import ArraySpec

TINY_NFNET = NfNetConfig(blocks=(1, 2), channels=(4, 8), strides=(1, 2), drop_rate=0.9)
CASES = {
    "grid-rgb": ("grid", ArraySpec((5, 6, 3), "uint8")),
    "grid-palette": ("grid", ArraySpec((5, 6), "uint8")),
    "grid-float": ("grid", ArraySpec((5, 6, 2), "float32")),
    "dqn": ("dqn", ArraySpec((40, 44, 2), "uint8")),
    "dqn-grey": ("dqn", ArraySpec((40, 44), "uint8")),
    "nfnet": (TINY_NFNET, ArraySpec((17, 12, 3), "uint8")),
    "mlp": ("mlp", ArraySpec((7,), "float32")),
    "dict": (
        {"a": TINY_NFNET, "b": "mlp"},
        {"a": ArraySpec((16, 16, 1), "uint8"), "b": ArraySpec((3,), "float32")},
    ),
    "own": (nn.Sequential(nn.Flatten(), nn.Linear(7, 9)), ArraySpec((7,), "float32")),
}


def sample(spec, *leading, seed=0):
    if isinstance(spec, dict):
        return {key: sample(part, *leading, seed=seed) for key, part in spec.items()}
    rng = np.random.default_rng(seed)
    if spec.dtype == "uint8":
        return torch.from_numpy(rng.integers(0, 256, (*leading, *spec.shape), dtype=np.uint8))
    return torch.from_numpy(rng.normal(size=(*leading, *spec.shape)).astype(np.float32))


def take(tree, index):
    return {key: take(x, index) for key, x in tree.items()} if isinstance(tree, dict) else tree[index]


@pytest.mark.parametrize("name", CASES)
def test_a_batch_gives_the_same_features_as_its_rows_one_by_one(name):
    torch.manual_seed(0)
    choice, spec = CASES[name]
    torso = make_torso(choice, spec)
    batch = sample(spec, 4)
    together = torso(batch)
    assert together.shape == (4, torso.out_features)
    for i in range(4):
        torch.testing.assert_close(torso(take(batch, slice(i, i + 1)))[0], together[i], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_a_sequence_is_encoded_row_by_row(name):
    torch.manual_seed(0)
    choice, spec = CASES[name]
    torso = make_torso(choice, spec)
    sequence = sample(spec, 3, 2)
    features = encode(torso, sequence)
    assert features.shape == (3, 2, torso.out_features)
    torch.testing.assert_close(features[2], torso(take(sequence, 2)), rtol=1e-4, atol=1e-5)


def test_bytes_are_divided_by_255():
    torso = make_torso(MlpConfig(hidden_sizes=()), ArraySpec((3,), "uint8"))
    assert torso.out_features == 3
    torch.testing.assert_close(
        torso(torch.tensor([[0, 51, 255]], dtype=torch.uint8)), torch.tensor([[0.0, 0.2, 1.0]])
    )


def test_the_colour_table_is_the_same_as_evaluating_every_pixel():
    torch.manual_seed(1)
    torso = GridTorso(ArraySpec((4, 3, 3), "uint8"), GridConfig(channels=2, hidden_sizes=(5,)))
    images = sample(ArraySpec((4, 3, 3), "uint8"), 6)
    images[:, 1] = 255  # repeated colours
    pixels = torso.colours(images.float() / 255)
    expected = torso.dense(pixels.flatten(1))
    torch.testing.assert_close(torso(images), expected)
    gradients = []
    for features in (torso(images), expected):
        torso.zero_grad()
        features.square().sum().backward()
        gradients.append([parameter.grad.clone() for parameter in torso.parameters()])
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_the_table_of_a_palette_starts_as_small_as_configured():
    torch.manual_seed(0)
    table = GridTorso(ArraySpec((2, 2), "uint8"), GridConfig(channels=4, palette_scale=0.3)).palette
    assert table.std().item() == pytest.approx(0.3, rel=0.1)
    assert abs(table.mean().item()) < 0.05


def test_palette_indices_look_rows_up_in_the_order_of_the_cells():
    torso = GridTorso(ArraySpec((2, 2), "uint8"), GridConfig(channels=1, hidden_sizes=(), palette_size=10))
    with torch.no_grad():
        torso.palette.copy_(torch.arange(10.0)[:, None] * 10)
    out = torso(torch.tensor([[[3, 1], [0, 9]], [[2, 2], [5, 4]]], dtype=torch.uint8))
    assert out.tolist() == [[30, 10, 0, 90], [20, 20, 50, 40]]


def test_the_colour_table_has_no_relu_at_its_end():
    torso = GridTorso(ArraySpec((2, 2, 3), "uint8"), GridConfig(hidden_sizes=()))
    with torch.no_grad():
        torso.colours[2].bias.fill_(-100.0)
    assert (torso(sample(ArraySpec((2, 2, 3), "uint8"), 3)) < 0).all()


def test_dqn_reads_channels_last_and_matches_a_convolution_by_hand():
    config = DqnConfig(channels=(1,), kernels=(2,), strides=(1,))
    torso = make_torso(config, ArraySpec((2, 3, 2), "float32"))
    with torch.no_grad():
        torso.body[0].weight.copy_(torch.tensor([[[[1.0, 2], [3, 4]], [[10, 20], [30, 40]]]]))
        torso.body[0].bias.fill_(0.5)
    image = torch.tensor([[[1.0, 0], [2, 1], [0, 0]], [[0, 0], [1, 0], [-9, 0]]])[None]
    # left: 1·1 + 2·2 + 3·0 + 4·1 + 20·1 + 0.5;  right: 1·2 + 4·(−9) + 3·1 + 10·1 + 0.5 < 0
    assert torso(image).tolist() == [[29.5, 0.0]]


@pytest.mark.parametrize(
    ("choice", "shape", "features"),
    [
        ("dqn", (84, 84, 4), 3136),
        ("dqn", (210, 160, 1), 22 * 16 * 64),
        (DqnConfig(hidden_sizes=(512,)), (84, 84, 1), 512),
        ("grid", (11, 11, 3), 128),
        ("nfnet", (210, 160, 1), 2240),
        ("nfnet-dm-hard-8", (72, 96, 3), 64 * 5 * 6),
    ],
)
def test_out_features(choice, shape, features):
    assert make_torso(choice, ArraySpec(shape, "uint8")).out_features == features


def test_dict_features_lie_side_by_side_in_the_order_of_the_keys():
    specs = {"b": ArraySpec((2,), "float32"), "a": ArraySpec((3,), "float32")}
    torso = make_torso({"a": MlpConfig(hidden_sizes=()), "b": MlpConfig(hidden_sizes=())}, specs)
    out = torso({"b": torch.tensor([[4.0, 5]]), "a": torch.tensor([[1.0, 2, 3]])})
    assert out.tolist() == [[1, 2, 3, 4, 5]]


def test_one_mask_per_trace_in_training_and_none_without_a_generator():
    torch.manual_seed(0)
    spec = ArraySpec((16, 16, 1), "uint8")
    torso = make_torso(TINY_NFNET, spec)
    for block in torso.body.blocks:
        nn.init.constant_(block.skip_gain, 5.0)
    observation = sample(spec, 1, 1).expand(6, 8, *spec.shape)  # the same image everywhere
    full = encode(torso, observation)
    assert (full == full[0, 0]).all()
    dropped = encode(torso, observation, torch.Generator().manual_seed(3))
    torch.testing.assert_close(dropped, dropped[:1].expand_as(dropped))  # constant over time
    assert len({tuple(row.tolist()) for row in dropped[0]}) > 1  # differs between traces
    torso.eval()
    torch.testing.assert_close(encode(torso, observation, torch.Generator().manual_seed(3)), full)


def test_wrong_choices_are_named():
    with pytest.raises(ValueError, match="'cnn'; expected one of grid, dqn, nfnet"):
        make_torso("cnn", ArraySpec((4, 4, 3), "uint8"))
    with pytest.raises(ValueError, match="too small"):
        make_torso("dqn", ArraySpec((11, 11, 3), "uint8"))
    with pytest.raises(ValueError, match=r"shape \(4,\)"):
        make_torso("grid", ArraySpec((4,), "float32"))
    with pytest.raises(ValueError, match=r"\['a'\]; the observation has \['b'\]"):
        make_torso({"a": "mlp"}, {"b": ArraySpec((4,), "float32")})
