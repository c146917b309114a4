"""f_θ: an observation to a vector, the part that every learned representation shares.

    e = f(o) = [LayerNorm](W · torso(o) + b)

The last layer is linear, because RECODE reads distances (Decision 40). The optional
LayerNorm has no parameters: it only bounds ‖e‖ to √D, which keeps the memory's bandwidth
from running away while f learns. The paper uses the network's output as it is; small
mazes need the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from softcount.representations.features import Representation
from softcount.torsos import TorsoChoice, encode, make_torso
from softcount.types import Features, ObservationSpec
from softcount.validation import at_least, check_fields


@dataclass(frozen=True, kw_only=True)
class EmbeddingConfig:
    """The encoder f."""

    torso: TorsoChoice = "dqn"
    """Name, config or module: see `softcount.torsos`."""
    dim: int = 32
    """D, size of the embedding. Decision 7."""
    layer_norm: bool = False
    """LayerNorm without gain and bias on the output."""

    def __post_init__(self) -> None:
        check_fields(self, dim=at_least(1))


class Embedder(nn.Module):
    """A torso, a linear layer and, if asked for, a bare LayerNorm.

    >>> from softcount.types import ArraySpec
    >>> f = Embedder(ArraySpec((11, 11, 3), "uint8"), EmbeddingConfig(torso="grid", dim=16))
    >>> f(torch.zeros(5, 11, 11, 3, dtype=torch.uint8)).shape
    torch.Size([5, 16])
    """

    def __init__(self, spec: ObservationSpec, config: EmbeddingConfig) -> None:
        super().__init__()
        self.dim = config.dim
        self.torso = make_torso(config.torso, spec)
        self.linear = nn.Linear(self.torso.out_features, config.dim)
        self.norm = nn.LayerNorm(config.dim, elementwise_affine=False) if config.layer_norm else nn.Identity()

    def forward(self, observation: Any) -> Tensor:
        """Embeds observations `[N, ...]`."""
        embedding: Tensor = self.norm(self.linear(self.torso(observation)))
        return embedding

    def sequence(self, observation: Any, generator: torch.Generator | None = None) -> Tensor:
        """Embeds observations `[T, B, ...]`; a generator turns stochastic depth on in training."""
        embedding: Tensor = self.norm(self.linear(encode(self.torso, observation, generator)))
        return embedding


class FeedForward(Representation):
    """What all representations with an encoder of their own do while acting: e = f(o), from one observation.

    How f learns is what makes them different: they add a `loss`. Without one nothing is learned.
    """

    def __init__(self, observation_spec: ObservationSpec, embedding: EmbeddingConfig | None) -> None:
        super().__init__()
        self.embedder = Embedder(observation_spec, embedding or EmbeddingConfig())
        self.dim = self.embedder.dim

    def represent(
        self,
        observation: Any,
        prev_action: Tensor | None = None,
        is_first: Tensor | None = None,
        state: Any = (),
    ) -> tuple[Features[Tensor], Any]:
        """Embeds observations `[B, ...]`; the rest is not needed."""
        return Features(self.embedder(observation)), state

    def embed(self, observation: Any) -> Tensor:
        """Embeds observations `[T, B, ...]`."""
        return self.embedder.sequence(observation)
