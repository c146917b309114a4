"""AP by cells: where in the picture is what the agent controls? Ours; the paper's AP has one encoder.

    logits = b + Σ_cell u_cell(o_t, o_{t+1})        u = 0 where the picture has not changed
    α(o)   = softmax over cells of s(o)             learned to be where ‖u‖² is
    e      = [softmax(sharpness · s(o)), context_weight · (o as a coarse grid)]

Each cell of the picture gives evidence for actions from what it shows before and after. An enemy moves
too, but tells nothing of the action; a little cost of all evidence leaves none to it. A second net looks
at one observation and learns to point where evidence will be: at the agent. What is counted is this
pointing, a map of the picture. It is tied to the picture and sums to one, so its scale cannot run away,
however many actions have the same effect, and no accuracy has to tell when it is good. The coarse grid is
there to tell rooms apart in which the agent stands at the same spot. Decisions 560 to 563.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softcount.representations.features import Metrics, Representation, masked_mean
from softcount.torsos import scale_of
from softcount.torsos.actions import ActionCoding
from softcount.types import ActionSpec, ArraySpec, Features, ObservationSpec, Sequence, is_transition
from softcount.validation import above, at_least, check_fields, each


@dataclass(frozen=True, kw_only=True)
class CellConfig:
    """Cells, nets and what is counted of them; chosen on frames of 42 × 40."""

    kernel: int = 5
    """Pixels a side that a cell reads at first."""
    stride: int = 3
    """Pixels from cell to cell."""
    channels: tuple[int, int] = (16, 16)
    """Of the two convolutions of both nets; the second reads neighbouring cells too."""
    sharpness: float = 2.0
    """How much sharper the counted map is than the one that is learned."""
    evidence_cost: float = 0.02
    """Price of a nat of evidence in a cell."""
    context: tuple[int, int] = (4, 4)
    """Rows and columns of the coarse picture."""
    context_weight: float = 0.5
    """How much it counts; 0 leaves it out."""

    def __post_init__(self) -> None:
        positive = each(at_least(1))
        check_fields(
            self,
            kernel=at_least(1),
            stride=at_least(1),
            channels=positive,
            sharpness=above(0),
            evidence_cost=at_least(0),
            context=positive,
            context_weight=at_least(0),
        )


class CellPrediction(Representation):
    """Embeds single pictures as a map of what the agent controls, trained by predicting actions.

    >>> from softcount.types import DiscreteActions
    >>> ap = CellPrediction(ArraySpec((42, 40, 1), "uint8"), DiscreteActions(18))
    >>> features, _ = ap.represent(torch.zeros(2, 42, 40, 1, dtype=torch.uint8))
    >>> features.embedding.shape, ap.cells  # 14 × 14 cells and a coarse picture of 4 × 4
    (torch.Size([2, 212]), (14, 14))
    """

    def __init__(
        self, observation_spec: ObservationSpec, action_spec: ActionSpec, config: CellConfig | None = None
    ) -> None:
        super().__init__()
        if not isinstance(observation_spec, ArraySpec) or len(observation_spec.shape) not in (2, 3):
            raise ValueError(f"AP by cells was given observations {observation_spec}; expected one picture")
        self.config = config or CellConfig()
        self.coding = ActionCoding(action_spec)
        height, width, channels = (*observation_spec.shape, 1)[:3]
        self.scale = scale_of(observation_spec)
        self.looking = self._net(channels, 1)
        self.evidence = self._net(2 * channels, self.coding.num_logits)
        self.prior = nn.Parameter(torch.zeros(self.coding.num_logits))
        reach = 2 * (self.config.kernel // 2) - self.config.kernel
        self.cells = tuple((side + reach) // self.config.stride + 1 for side in (height, width))
        self.coarse = min(self.config.context[0], height), min(self.config.context[1], width)
        self.dim = math.prod(self.cells)
        if self.config.context_weight:
            self.dim += math.prod(self.coarse) * channels

    def represent(
        self,
        observation: Any,
        prev_action: Tensor | None = None,
        is_first: Tensor | None = None,
        state: Any = (),
    ) -> tuple[Features[Tensor], Any]:
        """Embeds observations `[B, ...]`; the rest is not needed."""
        return Features(self._embedding(self._pictures(observation))), state

    def embed(self, observation: Any) -> Tensor:
        """Embeds observations `[T, B, ...]`."""
        embedding = self._embedding(self._pictures(observation.flatten(0, 1)))
        return embedding.reshape(*observation.shape[:2], -1)

    def attention(self, observation: Any) -> Tensor:
        """Where the agent is thought to be, `[B, rows, columns]`: what is learned, summing to one."""
        return self._looks(self._pictures(observation)).softmax(-1).reshape(-1, *self.cells)

    def logits(self, before: Any, after: Any) -> Tensor:
        """Of the actions between observations `[B, ...]`, `[B, A]`."""
        evidence = self._evidence(self._pictures(before), self._pictures(after))
        return evidence.sum(-1) + self.prior

    def loss(self, sequence: Sequence[Tensor]) -> tuple[Tensor, Metrics]:
        """Cross-entropy of a_t, the price of evidence, and the cross-entropy of looking where it is.

        The last is weighed by ‖u‖²: steps that tell nothing teach nothing. Both frames of a step are asked.
        """
        steps = sequence.steps
        time, batch = steps.observation.shape[:2]
        mask = is_transition(steps.is_first, steps.is_last)
        pictures = self._pictures(steps.observation.flatten(0, 1))
        evidence = self._evidence(pictures[:-batch], pictures[batch:])  # [(T-1)·B, A, cells]
        logits = (evidence.sum(-1) + self.prior).reshape(time - 1, batch, -1)
        action = steps.action[:-1]
        prediction = masked_mean(self.coding.cross_entropy(logits, action), mask)

        norm = (evidence.square().sum(1) + 1e-8).sqrt() * mask.reshape(-1, 1)
        price = masked_mean(norm.sum(-1).reshape(mask.shape), mask)
        weight = norm.detach().square()
        log_looks = self._looks(pictures).log_softmax(-1)
        both = (log_looks[:-batch] + log_looks[batch:]) / 2
        looking = -(weight * both).sum() / weight.sum().clamp_min(1e-8)

        accuracy = masked_mean(self.coding.accuracy(logits, action), mask)
        metrics = {"loss": prediction.detach(), "accuracy": accuracy, "looking": looking.detach()}
        return prediction + self.config.evidence_cost * price + looking, metrics

    def _net(self, inputs: int, outputs: int) -> nn.Sequential:
        """Two convolutions and a layer per cell; cells lie where their first kernel is centred."""
        first, second = self.config.channels
        kernel, stride = self.config.kernel, self.config.stride
        return nn.Sequential(
            nn.Conv2d(inputs, first, kernel, stride, kernel // 2),
            nn.ReLU(),
            nn.Conv2d(first, second, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(second, outputs, 1),
        )

    def _pictures(self, observation: Tensor) -> Tensor:
        """`[N, H, W, C]` or `[N, H, W]` as `[N, C, H, W]`, bytes in [0, 1]."""
        images = observation if observation.ndim == 4 else observation[..., None]
        return images.permute(0, 3, 1, 2).float() * self.scale

    def _looks(self, pictures: Tensor) -> Tensor:
        looks: Tensor = self.looking(pictures).flatten(1)
        return looks

    def _evidence(self, before: Tensor, after: Tensor) -> Tensor:
        """What each cell says for each action, `[N, A, cells]`; changes are seen four times enlarged."""
        change = after - before
        kernel, stride = self.config.kernel, self.config.stride
        is_changed = (change != 0).any(1, keepdim=True).float()
        can_tell = F.max_pool2d(is_changed, kernel, stride, kernel // 2)
        evidence: Tensor = self.evidence(torch.cat((before, 4 * change), 1)) * can_tell
        return evidence.flatten(2)

    def _embedding(self, pictures: Tensor) -> Tensor:
        looks = (self.config.sharpness * self._looks(pictures)).softmax(-1)
        if not self.config.context_weight:
            return looks
        coarse = F.adaptive_avg_pool2d(pictures, self.coarse).flatten(1)
        return torch.cat((looks, self.config.context_weight * coarse), -1)
