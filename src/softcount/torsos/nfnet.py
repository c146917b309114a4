"""The residual torso without normalisation that MEME and the paper use [NFNet, MEME].

    h ← shortcut + α · g · f(β · act(h)),   β = 1 / expected std of h,   α = 0.2

f is a bottleneck of four convolutions (1×1 to half the width, 3×3, 3×3, 1×1) and a
squeeze-excite gate; g is one learned number per block that starts at 0, so that at first
the net is its shortcuts. In place of normalisation every kernel is standardised and every
activation scaled so that unit variance goes in and comes out; the variance of h grows by
α² per block and starts anew at each stage, whose first block has a shortcut of its own
(act → 2×2 mean → 1×1 convolution). The paper's tables give the initial stride, blocks,
channels and strides; what they leave open is Decision 42.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softcount.validation import above, at_least, between, check_fields, each

GELU_SCALE = 1.7015043497085571
"""1 / std of GELU(x), x standard normal."""


@dataclass(frozen=True, kw_only=True)
class NfNetConfig:
    """Shape of the torso; defaults are the paper's Atari table."""

    initial_stride: int = 4
    """Stride of the stem, one 7×7 convolution."""
    blocks: tuple[int, ...] = (2, 3, 4, 4)
    """Blocks per stage."""
    channels: tuple[int, ...] = (64, 128, 128, 64)
    """Channels per stage."""
    strides: tuple[int, ...] = (1, 2, 2, 2)
    """Stride of the first block of each stage."""
    squeeze_excite: bool = True
    """Whether blocks end in a squeeze-excite gate of ratio 0.5."""
    drop_rate: float = 0.1
    """Stochastic depth: block i of n, from 0, is skipped in training at a rate of this · i / n."""
    residual_scale: float = 0.2
    """α, how much variance a block may add."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            initial_stride=at_least(1),
            blocks=each(at_least(1)),
            channels=each(at_least(1)),
            strides=each(at_least(1)),
            drop_rate=between(0, 1, "[)"),
            residual_scale=above(0),
        )
        if not len(self.blocks) == len(self.channels) == len(self.strides):
            raise ValueError(
                f"blocks {self.blocks}, channels {self.channels}, strides {self.strides}: lengths differ"
            )

    @property
    def drop_rates(self) -> tuple[float, ...]:
        """The drop rate of each block: 0 for the first, rising in equal steps to just below `drop_rate`."""
        num = sum(self.blocks)
        return tuple(self.drop_rate * i / num for i in range(num))

    def out_shape(self, height: int, width: int) -> tuple[int, int, int]:
        """Channels, height and width of the output; every stride divides, rounding up."""
        for stride in (self.initial_stride, *self.strides):
            height, width = -(-height // stride), -(-width // stride)
        return self.channels[-1], height, width


class NfNet(nn.Module):
    """The torso's body: images `[N, C, H, W]` to activated maps of the last stage.

    >>> config = NfNetConfig(blocks=(1, 1), channels=(8, 16), strides=(1, 2))
    >>> NfNet(1, config)(torch.zeros(2, 1, 16, 16)).shape
    torch.Size([2, 16, 2, 2])
    """

    def __init__(self, in_channels: int, config: NfNetConfig | None = None) -> None:
        super().__init__()
        config = config or NfNetConfig()
        widths = (config.channels[0], *config.channels)
        self.stem = StandardisedConv(in_channels, widths[0], 7, config.initial_stride)
        blocks: list[Block] = []
        std = 1.0
        for (before, after), num, stride in zip(pairwise(widths), config.blocks, config.strides, strict=True):
            for i in range(num):
                first = i == 0
                blocks.append(
                    Block(before if first else after, after, stride if first else 1, 1 / std, config)
                )
                # The first block of a stage has a shortcut of unit variance, its residual adds α² to that.
                std = math.sqrt((1.0 if first else std**2) + config.residual_scale**2)
        self.blocks = nn.ModuleList(blocks)
        self.out_scale = 1 / std

    def forward(self, images: Tensor, keep: Tensor | None = None) -> Tensor:
        """Maps `[N, C', H', W']`; `keep` `[N, blocks]` bool says which blocks stay for which row."""
        maps = self.stem(images)
        for i, block in enumerate(self.blocks):
            maps = block(maps, None if keep is None else keep[:, i])
        return activate(maps) * self.out_scale


class Block(nn.Module):
    """One pre-activation bottleneck with its shortcut."""

    def __init__(self, before: int, after: int, stride: int, beta: float, config: NfNetConfig) -> None:
        super().__init__()
        inner = after // 2
        self.beta = beta
        self.alpha = config.residual_scale
        self.stride = stride
        self.convs = nn.ModuleList(
            [
                StandardisedConv(before, inner, 1),
                StandardisedConv(inner, inner, 3, stride),
                StandardisedConv(inner, inner, 3),
                StandardisedConv(inner, after, 1),
            ]
        )
        is_transition = stride > 1 or before != after
        self.shortcut = StandardisedConv(before, after, 1) if is_transition else None
        self.gate = SqueezeExcite(after) if config.squeeze_excite else None
        self.skip_gain = nn.Parameter(torch.zeros(()))

    def forward(self, maps: Tensor, keep: Tensor | None = None) -> Tensor:
        hidden = activate(maps) * self.beta
        shortcut = maps if self.shortcut is None else self.shortcut(_pool(hidden, self.stride))
        for i, conv in enumerate(self.convs):
            hidden = conv(hidden if i == 0 else activate(hidden))
        if self.gate is not None:
            hidden = hidden * self.gate(hidden)
        if keep is not None:
            hidden = hidden * keep.to(hidden.dtype)[:, None, None, None]
        result: Tensor = shortcut + self.alpha * self.skip_gain * hidden
        return result


class SqueezeExcite(nn.Module):
    """Weighs channels by what is in the image: 2·σ(W₂ relu(W₁ mean))."""

    def __init__(self, channels: int, ratio: float = 0.5) -> None:
        super().__init__()
        hidden = max(1, int(channels * ratio))
        self.squeeze = nn.Linear(channels, hidden)
        self.excite = nn.Linear(hidden, channels)

    def forward(self, maps: Tensor) -> Tensor:
        weights = torch.sigmoid(self.excite(F.relu(self.squeeze(maps.mean((2, 3))))))
        return 2.0 * weights[:, :, None, None]


class StandardisedConv(nn.Module):
    """A convolution whose kernels have mean 0 and Σw² = gain² per output channel.

    Ŵ = gain · (W − mean) / sqrt(max(var · fan_in, 1e-4)): unit variance in, gain² out.
    """

    def __init__(self, in_channels: int, out_channels: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels, kernel, kernel))
        self.gain = nn.Parameter(torch.ones(out_channels, 1, 1, 1))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        self.stride = stride
        self.padding = kernel // 2
        nn.init.normal_(self.weight, std=1 / math.sqrt(in_channels * kernel * kernel))

    def kernels(self) -> Tensor:
        """The standardised weights Ŵ."""
        fan_in = self.weight[0].numel()
        var, mean = torch.var_mean(self.weight, (1, 2, 3), correction=0, keepdim=True)
        return self.gain * (self.weight - mean) * torch.rsqrt((var * fan_in).clamp_min(1e-4))

    def forward(self, maps: Tensor) -> Tensor:
        return F.conv2d(maps, self.kernels(), self.bias, self.stride, self.padding)


def activate(x: Tensor) -> Tensor:
    """GELU scaled to unit second moment about its mean."""
    return F.gelu(x) * GELU_SCALE


def _pool(maps: Tensor, stride: int) -> Tensor:
    """Means over stride×stride; the odd last row or column is averaged over what there is."""
    if stride == 1:
        return maps
    return F.avg_pool2d(maps, stride, stride, ceil_mode=True, count_include_pad=False)
