"""Random network distillation: how badly a net predicts a fixed random one [RND].

    surprise(x) = mean_k (predictor(x) − target(x))²_k

The target never learns, the predictor learns on what was seen, so the error stays large
where little was seen. x is the observation, per pixel brought to mean 0 and deviation 1 by
running statistics and clipped to ±5; or, with `on=…`, the embedding of another
representation that learns beside it (the paper's RNDonAP).

Until the predictor has learned once there is no surprise to speak of: pixels are not
normalised yet and the error of an untrained net would rule the scale of rewards for good.
`represent` then gives no features at all. The statistics start with everything that was
seen before the first update (`learn_statistics`) and go on with each batch.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import torch
from torch import Tensor, nn

from softcount.representations.features import Draws, Metrics, Representation, masked_mean
from softcount.torsos import DqnConfig, TorsoChoice, first_leaf, make_torso, mlp
from softcount.types import ArraySpec, Features, ObservationSpec, Sequence, map_arrays
from softcount.validation import above, at_least, between, check_fields, each


@dataclass(frozen=True, kw_only=True)
class RndConfig:
    """Distillation from pixels; defaults are RND's."""

    torso: TorsoChoice = field(default_factory=lambda: DqnConfig(leaky=True))
    """Encoder of target and predictor, each with its own."""
    outputs: int = 512
    """Numbers to predict (NGU: 128)."""
    hidden_sizes: tuple[int, ...] = (512, 512)
    """Layers that the predictor has and the target has not."""
    clip: float = 5.0
    """Largest normalised pixel."""
    share: float = 1.0
    """Share of the rows that the predictor learns from; below 1 slows it down."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            outputs=at_least(1),
            hidden_sizes=each(at_least(1)),
            clip=above(0),
            share=between(0, 1, "(]"),
        )


@dataclass(frozen=True, kw_only=True)
class EmbeddingRndConfig:
    """Distillation from another representation's embedding. Decision 49: sizes are not given."""

    target_hidden_sizes: tuple[int, ...] = (128, 128)
    """Random MLP."""
    hidden_sizes: tuple[int, ...] = (256, 256)
    """Trained MLP."""
    outputs: int = 64
    """Numbers to predict."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            target_hidden_sizes=each(at_least(1)),
            hidden_sizes=each(at_least(1)),
            outputs=at_least(1),
        )


NGU_RND = RndConfig(torso=DqnConfig(), outputs=128, hidden_sizes=())
"""NGU's own sizes: target and predictor are alike, a convolutional stack and one layer of 128."""

NUMBERS_AT_ONCE = 2**22
"""How many numbers of a batch statistics take in as float64 in one go."""


