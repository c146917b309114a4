"""The inference worker: one batched forward pass for policy and features.

Keeps parameters and nothing else: recurrent states come with the request and leave with
the reply, so that a worker can be restarted or multiplied at any time.
"""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn

from softcount.agents.protocols import ActingNetwork, Inputs
from softcount.representations.acting import features_alone
from softcount.representations.features import Representation
from softcount.roles.actor import Reply, Request
from softcount.tensors import load_module, module_state, to_arrays, to_tensors
from softcount.types import ActionSpec, Array, Features, State


class Parameters(NamedTuple):
    """What a learner publishes: the policy that acts and the representation that embeds."""

    policy: State
    representation: State | None


class Inference:
    """Answers requests of actors with the parameters it was last given."""

    def __init__(
        self,
        network: ActingNetwork,
        representation: Representation | None,
        action_spec: ActionSpec,
        device: str = "cpu",
    ) -> None:
        self.network: Any = cast(nn.Module, network).to(device).eval()
        self._played: Any = network.evaluating()  # the same parameters, as an evaluator plays them
        self.representation = None if representation is None else representation.to(device).eval()
        self.action_spec, self.device = action_spec, device
        self._policy: State | None = None

    @property
    def dim(self) -> int | None:
        """Size of the embeddings; None where there is no representation."""
        return None if self.representation is None else self.representation.dim

    def load(self, parameters: Parameters) -> None:
        """Acts with these from now on; the very policy that was loaded last is there already."""
        if parameters.policy is not self._policy:
            load_module(self.network, parameters.policy)
            self._policy = parameters.policy
        if self.representation is not None and parameters.representation is not None:
            load_module(self.representation, parameters.representation)

    def initial_state(self, num_envs: int) -> tuple[Array, ...]:
        """Returns the agent's recurrent state at an episode start, for an actor to keep."""
        return tuple(to_arrays(self.network.initial_state(num_envs), copy=True))

    def initial_feature_state(self, num_envs: int) -> Any:
        """Returns the representation's recurrent state at an episode start, for an actor to keep."""
        if self.representation is None:
            return ()
        return to_arrays(self.representation.initial_state(num_envs), copy=True)

    def state_dict(self) -> State:
        """Returns the parameters that act at this moment."""
        representation = None if self.representation is None else module_state(self.representation, copy=True)
        return {"policy": module_state(self.network, copy=True), "representation": representation}

    def load_state_dict(self, state: State) -> None:
        self.load(Parameters(state["policy"], state["representation"]))

    def __call__(self, request: Request) -> Reply:
        """Answers an actor."""
        return self._answer(self.network, request)

    def evaluate(self, request: Request) -> Reply:
        """Answers an evaluator."""
        return self._answer(self._played, request)

    @torch.inference_mode()
    def _answer(self, network: Any, request: Request) -> Reply:
        asked: Any = to_tensors(request, self.device)
        inputs = Inputs(
            asked.observation, asked.prev_action, asked.reward, asked.prev_intrinsic, asked.is_first
        )
        policy, state = network.act(inputs, asked.condition, asked.state)
        features: Features[Tensor] = Features()
        feature_state: Any = ()
        if self.representation is not None:
            features, feature_state = self.representation.represent(
                asked.observation, asked.prev_action, asked.is_first, asked.feature_state
            )
        return Reply(to_arrays(policy), to_arrays(features), to_arrays(state), to_arrays(feature_state))

    def embed(self, observation: Any) -> Features:
        """Returns the features of single observations `[N, ...]`, for what has no history to give."""
        if self.representation is None:
            return Features()
        return features_alone(self.representation, observation, self.action_spec, self.device)
