"""BYOL-Explore's world model: an embedding and, for sequences, a surprise [BYOL-Explore].

    ω_t     = f_θ(o_t)                            encoder, what RECODE may use as embedding
    b_t     = GRU_closed(b_{t−1}, a_{t−1}, ω_t)   what was seen
    b_{t,i} = GRU_open(b_{t,i−1}, a_{t+i−1})      what will be, i = 1 … K, b_{t,0} = b_t
    loss(t, i) = ‖ ĝ(b_{t,i}) − f̂_φ(o_{t+i}) ‖²   both scaled to length 1, so in [0, 4]
    φ ← α φ + (1 − α) θ                           a slow copy of the encoder makes the targets

    L = mean over t of the mean over i of loss(t, i)
    surprise of arriving at o_s = Σ_{t+i=s} loss(t, i)

Predictions never cross an episode's end; at a first observation b starts anew.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softcount.representations.embedding import EmbeddingConfig, FeedForward
from softcount.representations.features import Draws, Metrics
from softcount.torsos import mlp
from softcount.torsos.actions import ActionCoding
from softcount.types import ActionSpec, ObservationSpec, Sequence, is_transition
from softcount.validation import at_least, between, check_fields, each


@dataclass(frozen=True, kw_only=True)
class ByolConfig:
    """The world model around the encoder. Decision 48."""

    horizon: int = 8
    """K, how many steps ahead it predicts."""
    state_size: int = 256
    """Units of both recurrent nets."""
    hidden_sizes: tuple[int, ...] = (512,)
    """Hidden layers of the predictor g."""
    target_step: float = 0.01
    """1 − α, the share by which the target encoder follows each update."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            horizon=at_least(1),
            state_size=at_least(1),
            hidden_sizes=each(at_least(1)),
            target_step=between(0, 1),
        )


class Byol(FeedForward):
    """Embeds observations by a world model's encoder; its surprise needs a sequence.

    >>> from softcount.types import ArraySpec, DiscreteActions
    >>> small = EmbeddingConfig(torso="mlp", dim=8)
    >>> byol = Byol(ArraySpec((6,), "float32"), DiscreteActions(3), embedding=small)
    >>> byol.represent(torch.zeros(2, 6))[0].embedding.shape
    torch.Size([2, 8])
    """

    def __init__(
        self,
        observation_spec: ObservationSpec,
        action_spec: ActionSpec,
        *,
        embedding: EmbeddingConfig | None = None,
        config: ByolConfig | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(observation_spec, embedding)
        self.config = cfg = config or ByolConfig()
        self.target = copy.deepcopy(self.embedder).requires_grad_(False)
        dim = self.embedder.dim
        self.coding = ActionCoding(action_spec)
        self.closed = nn.GRUCell(dim + self.coding.num_inputs, cfg.state_size)
        self.open = nn.GRUCell(self.coding.num_inputs, cfg.state_size)
        self.predictor = mlp(cfg.state_size, cfg.hidden_sizes, dim)
        self.draws = Draws(seed)

    def loss(self, sequence: Sequence[Tensor]) -> tuple[Tensor, Metrics]:
        """Mean over starts of the mean over their horizons."""
        losses, is_valid = self.prediction_losses(sequence)
        num = is_valid.sum(0)  # [T, B], horizons of each start
        per_start = (losses * is_valid).sum(0) / num.clamp_min(1)
        loss = per_start.sum() / (num > 0).sum().clamp_min(1)
        return loss, {"loss": loss.detach()}

    @torch.no_grad()
    def surprise(self, sequence: Sequence[Tensor]) -> Tensor:
        """How wrong all predictions of o_t were together, `[T, B]`; 0 where there were none."""
        losses, is_valid = self.prediction_losses(sequence)
        result = torch.zeros_like(losses[0])
        for i, (loss, valid) in enumerate(zip(losses, is_valid, strict=True), start=1):
            if i < len(result):
                result[i:] += (loss * valid)[:-i]  # start t predicts o_{t+i}
        return result

    def prediction_losses(self, sequence: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """loss(t, i) as `[K, T, B]` and which of them exist; row i − 1, column t."""
        steps = sequence.steps
        embedding = self.embedder.sequence(steps.observation, self.draws.generator())
        with torch.no_grad():
            target = F.normalize(self.target.sequence(steps.observation), dim=-1)
        is_first = steps.is_first
        belief = self._closed_loop(embedding, steps.prev_action, is_first)  # [T, B, S]
        action = self.coding.vectors(steps.action)
        connected = is_transition(steps.is_first, steps.is_last)  # [T-1, B]
        time, batch = is_first.shape
        losses = embedding.new_zeros(self.config.horizon, time, batch)
        is_valid = torch.zeros(losses.shape, dtype=torch.bool, device=losses.device)
        reaches = torch.ones_like(is_first)
        for i in range(1, min(self.config.horizon, time - 1) + 1):
            num = time - i  # starts t = 0 … T−1−i
            reaches = reaches[:num] & connected[i - 1 :]  # o_{t+i−1} → o_{t+i} is a step as well
            inputs = action[i - 1 : i - 1 + num].flatten(0, 1)
            belief = self.open(inputs, belief[:num].flatten(0, 1)).unflatten(0, (num, batch))
            guess = F.normalize(self.predictor(belief), dim=-1)
            losses[i - 1, :num] = (guess - target[i:]).square().sum(-1)
            is_valid[i - 1, :num] = reaches
        return losses, is_valid

    def _closed_loop(self, embedding: Tensor, prev_action: Tensor, is_first: Tensor) -> Tensor:
        """b `[T, B, S]`; at a first row both the state and the action before it are zero."""
        is_continued = (~is_first).to(embedding.dtype)[..., None]
        inputs = torch.cat((embedding, self.coding.vectors(prev_action) * is_continued), -1)
        state = embedding.new_zeros(embedding.shape[1], self.config.state_size)
        states = []
        for x, go in zip(inputs, is_continued, strict=True):
            state = self.closed(x, state * go)
            states.append(state)
        return torch.stack(states)

    @torch.no_grad()
    def after_update(self) -> None:
        """Moves the target encoder: φ ← α φ + (1 − α) θ."""
        for slow, fast in zip(self.target.parameters(), self.embedder.parameters(), strict=True):
            slow.lerp_(fast, self.config.target_step)
