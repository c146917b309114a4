"""The NFNet torso: what goes in with unit variance comes out with the expected one."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F

from softcount.torsos import NFNET_ATARI, NFNET_DM_HARD_8, make_torso
from softcount.torsos.nfnet import Block, NfNet, NfNetConfig, SqueezeExcite, StandardisedConv, activate
from softcount.types import ArraySpec


def test_the_papers_tables():
    assert (NFNET_ATARI.initial_stride, NFNET_ATARI.blocks) == (4, (2, 3, 4, 4))
    assert (NFNET_DM_HARD_8.initial_stride, NFNET_DM_HARD_8.blocks) == (2, (2, 4, 12, 6))
    for config in (NFNET_ATARI, NFNET_DM_HARD_8):
        assert config.channels == (64, 128, 128, 64)
        assert config.strides == (1, 2, 2, 2)


def test_full_atari_frames_give_2240_features():
    torso = make_torso("nfnet", ArraySpec((210, 160, 1), "uint8"))
    with torch.no_grad():
        maps = torso.body(torch.rand(1, 1, 210, 160))
    assert maps.shape == (1, 64, 7, 5)
    assert torso.out_features == 2240


def test_kernels_have_mean_zero_and_squares_that_sum_to_the_gain_squared():
    conv = StandardisedConv(3, 4, 5)
    with torch.no_grad():
        conv.weight.add_(7.0)
        conv.gain[1] = 3.0
    kernels = conv.kernels()
    torch.testing.assert_close(kernels.mean((1, 2, 3)), torch.zeros(4), atol=1e-6, rtol=0)
    torch.testing.assert_close(kernels.square().sum((1, 2, 3)), torch.tensor([1.0, 9.0, 1.0, 1.0]))


def test_kernels_by_hand():
    conv = StandardisedConv(1, 1, 2)
    with torch.no_grad():
        conv.weight.copy_(torch.tensor([[[[1.0, 2.0], [3.0, 6.0]]]]))
    # mean 3, var (4 + 1 + 0 + 9)/4 = 3.5, fan-in 4: divide by sqrt(14)
    expected = torch.tensor([-2.0, -1.0, 0.0, 3.0]) / math.sqrt(14.0)
    torch.testing.assert_close(conv.kernels().flatten(), expected)


def test_constant_kernels_stay_finite():
    conv = StandardisedConv(1, 1, 3)
    with torch.no_grad():
        conv.weight.fill_(2.0)
    assert (conv.kernels() == 0).all()


def test_the_scaled_gelu_keeps_unit_variance():
    x = torch.randn(1_000_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert activate(x).var().item() == pytest.approx(1.0, abs=0.01)


def test_at_the_start_a_block_without_transition_is_the_identity():
    block = Block(8, 8, 1, 1.0, NfNetConfig())
    maps = torch.randn(2, 8, 5, 5)
    assert torch.equal(block(maps), maps)


def test_a_block_is_shortcut_plus_alpha_gain_residual():
    torch.manual_seed(0)
    block = Block(4, 6, 2, 0.7, NfNetConfig())
    with torch.no_grad():
        block.skip_gain.fill_(1.5)
    maps = torch.randn(2, 4, 5, 4)
    a = F.gelu(maps) * 1.7015043497085571 * 0.7
    padded = torch.cat([a, torch.zeros(2, 4, 1, 4)], 2)  # five rows: the last pool has one row of two
    means = (
        padded[:, :, 0::2, 0::2]
        + padded[:, :, 1::2, 0::2]
        + padded[:, :, 0::2, 1::2]
        + padded[:, :, 1::2, 1::2]
    )
    means = means / torch.tensor([4.0, 4.0, 2.0])[:, None]
    shortcut = F.conv2d(means, block.shortcut.kernels())
    hidden = F.conv2d(a, block.convs[0].kernels())
    hidden = F.conv2d(activate(hidden), block.convs[1].kernels(), stride=2, padding=1)
    hidden = F.conv2d(activate(hidden), block.convs[2].kernels(), padding=1)
    hidden = F.conv2d(activate(hidden), block.convs[3].kernels())
    squeezed = F.relu(block.gate.squeeze(hidden.mean((2, 3))))
    hidden = hidden * 2 * torch.sigmoid(block.gate.excite(squeezed))[:, :, None, None]
    torch.testing.assert_close(block(maps), shortcut + 0.2 * 1.5 * hidden)
    keep = torch.tensor([True, False])
    torch.testing.assert_close(block(maps, keep)[0], block(maps)[0])
    torch.testing.assert_close(block(maps, keep)[1], shortcut[1])


def test_betas_follow_the_growth_of_the_variance_and_reset_at_stages():
    net = NfNet(1, NfNetConfig(blocks=(2, 3), channels=(4, 8), strides=(1, 2)))
    s = [1.0, math.sqrt(1.04), math.sqrt(1.08), math.sqrt(1.04), math.sqrt(1.08)]
    assert [block.beta for block in net.blocks] == pytest.approx([1 / x for x in s])
    assert net.out_scale == pytest.approx(1 / math.sqrt(1.12))


def test_signals_have_the_expected_size_throughout_the_net():
    """Without pooling, whose loss depends on the image, the variance is 1 + α² per block of the stage."""
    torch.manual_seed(0)
    config = NfNetConfig(blocks=(2, 2, 2), channels=(64, 128, 64), strides=(1, 1, 1), squeeze_excite=False)
    net = NfNet(3, config)
    maps = net.stem(torch.randn(4, 3, 160, 160))
    expected = [1, 2, 1, 2, 1, 2]
    for block, num in zip(net.blocks, expected, strict=True):
        torch.nn.init.constant_(block.skip_gain, 1.0)
        maps = block(maps)
        assert maps.var().item() == pytest.approx(1 + 0.04 * num, rel=0.1)


def test_squeeze_excite_starts_near_one():
    gate = SqueezeExcite(8)
    with torch.no_grad():
        gate.excite.weight.zero_()
        gate.excite.bias.zero_()
    assert (gate(torch.randn(2, 8, 3, 3)) == 1.0).all()


def test_drop_rates_rise_linearly_from_zero():
    config = NfNetConfig(blocks=(2, 3), channels=(4, 4), strides=(1, 2), drop_rate=0.5)
    assert config.drop_rates == pytest.approx((0.0, 0.1, 0.2, 0.3, 0.4))
