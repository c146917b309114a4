"""Representations made of others, or of no learning at all.

Both(embedding=…, surprise=…)   one for each feature, trained together (NGU needs both)
Frozen(representation)          embeds as it is and never learns (pre-trained embeddings)
Random(…)                       an encoder with random weights, the baseline
Function(function, dim)         a plain function of your own, NumPy in and out
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softcount.representations.embedding import EmbeddingConfig, FeedForward
from softcount.representations.features import Metrics, Representation
from softcount.torsos import first_leaf
from softcount.types import Array, Features, ObservationSpec, Sequence, map_arrays


class Both(Representation):
    """Takes the embedding from one representation and the surprise from another.

    >>> both = Both(embedding=Function(lambda x: x, dim=2), surprise=Function(lambda x: x[:, 0]))
    >>> features, _ = both.represent(torch.tensor([[3.0, 4.0]]))
    >>> features.embedding.tolist(), features.surprise.tolist()
    ([[3.0, 4.0]], [3.0])
    """

    def __init__(self, *, embedding: Representation, surprise: Representation) -> None:
        super().__init__()
        self.embedding = embedding
        self.surprising = surprise
        self.dim = embedding.dim
        if self.dim is None:
            raise ValueError(f"{type(embedding).__name__} gives no embedding")

    @property
    def parts(self) -> tuple[Representation, Representation]:
        return self.embedding, self.surprising

    def initial_state(self, batch: int) -> Any:
        return tuple(part.initial_state(batch) for part in self.parts)

    def represent(
        self,
        observation: Any,
        prev_action: Tensor | None = None,
        is_first: Tensor | None = None,
        state: Any = ((), ()),
    ) -> tuple[Features[Tensor], Any]:
        """Asks both and keeps one feature of each; none while the surprise cannot be told yet."""
        one, state_one = self.parts[0].represent(observation, prev_action, is_first, state[0])
        two, state_two = self.parts[1].represent(observation, prev_action, is_first, state[1])
        if two.surprise is None:
            return Features(), (state_one, state_two)
        return Features(one.embedding, two.surprise), (state_one, state_two)

    def embed(self, observation: Any) -> Tensor:
        return self.parts[0].embed(observation)

    def loss(self, sequence: Sequence[Tensor]) -> tuple[Tensor, Metrics]:
        """Adds the two losses; they share no parameters, only the clipping of the whole gradient."""
        one, metrics_one = self.parts[0].loss(sequence)
        two, metrics_two = self.parts[1].loss(sequence)
        metrics = {f"embedding_{name}": value for name, value in metrics_one.items()}
        return one + two, {**metrics, **{f"surprise_{name}": value for name, value in metrics_two.items()}}

    def surprise(self, sequence: Sequence[Tensor]) -> Tensor:
        """The surprise of a sequence, where the second representation needs one."""
        return self.parts[1].surprise(sequence)

    @property
    def needs_statistics(self) -> bool:
        return any(part.needs_statistics for part in self.parts)

    def learn_statistics(self, observation: Any) -> None:
        for part in self.parts:
            part.learn_statistics(observation)

    def after_update(self) -> None:
        for part in self.parts:
            part.after_update()


class Frozen(Representation):
    """A representation that no longer learns."""

    def __init__(self, representation: Representation) -> None:
        super().__init__()
        self.inner: Representation = representation.requires_grad_(False)
        self.dim = representation.dim
        self.train(False)

    def train(self, mode: bool = True) -> Frozen:
        """Stays in evaluation mode."""
        super().train(False)
        return self

    def initial_state(self, batch: int) -> Any:
        return self.inner.initial_state(batch)

    def represent(
        self,
        observation: Any,
        prev_action: Tensor | None = None,
        is_first: Tensor | None = None,
        state: Any = (),
    ) -> tuple[Features[Tensor], Any]:
        """What the inner representation says."""
        return self.inner.represent(observation, prev_action, is_first, state)

    def embed(self, observation: Any) -> Tensor:
        return self.inner.embed(observation)

    def surprise(self, sequence: Sequence[Tensor]) -> Tensor:
        return self.inner.surprise(sequence)


class Function(Representation):
    """A function of the user's own: observations `[B, ...]` to embeddings `[B, dim]`, or to surprises `[B]`.

    It gets NumPy arrays (or a dict of them) and returns one; `dim=None` says it returns surprises.
    """

    def __init__(self, function: Callable[[Any], Array], dim: int | None = None) -> None:
        super().__init__()
        self.function = function
        self.dim = dim

    def represent(
        self,
        observation: Any,
        prev_action: Tensor | None = None,
        is_first: Tensor | None = None,
        state: Any = (),
    ) -> tuple[Features[Tensor], Any]:
        """Calls the function."""
        leaf = first_leaf(observation)
        result = np.asarray(self.function(map_arrays(lambda x: x.cpu().numpy(), observation)), np.float32)
        expected = (len(leaf),) if self.dim is None else (len(leaf), self.dim)
        if result.shape != expected:
            raise ValueError(f"the function returned shape {result.shape}; expected {expected}")
        values = torch.tensor(result, device=leaf.device)
        return (Features(surprise=values) if self.dim is None else Features(values)), state

    def embed(self, observation: Any) -> Tensor:
        """Embeds `[T, B, ...]`, calling the function on all rows at once."""
        time, batch = first_leaf(observation).shape[:2]
        rows = map_arrays(lambda x: x.flatten(0, 1), observation)
        embedding = self.represent(rows)[0].embedding
        return super().embed(observation) if embedding is None else embedding.reshape(time, batch, -1)


class Random(FeedForward):
    """An encoder with random weights: the embedding every learned one must beat.

    >>> from softcount.types import ArraySpec
    >>> Random(ArraySpec((4,), "float32"), embedding=EmbeddingConfig(torso="mlp", dim=3)).dim
    3
    """

    def __init__(
        self, observation_spec: ObservationSpec, *, embedding: EmbeddingConfig | None = None
    ) -> None:
        super().__init__(observation_spec, embedding)
        self.embedder.requires_grad_(False)
