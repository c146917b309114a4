"""How MEME acts: which mixture plays an episode, what acting is greedy on, how much is left to chance.

A bandit per environment chooses a mixture at each episode's start and learns from the extrinsic
return at its end. The network answers for the mixture that it is told:

    act_on = policy   the distilled policy of the mixture [MEME], which is steady
             values   Q^e + β_j Q^i itself, which follows news faster
             split    values for exploring mixtures (β ≥ β_max / 2), the policy for exploiting ones

Actor l plays ε_l-greedily on it. The evaluator plays the mixture whose mean return is best over all
bandits taken together, with little noise, on the distilled policy where there is one.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softcount.agents.meme.agent import MemeConfig, preferences
from softcount.agents.meme.bandit import Bandit, best_arm, merge
from softcount.agents.meme.network import MemeNetwork
from softcount.agents.meme.policies import act
from softcount.agents.protocols import Inputs
from softcount.types import ActionSpec, Array, ObservationSpec, State, map_arrays


class ActingMeme(MemeNetwork):
    """The network of MEME as the inference worker uses it.

    >>> from softcount.types import ArraySpec, DiscreteActions
    >>> from softcount.agents.meme.network import NetworkConfig
    >>> config = MemeConfig(network=NetworkConfig(torso="mlp", core_size=8, head_size=8, num_mixtures=2))
    >>> network = ActingMeme(ArraySpec((3,), "float32"), DiscreteActions(4), config)
    >>> zeros = torch.zeros(5)
    >>> inputs = Inputs(torch.zeros(5, 3), zeros.long(), zeros, zeros, zeros.bool())
    >>> network.act(inputs, torch.tensor([0, 1, 0, 1, 0]), network.initial_state(5))[0].shape
    torch.Size([5, 4])
    """

    def __init__(
        self, observation_spec: ObservationSpec, action_spec: ActionSpec, config: MemeConfig
    ) -> None:
        super().__init__(observation_spec, action_spec, config.network)
        self.meme = config

    def act(self, inputs: Inputs, condition: Tensor, state: Any) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Returns what each row's mixture is greedy on, `[B, A]`."""
        one_step = map_arrays(lambda x: x[None], inputs)  # [1, B, ...]
        wanted, state = preferences(self, one_step, state, self.meme)
        return wanted[0, torch.arange(len(condition), device=condition.device), condition], state

    def evaluating(self) -> ActingMeme:
        """The same network on its distilled policy, if one is learned."""
        steady = copy.copy(self)
        if self.meme.loss.distillation_weight > 0:
            steady.meme = replace(self.meme, act_on="policy")
        return steady


class MixtureBehaviour:
    """A bandit and an ε for each environment.

    >>> behaviour = MixtureBehaviour([Bandit(3, seed=i) for i in range(2)], epsilon=np.zeros(2))
    >>> behaviour.start(np.array([True, True]))
    >>> actions, extras = behaviour.act(np.eye(4)[[2, 3]], np.random.default_rng(0))
    >>> actions.tolist(), sorted(extras)
    ([2, 3], ['log_prob', 'mixture'])
    """

    def __init__(
        self, bandits: Sequence[Bandit], epsilon: Array, *, evaluation_epsilon: float = 0.01
    ) -> None:
        self.bandits, self.epsilon, self.evaluation_epsilon = bandits, epsilon, evaluation_epsilon
        self.mixture = np.zeros(len(bandits), np.int64)

    def condition(self) -> Array:
        return self.mixture

    def start(self, is_first: Array) -> None:
        """Lets the bandits choose."""
        self.mixture = self.mixture.copy()  # requests and rows keep the one they were given
        for i in np.flatnonzero(is_first).tolist():
            self.mixture[i] = self.bandits[i].choose()

    def act(self, policy: Array, rng: np.random.Generator) -> tuple[Array, dict[str, Array]]:
        """Plays ε-greedily."""
        action, log_prob = act(policy, self.mixture, self.epsilon, rng)
        return action, {"mixture": self.mixture, "log_prob": log_prob}

    def end(self, is_last: Array, extrinsic: Array) -> None:
        """Credits the mixtures that played."""
        for i in np.flatnonzero(is_last).tolist():
            self.bandits[i].update(int(self.mixture[i]), float(extrinsic[i]))

    def best_mixture(self) -> int:
        """Returns the mixture with the best mean return over all bandits."""
        return best_arm(merge(bandit.statistics() for bandit in self.bandits))

    def for_evaluation(self, num_envs: int) -> FixedMixture:
        return FixedMixture(self.best_mixture(), num_envs, self.evaluation_epsilon)

    def describe(self) -> str:
        return "a mixture of its bandit's"

    def metrics(self, conditions: Array) -> dict[str, float]:
        """The mixture that an evaluator would play, and the mean of those that did."""
        metrics: dict[str, float] = {"bandit/best_arm": self.best_mixture()}
        if len(conditions):
            metrics["bandit/acting_mean"] = float(conditions.mean())
        return metrics

    def state_dict(self) -> State:
        return {"mixture": self.mixture.copy(), "bandits": [bandit.state_dict() for bandit in self.bandits]}

    def load_state_dict(self, state: State) -> None:
        if len(state["bandits"]) != len(self.bandits):
            raise ValueError(
                f"the state is of {len(state['bandits'])} environments; this actor has {len(self.bandits)}"
            )
        self.mixture = np.array(state["mixture"])
        for bandit, part in zip(self.bandits, state["bandits"], strict=True):
            bandit.load_state_dict(part)


class FixedMixture:
    """The same mixture in every episode, one for all environments or one for each: for evaluation."""

    def __init__(self, mixture: int | Array, num_envs: int, epsilon: float) -> None:
        self.mixture = np.broadcast_to(np.asarray(mixture, np.int64), (num_envs,)).copy()
        self.epsilon = np.full(num_envs, epsilon)

    def condition(self) -> Array:
        return self.mixture

    def start(self, is_first: Array) -> None:
        """It stays the same."""

    def act(self, policy: Array, rng: np.random.Generator) -> tuple[Array, dict[str, Array]]:
        action, log_prob = act(policy, self.mixture, self.epsilon, rng)
        return action, {"mixture": self.mixture, "log_prob": log_prob}

    def end(self, is_last: Array, extrinsic: Array) -> None:
        """Learns nothing."""

    def for_evaluation(self, num_envs: int) -> FixedMixture:
        return FixedMixture(np.resize(self.mixture, num_envs), num_envs, float(self.epsilon[0]))

    def describe(self) -> str:
        return f"mixture {self.mixture[0]}"

    def metrics(self, conditions: Array) -> dict[str, float]:
        return {}

    def state_dict(self) -> State:
        return {}

    def load_state_dict(self, state: State) -> None:
        """There is nothing to load."""
