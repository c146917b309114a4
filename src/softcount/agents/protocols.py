"""What a role may know of an agent: four protocols, and what a network sees.

    ActingNetwork   in the inference worker: observations to policies, no memory between calls
    Behaviour       in the actor: policies to actions, and all that is decided once per episode
    Agent           in the learner: batches to parameters and, where there is an order, priorities
    Source          between actor and learner (in `types`): a replay, or an on-policy queue

Roles import this module and no agent. `condition` is what an actor may tell its network with
each request, one whole number per environment: MEME's mixture; agents without one send zeros.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from torch import Tensor

from softcount.types import Array, Sequence, State


class Inputs(NamedTuple):
    """What a network sees at each step, leaves `[T, B, ...]`, or `[B, ...]` while acting."""

    observation: Any
    prev_action: Tensor  # a_{t-1}
    reward: Tensor  # r^e_t
    prev_intrinsic: Tensor  # r^i_{t-1}, one step late
    is_first: Tensor  # bool


class ActingNetwork(Protocol):
    """An `nn.Module` with the agent's parameters that answers for one step."""

    def initial_state(self, batch: int) -> tuple[Tensor, ...]: ...
    def act(self, inputs: Inputs, condition: Tensor, state: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Returns the policy `[B, P]`, whatever the behaviour makes of it, and the new recurrent state."""

    def evaluating(self) -> ActingNetwork:
        """Returns the network as an evaluator plays it; it shares the parameters."""


class Behaviour(Protocol):
    """How an actor's environments act; NumPy only."""

    def condition(self) -> Array:
        """Returns what goes with the next request, int64 `[B]`."""

    def start(self, is_first: Array) -> None:
        """Is told which environments begin an episode."""

    def act(self, policy: Array, rng: np.random.Generator) -> tuple[Array, dict[str, Array]]:
        """Returns actions `[B, ...]` and what the rows of the trace are to keep of them."""

    def end(self, is_last: Array, extrinsic: Array) -> None:
        """Is told which environments end an episode, and the extrinsic returns `[B]` of those."""

    def for_evaluation(self, num_envs: int) -> Behaviour:
        """Returns the behaviour of an evaluator, by what is known now."""

    def describe(self) -> str: ...
    def metrics(self, conditions: Array) -> dict[str, float]:
        """Returns what to report; `conditions` are those of the episodes that ended since the last time."""

    def state_dict(self) -> State: ...
    def load_state_dict(self, state: State) -> None: ...


class Agent(Protocol):
    """What learns."""

    def parameters(self) -> State:
        """Returns what acts, as arrays."""

    def update(
        self, sequence: Sequence[Tensor], weights: Array | None = None, intrinsic_targets: Array | None = None
    ) -> tuple[Array | None, dict[str, float]]:
        """Learns from traces `[T+1, B]`; returns priorities `[B]`, or None without an order, and metrics."""

    def state_dict(self) -> State: ...
    def load_state_dict(self, state: State) -> None: ...
