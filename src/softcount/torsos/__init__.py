"""Encoders from raw observations to flat features, shared by agents and representations.

A torso takes observations `[N, ...]` as environments give them (channels last, uint8 is
divided by 255) and returns `[N, out_features]`. Which one is a config, or its name:

    "grid"              small grids, RGB `[H, W, 3]` or palette indices `[H, W]`: colours
                        go through a tiny table of their own, places through a dense layer
    "dqn"               the three convolutions of DQN and NGU
    "nfnet"             the paper's residual torso for Atari   (Table "MEME hyperparameters")
    "nfnet-dm-hard-8"   the same, deeper, for DM-HARD-8
    "mlp"               flat vectors
    "small"             "grid" for images, "mlp" for vectors

Dict observations get one torso per key and the features side by side. Any module of
your own with an `out_features` stands where a name stands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import torch
from torch import Tensor, nn

from softcount.torsos.nfnet import NfNet, NfNetConfig
from softcount.torsos.palette import coloured, look_up
from softcount.types import ArraySpec, ObservationSpec
from softcount.validation import above, at_least, check_fields, each

SMALLEST_FRAME = 36
"""Pixels a side from which DQN's three convolutions fit."""


@dataclass(frozen=True, kw_only=True)
class GridConfig:
    """A colour table of a few channels, then dense layers over all cells at once."""

    colour_hidden: int = 16
    """Width of the hidden layer between RGB and the channels; palette indices need none."""
    channels: int = 4
    """Numbers a colour is turned into. No ReLU after them: with few channels it dies. Decision 41."""
    hidden_sizes: tuple[int, ...] = (128,)
    """Dense layers, ReLU after each."""
    palette_size: int = 256
    """Rows of the table that `[H, W]` integer observations index."""
    palette_scale: float = 0.1
    """Spread of that table before learning. From a small one, what matters stands out soon and the
    colours that mean nothing stay together. Decision 140."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            colour_hidden=at_least(1),
            channels=at_least(1),
            hidden_sizes=each(at_least(1)),
            palette_size=at_least(1),
            palette_scale=above(0),
        )


@dataclass(frozen=True, kw_only=True)
class DqnConfig:
    """Convolutions of DQN; NGU's embedding net has the same."""

    channels: tuple[int, ...] = (32, 64, 64)
    """Output channels per layer."""
    kernels: tuple[int, ...] = (8, 4, 3)
    """Kernel sizes per layer."""
    strides: tuple[int, ...] = (4, 2, 1)
    """Strides per layer."""
    hidden_sizes: tuple[int, ...] = ()
    """Dense layers on the flattened maps, ReLU after each; DQN's agent has (512,)."""
    leaky: bool = False
    """Leaky ReLU (slope 0.2) in place of ReLU, as in RND."""

    def __post_init__(self) -> None:
        positive = each(at_least(1))
        check_fields(self, channels=positive, kernels=positive, strides=positive, hidden_sizes=positive)
        if not len(self.channels) == len(self.kernels) == len(self.strides):
            raise ValueError(
                f"channels {self.channels}, kernels {self.kernels}, strides {self.strides}: lengths differ"
            )


@dataclass(frozen=True, kw_only=True)
class MlpConfig:
    """Dense layers for flat vectors."""

    hidden_sizes: tuple[int, ...] = (128, 128)
    """Dense layers, ReLU after each."""

    def __post_init__(self) -> None:
        check_fields(self, hidden_sizes=each(at_least(1)))


@dataclass(frozen=True, kw_only=True)
class SmallConfig:
    """For small worlds of either kind: a grid where an image is seen, dense layers where a vector is."""

    images: GridConfig = GridConfig()
    """What reads images."""
    vectors: MlpConfig = MlpConfig(hidden_sizes=(64,))
    """What reads vectors."""
    frames: DqnConfig | None = None
    """What reads images from 36 pixels a side on; None leaves them to `images`."""

    def of(self, spec: ArraySpec) -> GridConfig | MlpConfig | DqnConfig:
        """Which of them reads observations of this spec."""
        if len(spec.shape) < 2:
            return self.vectors
        is_frame = min(spec.shape[:2]) >= SMALLEST_FRAME
        return self.frames if self.frames is not None and is_frame else self.images


