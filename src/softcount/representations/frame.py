"""FRAME: the picture itself, made small. Ours; nothing is learned, so nothing drifts.

    e = mean of each cell of a grid laid over o, uint8 / 255

Two observations are near each other where their pictures are alike: a small thing that moves changes one
cell or two. That orders visits well where the agent is a good part of what changes on the screen, and
badly where noise or colours do. Flat vectors are taken as they are. Decision 220.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch.nn.functional as F
from torch import Tensor

from softcount.representations.features import Representation, TensorFeatures
from softcount.torsos import scale_of
from softcount.types import ArraySpec, ObservationSpec


@dataclass(frozen=True, kw_only=True)
class FrameConfig:
    """The grid; pictures that are smaller keep their own size."""

    rows: int = 14
    """Cells from top to bottom."""
    columns: int = 10
    """Cells from left to right."""

    def __post_init__(self) -> None:
        if self.rows < 1 or self.columns < 1:
            raise ValueError(f"FrameConfig is {self.rows} × {self.columns} cells; expected at least 1 × 1")


class Frame(Representation):
    """Embeds a picture as the means of its cells, cell by cell, channels innermost.

    >>> frame = Frame(ArraySpec((4, 6, 1), "uint8"), FrameConfig(rows=2, columns=2))
    >>> picture = torch.zeros(1, 4, 6, 1, dtype=torch.uint8)
    >>> picture[0, :2, 3:] = 255
    >>> frame.represent(picture)[0].embedding.tolist(), frame.dim
    ([[0.0, 1.0, 0.0, 0.0]], 4)
    """

    def __init__(self, observation_spec: ObservationSpec, config: FrameConfig | None = None) -> None:
        super().__init__()
        if not isinstance(observation_spec, ArraySpec) or len(observation_spec.shape) not in (1, 2, 3):
            raise ValueError(
                f"FRAME was given observations {observation_spec}; expected one picture or one flat vector"
            )
        config = config or FrameConfig()
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
    ) -> tuple[TensorFeatures, Any]:
        """Embeds observations `[B, ...]`; the rest is not needed."""
        values = observation.float() * self.scale
        if self.is_picture:
            values = values if values.ndim == 4 else values[..., None]
            means = F.adaptive_avg_pool2d(values.permute(0, 3, 1, 2), self.cells)
            values = means.permute(0, 2, 3, 1)
        return TensorFeatures(values.flatten(1)), state

    def embed(self, observation: Any) -> Tensor:
        """Embeds observations `[T, B, ...]`."""
        time, batch = observation.shape[:2]
        embedding = self.represent(observation.flatten(0, 1))[0].embedding
        assert embedding is not None
        return embedding.reshape(time, batch, -1)
