"""The agent: online and target network, one optimiser, one update.

`update` is section 3 of [MEME] in order: unroll both networks over a batch of packed
traces, make targets and priorities from the online values, weigh the losses over
mixtures, take one AdamW step, and every `target_update_period` updates copy online to
target. What acts is the online network (`parameters()`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from softcount.agents.meme.loss import LossConfig
from softcount.agents.meme.network import MemeNetwork, NetworkConfig
from softcount.types import ActionSpec, Array, ObservationSpec, Sequence, State


@dataclass(frozen=True, kw_only=True)
class MemeConfig:
    """The whole agent; the defaults are the paper's for Atari."""

    network: NetworkConfig = NetworkConfig()
    """Sizes of the network and the number of mixtures."""
    loss: LossConfig = LossConfig()
    """Returns, loss terms and their switches, the ladders β and γ."""
    learning_rate: float = 3e-4
    """Step size of AdamW."""
    weight_decay: float = 0.05
    """Decoupled weight decay, on matrices and filters only, not on biases and gains."""
    adam_betas: tuple[float, float] = (0.9, 0.999)
    """Adam's discounts of the two moments."""
    adam_epsilon: float = 1e-8
    """Adam's ε."""
    max_grad_norm: float | None = 40.0
    """Clip gradients to this global norm; None does not."""
    target_update_period: int = 1500
    """Copy the online to the target network every so many updates."""


class Acted(NamedTuple):
    """What `act_step` returns, for all rows."""

    action: Array  # [B] int64
    log_prob: Array  # [B] float32, under the ε-greedy behaviour
    state: Any  # recurrent state after this step, leaves [B, ...] NumPy


def act_step(
    network: MemeNetwork,
    *,
    observation: Any,
    prev_action: Array,
    reward: Array,
    prev_intrinsic: Array,
    is_first: Array,
    state: Any,
    mixture: Array,
    epsilon: Array | float,
    rng: np.random.Generator,
) -> Acted:
    """Plays one step of a batch of environments; all NumPy, the state belongs to the caller."""
    raise NotImplementedError


class Meme:
    """The learner's half of MEME."""

    def __init__(
        self,
        observation_spec: ObservationSpec,
        action_spec: ActionSpec,
        config: MemeConfig | None = None,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        raise NotImplementedError

    def initial_state(self, batch: int) -> Any:
        """Returns the recurrent state of `batch` environments as arrays: (hidden, cell), or `()`."""
        raise NotImplementedError

    def parameters(self) -> State:
        """Returns what acts, the online network, as arrays that share its memory."""
        raise NotImplementedError

    def act_step(self, **request: Any) -> Acted:
        """Plays one step with the online network; arguments of the function `act_step`."""
        raise NotImplementedError

    def update(
        self, sequence: Sequence, weights: Array | None = None, intrinsic_targets: Array | None = None
    ) -> tuple[Array, dict[str, float]]:
        """Learns from `[T+1, B]` rows (T transitions); returns priorities `[B]` and metrics.

        Rows carry `extras["mixture"]` (who acted) and `extras["prev_intrinsic"]` (r^i_{t−1} as the
        actor saw it). `weights` `[B]` are importance weights. `intrinsic_targets` `[T+1, B]` take the
        place of the stored intrinsic rewards in the targets only, dated by arrival like them.
        """
        raise NotImplementedError

    def state_dict(self) -> State:
        raise NotImplementedError

    def load_state_dict(self, state: State) -> None:
        raise NotImplementedError