TorsoConfig: TypeAlias = GridConfig | DqnConfig | NfNetConfig | MlpConfig | SmallConfig
TorsoChoice: TypeAlias = str | TorsoConfig | nn.Module | Mapping[str, Any]
"""A name, a config, a module of one's own, or one of these per key of a dict observation."""

NFNET_ATARI = NfNetConfig()
NFNET_DM_HARD_8 = NfNetConfig(initial_stride=2, blocks=(2, 4, 12, 6))

TORSOS: dict[str, TorsoConfig] = {
    "grid": GridConfig(),
    "dqn": DqnConfig(),
    "nfnet": NFNET_ATARI,
    "nfnet-dm-hard-8": NFNET_DM_HARD_8,
    "mlp": MlpConfig(),
    "small": SmallConfig(),
}


def make_torso(torso: TorsoChoice, spec: ObservationSpec) -> Torso:
    """Builds a torso for observations of this spec.

    With one name for a dict observation, images get it and flat vectors an "mlp".

    >>> make_torso("nfnet", ArraySpec((210, 160, 1), "uint8")).out_features
    2240
    >>> spec = {"frame": ArraySpec((84, 84), "uint8"), "sensors": ArraySpec((5,), "float32")}
    >>> make_torso("dqn", spec).out_features
    3264
    """
    if isinstance(torso, nn.Module):
        return torso if isinstance(torso, Torso) else OwnTorso(torso, spec)
    if isinstance(spec, Mapping):
        return DictTorso(torso, spec)
    if isinstance(torso, Mapping):
        raise ValueError(f"one torso per key was given, {sorted(torso)}, but the observation is one array")
    if isinstance(torso, str):
        if torso not in TORSOS:
            raise ValueError(f"torso is {torso!r}; expected one of {', '.join(TORSOS)}, a config or a module")
        torso = TORSOS[torso]
    if isinstance(torso, SmallConfig):
        torso = torso.of(spec)
    if isinstance(torso, MlpConfig):
        return MlpTorso(spec, torso)
    if isinstance(torso, GridConfig):
        return GridTorso(spec, torso)
    return ImageTorso(spec, torso)


def encode(torso: Torso, observation: Any, generator: torch.Generator | None = None) -> Tensor:
    """Features `[T, B, F]` of observations `[T, B, ...]`.

    In training, with a generator, a torso with stochastic depth drops the same blocks in
    all steps of a trace: one draw per trace, as MEME does.
    """
    leaf = first_leaf(observation)
    time, batch = leaf.shape[:2]
    keep = None
    if torso.training and generator is not None and torso.drop_rates:
        rates = torch.tensor(torso.drop_rates)
        draws = torch.rand(batch, len(torso.drop_rates), generator=generator)
        keep = (draws >= rates).to(leaf.device).repeat(time, 1)  # rows are time-major: [T·B, blocks]
    features: Tensor = torso(_map(lambda x: x.flatten(0, 1), observation), keep)
    return features.reshape(time, batch, -1)


def first_leaf(observation: Any) -> Tensor:
    """Any one tensor of an observation: all share the leading axes."""
    while isinstance(observation, Mapping):
        observation = next(iter(observation.values()))
    return cast(Tensor, observation)


class Torso(nn.Module):
    """What every torso has: `out_features`, and the drop rates of its blocks, if it has any."""

    out_features: int
    drop_rates: tuple[float, ...] = ()

    def forward(self, observation: Any, keep: Tensor | None = None) -> Tensor:
        """Returns features `[N, out_features]`; `keep` `[N, blocks]` says which blocks stay."""
        raise NotImplementedError


