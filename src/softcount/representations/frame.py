"""FRAME: the picture itself, made small. Ours; nothing is learned, so nothing drifts.

    e = mean of each cell of a grid laid over o, uint8 / 255

Two observations are near each other where their pictures are alike: a small thing that moves changes one
cell or two. That orders visits well where the agent is a good part of what changes on the screen, and
badly where noise or colours do. Flat vectors are taken as they are, parts of a dict one after the other.
Decision 220.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softcount.representations.features import Representation
from softcount.torsos import first_leaf, scale_of
from softcount.types import Features, ObservationSpec, map_arrays
from softcount.validation import at_least, check_fields


@dataclass(frozen=True, kw_only=True)
class FrameConfig:
    """The grid; pictures that are smaller keep their own size."""

    rows: int = 14
    """Cells from top to bottom."""
    columns: int = 10
    """Cells from left to right."""

    def __post_init__(self) -> None:
        check_fields(self, rows=at_least(1), columns=at_least(1))


class Frame(Representation):
    """Embeds a picture as the means of its cells, cell by cell, channels innermost.

    >>> from softcount.types import ArraySpec
    >>> frame = Frame(ArraySpec((4, 6, 1), "uint8"), FrameConfig(rows=2, columns=2))
    >>> picture = torch.zeros(1, 4, 6, 1, dtype=torch.uint8)
    >>> picture[0, :2, 3:] = 255
    >>> frame.represent(picture)[0].embedding.tolist(), frame.dim
    ([[0.0, 1.0, 0.0, 0.0]], 4)
    """

    def __init__(self, observation_spec: ObservationSpec, config: FrameConfig | None = None) -> None:
        super().__init__()
        config = config or FrameConfig()
        self.parts = nn.ModuleDict()
        if isinstance(observation_spec, Mapping):
            frames = {key: Frame(spec, config) for key, spec in observation_spec.items()}
            self.parts.update(frames)
            self.dim = sum(frame.dim or 0 for frame in frames.values())
            return
        if len(observation_spec.shape) > 3:
            raise ValueError(
                f"FRAME was given observations {observation_spec}; expected pictures and flat vectors"
            )
        shape = observation_spec.shape
        self.is_picture = len(shape) > 1
        self.cells = config.rows, config.columns
        self.dim = math.prod(shape)
        if self.is_picture:
            self.cells = min(config.rows, shape[0]), min(config.columns, shape[1])
            self.dim = math.prod((*self.cells, *shape[2:]))
        self.scale = scale_of(observation_spec)

    def represent(
        self,
        observation: Any,
        prev_action: Tensor | None = None,
        is_first: Tensor | None = None,
        state: Any = (),
    ) -> tuple[Features[Tensor], Any]:
        """Embeds observations `[B, ...]`, those of a dict one after the other; the rest is not needed."""
        if self.parts:
            return Features(torch.cat([self._part(key, observation) for key in self.parts], 1)), state
        values = observation.float() * self.scale
        if self.is_picture:
            values = values if values.ndim == 4 else values[..., None]
            means = F.adaptive_avg_pool2d(values.permute(0, 3, 1, 2), self.cells)
            values = means.permute(0, 2, 3, 1)
        return Features(values.reshape(len(values), -1)), state

    def embed(self, observation: Any) -> Tensor:
        """Embeds observations `[T, B, ...]`."""
        time, batch = first_leaf(observation).shape[:2]
        embedding = self.represent(map_arrays(lambda x: x.flatten(0, 1), observation))[0].embedding
        assert embedding is not None
        return embedding.reshape(time, batch, -1)

    def _part(self, key: str, observation: Any) -> Tensor:
        frame = self.parts[key]
        assert isinstance(frame, Frame)
        embedding = frame.represent(observation[key])[0].embedding
        assert embedding is not None
        return embedding
