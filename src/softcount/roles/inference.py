"""The inference worker: one batched forward pass for policy and features.

Keeps parameters and nothing else: recurrent states come with the request and leave with
the reply, so that a worker can be restarted or multiplied at any time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from softcount.agents.meme.agent import MemeConfig, preferences
from softcount.agents.meme.network import Inputs, MemeNetwork
from softcount.roles.actor import Reply, Request
from softcount.tensors import load_module, module_state, to_arrays, to_tensors
from softcount.types import Array, Features, State, map_arrays


class Parameters(NamedTuple):
    """What a learner publishes: the policy that acts and the representation that embeds."""

    policy: State
    representation: State | None


class Inference:
    """Answers requests of actors with the parameters it was last given."""

    def __init__(self, network: MemeNetwork, representation: nn.Module | None, config: MemeConfig) -> None:
        self.config = config
        self.network = network.eval()
        self.representation = representation.eval() if representation is not None else None

    def load(self, parameters: Parameters) -> None:
        load_module(self.network, parameters.policy)
        if self.representation is not None and parameters.representation is not None:
            load_module(self.representation, parameters.representation)

    def initial_state(self, num_envs: int) -> tuple[Array, ...]:
        """Returns the agent's recurrent state at an episode start, for an actor to keep."""
        return tuple(to_arrays(self.network.initial_state(num_envs), copy=True))

    def initial_feature_state(self, num_envs: int) -> Any:
        """Returns the representation's recurrent state at an episode start, for an actor to keep."""
        if self.representation is None:
            return ()
        return to_arrays(self.representation.initial_state(num_envs), copy=True)  # type: ignore[operator]

    def state_dict(self) -> State:
        """Returns the parameters that act at this moment."""
        representation = None if self.representation is None else module_state(self.representation, copy=True)
        return {"policy": module_state(self.network, copy=True), "representation": representation}

    def load_state_dict(self, state: State) -> None:
        self.load(Parameters(state["policy"], state["representation"]))

    @torch.inference_mode()
    def __call__(self, request: Request) -> Reply:
        asked: Any = to_tensors(request)
        inputs = Inputs(
            asked.observation, asked.prev_action, asked.reward, asked.prev_intrinsic, asked.is_first
        )
        one_step = map_arrays(lambda x: x[None], inputs)  # [1, B, ...]
        logits, state = preferences(self.network, one_step, asked.state, self.config)
        features, feature_state = Features(), ()  # type: tuple[Features, tuple[Tensor, ...]]
        if self.representation is not None:
            features, feature_state = self._represent(
                asked.observation, asked.prev_action, asked.is_first, asked.feature_state
            )
        return Reply(
            logits[0, torch.arange(len(asked.mixture)), asked.mixture].numpy(),
            features,
            to_arrays(state),
            to_arrays(feature_state),
        )

    @torch.inference_mode()
    def embed(self, observation: Any) -> Features:
        """Returns the features of single observations `[N, ...]`, for what has no history to give."""
        if self.representation is None:
            return Features()
        num = len(next(iter(observation.values())) if isinstance(observation, dict) else observation)
        return self._represent(
            to_tensors(observation),
            torch.zeros(num, dtype=torch.int64),
            torch.ones(num, dtype=torch.bool),
            self.representation.initial_state(num),  # type: ignore[operator]
        )[0]

    def _represent(
        self, observation: Any, prev_action: Tensor, is_first: Tensor, state: Any
    ) -> tuple[Features, tuple[Tensor, ...]]:
        assert self.representation is not None
        features, state = self.representation.represent(observation, prev_action, is_first, state)  # type: ignore[operator]
        return Features(_numpy(features.embedding), _numpy(features.surprise)), state


def _numpy(tensor: Tensor | None) -> Array | None:
    return None if tensor is None else tensor.numpy()
