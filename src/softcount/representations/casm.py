"""CASM: action prediction with context for partly observed worlds (§3.2, Fig. "CASM").

A causal transformer reads the pairs (a_{t−1}, f(o_t)), one half of each hidden (see
`masking`), and gives z_t, a guess of where the agent is from all it did and some of what
it saw. The action is then told from the difference:

    "residual" (default)   L = − log p(a_t | MLP(f(o_{t+1}) − z_t)),     all t
    "figure"               L = − log p(a_t | MLP(z_{t+1} − z_t)),        where a_t is hidden

The memory receives f(o), never z: hidden states force f to hold what makes *other* steps
predictable, such as which of two equal-looking corridors this is. `mask=False` gives
CASnotM, the paper's ablation, where both halves are always shown. Decision 47.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from softcount.representations.embedding import EmbeddingConfig, FeedForward
from softcount.representations.features import Draws, Metrics, masked_mean
from softcount.representations.gated_transformer import GatedTransformer, GatedTransformerConfig
from softcount.representations.masking import couple, draw_masks, starts
from softcount.torsos import mlp
from softcount.torsos.actions import ActionCoding
from softcount.types import ActionSpec, ObservationSpec, Sequence, is_transition
from softcount.validation import at_least, between, check_fields, each


@dataclass(frozen=True, kw_only=True)
class CasmConfig:
    """What CASM adds to an encoder; defaults are the paper's CASM table."""

    mask: bool = True
    """False shows both halves of every pair: CASnotM."""
    mask_rate: float = 0.8
    """"State Mask Rate": how often the state is the hidden half."""
    num_masks: int = 4
    """"Num Masks Per Trajectory": masks drawn per trace; all share one pass of the encoder."""
    action_dim: int = 32
    """"Action Embedding Size"."""
    transformer: GatedTransformerConfig = field(default_factory=GatedTransformerConfig)
    """Sizes of the transformer."""
    hidden_sizes: tuple[int, ...] = (128,)
    """"Predictor Hidden Sizes"."""
    target: Literal["residual", "figure"] = "residual"
    """From which difference the action is told. Decision 47."""
    num_bins: int = 11
    """Classes per dimension of a continuous action."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            mask_rate=between(0, 1),
            num_masks=at_least(1),
            action_dim=at_least(1),
            hidden_sizes=each(at_least(1)),
            num_bins=at_least(2),
        )
        if self.target == "figure" and not self.mask:
            raise ValueError("target='figure' predicts hidden actions, so it needs mask=True")


class Casm(FeedForward):
    """Embeds single observations, trained by predicting actions from masked histories.

    The transformer is only for learning.

    >>> from softcount.types import ArraySpec, DiscreteActions
    >>> casm = Casm(ArraySpec((5, 5), "uint8"), DiscreteActions(4), embedding=EmbeddingConfig(torso="grid"))
    >>> casm.represent(torch.zeros(2, 5, 5, dtype=torch.uint8))[0].embedding.shape
    torch.Size([2, 32])
    """

    def __init__(
        self,
        observation_spec: ObservationSpec,
        action_spec: ActionSpec,
        *,
        embedding: EmbeddingConfig | None = None,
        config: CasmConfig | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(observation_spec, embedding)
        self.config = cfg = config or CasmConfig()
        dim = self.embedder.dim
        self.coding = ActionCoding(action_spec, cfg.num_bins)
        self.action_embedding = nn.Linear(self.coding.num_inputs, cfg.action_dim, bias=False)
        self.no_state = nn.Parameter(0.1 * torch.randn(dim))
        self.no_action = nn.Parameter(0.1 * torch.randn(cfg.action_dim))
        self.no_action_yet = nn.Parameter(0.1 * torch.randn(cfg.action_dim))
        self.token = nn.Linear(dim + cfg.action_dim, cfg.transformer.width)
        self.transformer = GatedTransformer(cfg.transformer)
        self.guess = nn.Linear(cfg.transformer.width, dim)
        self.predictor = mlp(dim, cfg.hidden_sizes, self.coding.num_logits)
        self.draws = Draws(seed)

    def loss(self, sequence: Sequence[Tensor]) -> tuple[Tensor, Metrics]:
        """Cross-entropy of the actions, averaged over all predicted ones of all masks."""
        steps = sequence.steps
        generator = self.draws.generator()
        embedding = self.embedder.sequence(steps.observation, generator)  # [T, B, D], shared by all masks
        is_first = steps.is_first
        if self.config.mask:
            hides_state = draw_masks(is_first, self.config.num_masks, self.config.mask_rate, generator)
            z = self._guess(embedding, steps.prev_action, is_first, hides_state)  # [N, T, B, D]
        else:
            hides_state = torch.zeros((1, *is_first.shape), dtype=torch.bool, device=is_first.device)
            z = self._guess(embedding, steps.prev_action, is_first, None)
        mask = is_transition(steps.is_first, steps.is_last).expand(len(z), -1, -1)  # [N, T-1, B]
        if self.config.target == "residual":
            logits = self.predictor(embedding[1:] - z[:, :-1])
        else:
            logits = self.predictor(z[:, 1:] - z[:, :-1])
            mask = mask & ~hides_state[:, 1:]  # a_t stands in token t+1; state shown = action hidden
        action = steps.action[:-1].expand(len(z), *steps.action[:-1].shape)
        loss = masked_mean(self.coding.cross_entropy(logits, action), mask)
        accuracy = masked_mean(self.coding.accuracy(logits, action), mask)
        return loss, {"loss": loss.detach(), "accuracy": accuracy}

    def _guess(
        self, embedding: Tensor, prev_action: Tensor, is_first: Tensor, hides_state: Tensor | None
    ) -> Tensor:
        """z `[N, T, B, D]`: what the transformer makes of the pairs; None hides nothing."""
        action = self.action_embedding(self.coding.vectors(prev_action))
        is_start = starts(is_first)
        if hides_state is None:
            shown = torch.where(is_start[..., None], self.no_action_yet, action)
            pairs = torch.cat((embedding, shown), -1)[None]
        else:
            hidden = (self.no_state, self.no_action, self.no_action_yet)
            pairs = couple(embedding, action, hides_state, is_start, hidden)
        num, _, batch = pairs.shape[:3]
        tokens = self.token(pairs).transpose(0, 1).flatten(1, 2)  # [T, N·B, W]
        outputs, _ = self.transformer(tokens, is_first.repeat(1, num))
        z: Tensor = self.guess(outputs).unflatten(1, (num, batch)).transpose(0, 1)
        return z
