"""Lets a representation see the newest of stacked frames alone.

A stack shows a policy how things move. Where the agent is, the newest frame shows by itself; the older ones
only make the same place look different, depending on how it was reached. Decision 221.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torch import Tensor

from softcount.representations.features import Metrics, Representation
from softcount.types import ArraySpec, Features, ObservationSpec, Sequence


def newest_spec(spec: ObservationSpec, channels: int) -> ArraySpec:
    """Returns the spec of what is left of images when only their last channels are seen."""
    if not isinstance(spec, ArraySpec) or len(spec.shape) != 3 or not 1 <= channels <= spec.shape[2]:
        raise ValueError(
            f"newest_channels is {channels}, but observations are {spec}; "
            "expected one image of height, width and at least as many channels"
        )
    return replace(spec, shape=(*spec.shape[:2], channels))


class Newest(Representation):
    """A representation of the last channels of an image; frames are stacked with the newest last.

    >>> import torch
    >>> from softcount.representations.compose import Function
    >>> newest = Newest(Function(lambda x: x[:, 0, 0], dim=1), channels=1)
    >>> newest.represent(torch.tensor([[[[3.0, 4.0]]]]))[0].embedding.tolist()
    [[4.0]]
    """

    def __init__(self, representation: Representation, channels: int) -> None:
        super().__init__()
        self.inner = representation
        self.channels = channels
        self.dim = representation.dim

    def initial_state(self, batch: int) -> Any:
        return self.inner.initial_state(batch)

    def represent(
        self,
        observation: Any,
        prev_action: Tensor | None = None,
        is_first: Tensor | None = None,
        state: Any = (),
    ) -> tuple[Features[Tensor], Any]:
        """What the inner representation says of the newest frame."""
        return self.inner.represent(self._newest(observation), prev_action, is_first, state)

    def embed(self, observation: Any) -> Tensor:
        return self.inner.embed(self._newest(observation))

    def loss(self, sequence: Sequence[Tensor]) -> tuple[Tensor, Metrics]:
        return self.inner.loss(self._of_newest(sequence))

    def surprise(self, sequence: Sequence[Tensor]) -> Tensor:
        return self.inner.surprise(self._of_newest(sequence))

    @property
    def needs_statistics(self) -> bool:
        return self.inner.needs_statistics

    def learn_statistics(self, observation: Any) -> None:
        self.inner.learn_statistics(self._newest(observation))

    def after_update(self) -> None:
        self.inner.after_update()

    def _newest(self, observation: Any) -> Any:
        return observation[..., -self.channels :]

    def _of_newest(self, sequence: Sequence[Tensor]) -> Sequence[Tensor]:
        steps = sequence.steps
        return sequence._replace(steps=steps._replace(observation=self._newest(steps.observation)))
