"""How V-MPO acts: it draws from its policy, in evaluation too, and writes down what it drew from.

Rows keep `policy`, the parameters of the policy that acted, and `raw_action`, what was drawn before it
was made to fit the world. The learner's trust region is around the former, likelihoods are of the latter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from softcount.agents.distributions import Distribution
from softcount.agents.protocols import Inputs
from softcount.agents.vmpo.network import VmpoNetwork
from softcount.types import Array, State, map_arrays


class ActingVmpo(VmpoNetwork):
    """The network of V-MPO as the inference worker uses it."""

    def act(self, inputs: Inputs, condition: Tensor, state: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Returns the parameters of each row's policy, `[B, P]`."""
        one_step = map_arrays(lambda x: x[None], inputs)  # [1, B, ...]
        policy, state = self.policy(one_step, state)
        return policy[0], state

    def evaluating(self) -> ActingVmpo:
        """The same: what was learned is the policy itself."""
        return self


class SamplingBehaviour:
    """Draws actions, or takes the most likely ones where an evaluator is to be greedy.

    >>> from softcount.agents.distributions import Categoricals
    >>> behaviour = SamplingBehaviour(Categoricals((4,), is_scalar=True), num_envs=2)
    >>> actions, extras = behaviour.act(np.eye(4)[[2, 3]] * 100, np.random.default_rng(0))
    >>> actions.tolist(), sorted(extras)
    ([2, 3], ['policy', 'raw_action'])
    """

    def __init__(
        self,
        distribution: Distribution,
        num_envs: int,
        *,
        is_greedy: bool = False,
        evaluates_greedily: bool = False,
    ) -> None:
        self.distribution, self.num_envs = distribution, num_envs
        self.is_greedy, self.evaluates_greedily = is_greedy, evaluates_greedily

    def condition(self) -> Array:
        """The network is told nothing."""
        return np.zeros(self.num_envs, np.int64)

    def start(self, is_first: Array) -> None:
        """Nothing is decided once per episode."""

    def act(self, policy: Array, rng: np.random.Generator) -> tuple[Array, dict[str, Array]]:
        drawn = self.distribution.mode(policy) if self.is_greedy else self.distribution.sample(policy, rng)
        return self.distribution.to_env(drawn), {"policy": policy, "raw_action": drawn}

    def end(self, is_last: Array, extrinsic: Array) -> None:
        """Learns nothing from returns."""

    def for_evaluation(self, num_envs: int) -> SamplingBehaviour:
        is_greedy = self.is_greedy or self.evaluates_greedily
        return SamplingBehaviour(self.distribution, num_envs, is_greedy=is_greedy)

    def describe(self) -> str:
        return "its most likely actions" if self.is_greedy else "actions drawn from its policy"

    def metrics(self, conditions: Array) -> dict[str, float]:
        return {}

    def state_dict(self) -> State:
        return {}

    def load_state_dict(self, state: State) -> None:
        """There is nothing to load."""