class RandomDistillation(Representation):
    """The surprise of observations, by a predictor and its random target.

    >>> rnd = RandomDistillation(ArraySpec((6,), "float32"), config=RndConfig(torso="mlp"))
    >>> rnd.represent(torch.zeros(3, 6))[0].surprise is None  # it has not learned yet
    True
    >>> rnd.after_update()
    >>> rnd.represent(torch.zeros(3, 6))[0].surprise.shape, rnd.dim
    (torch.Size([3]), None)
    """

    never_decayed = ("predictor",)  # [RND] has no weight decay, whatever the embedding beside it has
    is_learned: Tensor

    def __init__(
        self,
        observation_spec: ObservationSpec | None = None,
        *,
        on: Representation | None = None,
        config: RndConfig | EmbeddingRndConfig | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        self.on = on
        self.dim = None if on is None else on.dim
        self.draws = Draws(seed)
        self.register_buffer("is_learned", torch.zeros((), dtype=torch.bool))
        self.share = 1.0
        if on is not None:
            self._build_on_embedding(config)
        elif observation_spec is not None:
            self._build_on_pixels(observation_spec, config)
        else:
            raise ValueError("RandomDistillation needs an observation_spec, or on= a representation")
        self.target.requires_grad_(False)

    def _build_on_embedding(self, config: Any) -> None:
        config = config or EmbeddingRndConfig()
        if self.dim is None or not isinstance(config, EmbeddingRndConfig):
            raise ValueError(
                f"on={type(self.on).__name__} needs an embedding and an EmbeddingRndConfig; got {config}"
            )
        self.target = mlp(self.dim, config.target_hidden_sizes, config.outputs)
        self.predictor = mlp(self.dim, config.hidden_sizes, config.outputs)

    def _build_on_pixels(self, spec: ObservationSpec, config: Any) -> None:
        config = config or RndConfig()
        if not isinstance(config, RndConfig):
            raise ValueError(f"pixels need an RndConfig; got {config}")
        self.share = config.share
        self.normaliser = Normaliser(spec, config.clip)
        torsos = [make_torso(copy.deepcopy(config.torso), self.normaliser.out_spec) for _ in range(2)]
        features = torsos[0].out_features
        self.target = nn.Sequential(torsos[0], nn.Linear(features, config.outputs))
        self.predictor = nn.Sequential(torsos[1], *mlp(features, config.hidden_sizes, config.outputs))
        self.apply(_orthogonal)

    def initial_state(self, batch: int) -> Any:
        return () if self.on is None else self.on.initial_state(batch)

    def represent(
        self,
        observation: Any,
        prev_action: Tensor | None = None,
        is_first: Tensor | None = None,
        state: Any = (),
    ) -> tuple[Features[Tensor], Any]:
        """The surprise of each of the observations `[B, ...]`, and the embedding it is made on, if any.

        Nothing of both before the first update.
        """
        if self.on is None:
            if not self.is_learned:
                return Features(), state
            return Features(surprise=self._error(self.normaliser(observation))), state
        features, state = self.on.represent(observation, prev_action, is_first, state)
        if not self.is_learned:
            return Features(), state
        return Features(features.embedding, self._error(features.embedding)), state

    def embed(self, observation: Any) -> Tensor:
        return super().embed(observation) if self.on is None else self.on.embed(observation)

    def loss(self, sequence: Sequence[Tensor]) -> tuple[Tensor, Metrics]:
        """The mean error over all rows, or a random share of them; and the inner representation's loss."""
        observation = sequence.steps.observation
        shape = first_leaf(observation).shape[:2]
        if self.on is None:
            rows = map_arrays(lambda x: x.flatten(0, 1), observation)
            if self.training and (self.is_learned or self.needs_statistics):
                self.normaliser.learn(rows)  # the first batch is part of what the statistics began with
            errors = self._error(self.normaliser(rows)).reshape(shape)
            is_used = torch.rand(shape, generator=self.draws.generator()) < self.share
            loss = masked_mean(errors, is_used.to(errors.device))
            return loss, {"loss": loss.detach()}
        inner, metrics = self.on.loss(sequence)
        with torch.no_grad():
            embedding = self.on.embed(observation)
        error = self._error(embedding).mean()
        return inner + error, {**metrics, "distillation_loss": error.detach()}

    @property
    def needs_statistics(self) -> bool:
        """Whether `learn_statistics` should be shown all there is, before the first update."""
        return self.on is None and not self.normaliser.has_learned

    def learn_statistics(self, observation: Any) -> None:
        """Takes observations `[N, ...]` into the statistics per pixel."""
        self.normaliser.learn(observation)

    def after_update(self) -> None:
        self.is_learned.fill_(True)
        if self.on is not None:
            self.on.after_update()

    def _error(self, x: Any) -> Tensor:
        difference: Tensor = self.predictor(x) - self.target(x)
        return difference.square().mean(-1)


def _with_channels(spec: ArraySpec) -> ArraySpec:
    """What the statistics make of an observation; a flat image is one channel."""
    return ArraySpec((*spec.shape, 1) if len(spec.shape) == 2 else spec.shape, "float32")


class Normaliser(nn.Module):
    """clip((x − mean) / std, ±c) with running statistics per pixel, exact from the first batch on."""

    count: Tensor
    mean: Tensor
    square: Tensor

    def __init__(self, spec: ObservationSpec, clip: float) -> None:
        super().__init__()
        self.clip = clip
        self.parts = nn.ModuleDict()
        self.out_spec: ObservationSpec
        if isinstance(spec, Mapping):
            self.parts.update({key: Normaliser(part, clip) for key, part in spec.items()})
            self.out_spec = {key: _with_channels(part) for key, part in spec.items()}
            return
        self.out_spec = _with_channels(spec)
        shape = self.out_spec.shape
        self.register_buffer("count", torch.zeros((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(shape, dtype=torch.float64))
        self.register_buffer("square", torch.zeros(shape, dtype=torch.float64))  # Σ (x − mean)²

    @property
    def has_learned(self) -> bool:
        """Whether there are statistics yet."""
        if self.parts:
            return all(cast(Normaliser, part).has_learned for part in self.parts.values())
        return bool(self.count > 0)

    def learn(self, observation: Any) -> None:
        """Adds observations `[N, ...]` to the statistics, some at a time (Chan's parallel form)."""
        if self.parts:
            for key, part in self.parts.items():
                cast(Normaliser, part).learn(observation[key])
            return
        rows = observation.detach().reshape(len(observation), *self.mean.shape)
        for some in rows.split(max(1, NUMBERS_AT_ONCE // max(1, self.mean.numel()))):
            self._add(some.double())

    def _add(self, x: Tensor) -> None:
        num, mean = len(x), x.mean(0)
        total = self.count + num
        self.square += (x - mean).square().sum(0) + (mean - self.mean).square() * self.count * num / total
        self.mean += (mean - self.mean) * num / total
        self.count.copy_(total)

    def forward(self, observation: Any) -> Any:
        if self.parts:
            return {key: part(observation[key]) for key, part in self.parts.items()}
        x = observation.reshape(len(observation), *self.mean.shape).float()
        std = (self.square / self.count.clamp_min(1)).sqrt()
        scale = torch.where(std > 1e-8, 1 / std, torch.ones_like(std)).float()
        return ((x - self.mean.float()) * scale).clamp(-self.clip, self.clip)


def _orthogonal(module: nn.Module) -> None:
    """RND's initial weights: orthogonal with gain √2, biases 0."""
    if isinstance(module, nn.Linear | nn.Conv2d):
        nn.init.orthogonal_(module.weight, 2**0.5)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