class GridTorso(Torso):
    """Reads where which colour is: a table per colour, then dense layers over all cells.

    A convolution spends most of its work on finding out what one dense layer over all
    `H·W·channels` numbers knows at once, the place. The table is evaluated once per
    distinct colour of the batch and looked up, the same as evaluating it at every cell.
    """

    def __init__(self, spec: ArraySpec, config: GridConfig | None = None) -> None:
        super().__init__()
        config = config or GridConfig()
        if len(spec.shape) not in (2, 3):
            raise ValueError(f"the grid torso was given shape {spec.shape}; expected (H, W) or (H, W, C)")
        self.is_palette = len(spec.shape) == 2
        self.is_rgb = spec.dtype == "uint8" and spec.shape[2:] == (3,)
        self.scale = scale_of(spec)
        if self.is_palette:
            table = torch.randn(config.palette_size, config.channels)
            self.palette = nn.Parameter(config.palette_scale * table)
        else:
            hidden = config.colour_hidden
            self.colours = nn.Sequential(
                nn.Linear(spec.shape[2], hidden), nn.ReLU(), nn.Linear(hidden, config.channels)
            )
        cells = spec.shape[0] * spec.shape[1]
        self.dense = dense(cells * config.channels, config.hidden_sizes)
        self.out_features = (cells * config.channels, *config.hidden_sizes)[-1]

    def forward(self, observation: Any, keep: Tensor | None = None) -> Tensor:
        if self.is_palette:
            return self._of_colours(observation.flatten(1), self.palette)
        if self.is_rgb:
            red, green, blue = observation.flatten(0, 2).int().unbind(-1)
            codes, index = torch.unique(red << 16 | green << 8 | blue, return_inverse=True)
            distinct = torch.stack((codes >> 16, codes >> 8 & 255, codes & 255), -1)
            return self._of_colours(
                index.reshape(len(observation), -1), self.colours(distinct.float() * self.scale)
            )
        features: Tensor = self.dense(self.colours(observation.float() * self.scale).flatten(1))
        return features

    def _of_colours(self, index: Tensor, table: Tensor) -> Tensor:
        """Features of cells whose colours are rows of a table; `index` is `[N, cells]`."""
        if len(self.dense) == 0:
            return look_up(index, table)
        first, *rest = self.dense
        features = coloured(index, table, cast(nn.Linear, first))
        for module in rest:
            features = module(features)
        return features


class ImageTorso(Torso):
    """Convolutional bodies, DQN's or the NFNet, on `[N, H, W, C]` or `[N, H, W]` images."""

    def __init__(self, spec: ArraySpec, config: DqnConfig | NfNetConfig) -> None:
        super().__init__()
        if len(spec.shape) not in (2, 3):
            raise ValueError(f"an image torso was given shape {spec.shape}; expected (H, W) or (H, W, C)")
        height, width, channels = (*spec.shape, 1)[:3]
        self.scale = scale_of(spec)
        if isinstance(config, NfNetConfig):
            self.body: nn.Module = NfNet(channels, config)
            self.drop_rates = config.drop_rates
            size = config.out_shape(height, width)
            self.dense = nn.Sequential()
            hidden: tuple[int, ...] = ()
        else:
            self.body = _convolutions(channels, config)
            size = _out_shape(height, width, config)
            hidden = config.hidden_sizes
            self.dense = dense(math.prod(size), hidden)
        self.out_features = (math.prod(size), *hidden)[-1]

    def forward(self, observation: Any, keep: Tensor | None = None) -> Tensor:
        images = observation if observation.ndim == 4 else observation[..., None]
        images = images.permute(0, 3, 1, 2).float() * self.scale
        maps = self.body(images) if keep is None else self.body(images, keep)
        features: Tensor = self.dense(maps.flatten(1))
        return features


