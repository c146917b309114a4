"""AP: embeddings that keep what the agent controls (§3.2 "1-step action prediction", [NGU]).

    L = − log p(a_t | g(f(o_t), f(o_{t+1})))

f sees one observation at a time, g both embeddings; both learn to tell which action was
taken. What no action influences (the colours of a disco, noise on a screen) does not help
to tell, so f has no reason to keep it. Pairs across an episode's end are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from softcount.representations.embedding import EmbeddingConfig, FeedForward
from softcount.representations.features import Draws, Metrics, masked_mean
from softcount.torsos import mlp
from softcount.torsos.actions import ActionCoding
from softcount.types import ActionSpec, ObservationSpec, Sequence, is_transition
from softcount.validation import at_least, check_fields, each


@dataclass(frozen=True, kw_only=True)
class ActionPredictionConfig:
    """The classifier g and what it is trained on; defaults are NGU's sizes."""

    hidden_sizes: tuple[int, ...] = (128,)
    """Hidden layers of g."""
    num_bins: int = 11
    """Classes per dimension of a continuous action."""
    last_transitions: int | None = None
    """Train on only the last n transitions of a sequence (NGU: 5); None takes all."""
    by: Literal["encoder", "cells"] = "encoder"
    """What tells the action: the paper's encoder, or the cells of the picture (ours, `cells`)."""

    def __post_init__(self) -> None:
        check_fields(self, hidden_sizes=each(at_least(1)), num_bins=at_least(2), last_transitions=at_least(1))


class ActionPrediction(FeedForward):
    """Embeds single observations, trained by predicting the action between two.

    >>> from softcount.types import ArraySpec, DiscreteActions
    >>> small = EmbeddingConfig(torso="grid", dim=16)
    >>> ap = ActionPrediction(ArraySpec((11, 11, 3), "uint8"), DiscreteActions(4), embedding=small)
    >>> features, _ = ap.represent(torch.zeros(2, 11, 11, 3, dtype=torch.uint8))
    >>> features.embedding.shape, features.surprise
    (torch.Size([2, 16]), None)
    """

    def __init__(
        self,
        observation_spec: ObservationSpec,
        action_spec: ActionSpec,
        *,
        embedding: EmbeddingConfig | None = None,
        config: ActionPredictionConfig | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(observation_spec, embedding)
        self.config = config or ActionPredictionConfig()
        self.coding = ActionCoding(action_spec, self.config.num_bins)
        self.predictor = mlp(2 * self.embedder.dim, self.config.hidden_sizes, self.coding.num_logits)
        self.draws = Draws(seed)

    def logits(self, before: Any, after: Any) -> Tensor:
        """Of the actions between observations `[B, ...]`, `[B, A]`."""
        pair = torch.cat((self.embedder(before), self.embedder(after)), -1)
        logits: Tensor = self.predictor(pair)
        return logits

    def loss(self, sequence: Sequence[Tensor]) -> tuple[Tensor, Metrics]:
        """Cross-entropy of a_t given o_t and o_{t+1}, averaged over the transitions of the batch."""
        steps = sequence.steps
        embedding = self.embedder.sequence(steps.observation, self.draws.generator())  # [T, B, D]
        logits = self.predictor(torch.cat((embedding[:-1], embedding[1:]), -1))  # [T-1, B, A]
        action = steps.action[:-1]
        mask = is_transition(steps.is_first, steps.is_last)
        if self.config.last_transitions is not None:
            mask[: max(0, len(mask) - self.config.last_transitions)] = False
        loss = masked_mean(self.coding.cross_entropy(logits, action), mask)
        accuracy = masked_mean(self.coding.accuracy(logits, action), mask)
        return loss, {"loss": loss.detach(), "accuracy": accuracy}