class MlpTorso(Torso):
    """Dense layers on the flattened observation."""

    def __init__(self, spec: ArraySpec, config: MlpConfig | None = None) -> None:
        super().__init__()
        sizes = (config or MlpConfig()).hidden_sizes
        self.scale = scale_of(spec)
        inputs = math.prod(spec.shape)
        self.dense = dense(inputs, sizes)
        self.out_features = (inputs, *sizes)[-1]

    def forward(self, observation: Any, keep: Tensor | None = None) -> Tensor:
        features: Tensor = self.dense(observation.flatten(1).float() * self.scale)
        return features


class DictTorso(Torso):
    """One torso per key, features side by side in the order of the sorted keys."""

    def __init__(self, torso: Any, specs: Mapping[str, ArraySpec]) -> None:
        super().__init__()
        if isinstance(torso, Mapping) and set(torso) != set(specs):
            raise ValueError(f"torsos are given for {sorted(torso)}; the observation has {sorted(specs)}")
        parts: dict[str, Torso] = {}
        for key in sorted(specs):
            named = "mlp" if len(specs[key].shape) < 2 else torso
            parts[key] = make_torso(torso[key] if isinstance(torso, Mapping) else named, specs[key])
        self.parts = nn.ModuleDict(parts)
        self.drop_rates = tuple(rate for part in parts.values() for rate in part.drop_rates)
        self.out_features = sum(part.out_features for part in parts.values())

    def forward(self, observation: Any, keep: Tensor | None = None) -> Tensor:
        features = []
        start = 0
        for key, part in self.parts.items():
            end = start + len(cast(Torso, part).drop_rates)
            features.append(
                part(observation[key], None if keep is None or end == start else keep[:, start:end])
            )
            start = end
        return torch.cat(features, -1)


class OwnTorso(Torso):
    """A module of the user's, given raw observations `[N, ...]`."""

    def __init__(self, module: nn.Module, spec: ObservationSpec) -> None:
        super().__init__()
        self.module = module
        size = getattr(module, "out_features", None)
        if not isinstance(size, int):
            with torch.no_grad():
                one = _map(lambda s: torch.zeros((1, *s.shape), dtype=getattr(torch, s.dtype)), spec)
                size = int(module(one).shape[-1])
        self.out_features = size

    def forward(self, observation: Any, keep: Tensor | None = None) -> Tensor:
        features: Tensor = self.module(observation)
        return features


def dense(inputs: int, sizes: tuple[int, ...]) -> nn.Sequential:
    """Linear layers with a ReLU after each."""
    layers: list[nn.Module] = []
    for size in sizes:
        layers += [nn.Linear(inputs, size), nn.ReLU()]
        inputs = size
    return nn.Sequential(*layers)


def mlp(inputs: int, hidden_sizes: tuple[int, ...], outputs: int) -> nn.Sequential:
    """Linear layers with ReLUs between them and a linear end."""
    return nn.Sequential(*dense(inputs, hidden_sizes), nn.Linear((inputs, *hidden_sizes)[-1], outputs))


def _convolutions(channels: int, config: DqnConfig) -> nn.Sequential:
    layers: list[nn.Module] = []
    for out, kernel, stride in zip(config.channels, config.kernels, config.strides, strict=True):
        layers += [nn.Conv2d(channels, out, kernel, stride), nn.LeakyReLU(0.2) if config.leaky else nn.ReLU()]
        channels = out
    return nn.Sequential(*layers)


def _out_shape(height: int, width: int, config: DqnConfig) -> tuple[int, int, int]:
    start = (height, width)
    for kernel, stride in zip(config.kernels, config.strides, strict=True):
        height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
        if height < 1 or width < 1:
            raise ValueError(
                f"images of {start} are too small for kernels {config.kernels}; use the grid torso"
            )
    return config.channels[-1], height, width


def scale_of(spec: ArraySpec) -> float:
    """What observations are multiplied with: bytes become numbers in [0, 1]."""
    return 1 / 255 if spec.dtype == "uint8" else 1.0


def _map(function: Any, tree: Any) -> Any:
    return (
        {key: _map(function, x) for key, x in tree.items()} if isinstance(tree, Mapping) else function(tree)
    )
