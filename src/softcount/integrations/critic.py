"""A value function of the bonus's own, so that the agent's can keep to the game's reward.

    A_t = Σ_k (γλ)^k δ_{t+k}        δ_t = r_t + γ V(o_{t+1}) − V(o_t)

One value function for both rewards forgets the goal: while going on is worth more bonus than the goal
pays, entering the goal looks like a loss. Here the bonus has its own values, whose stream never ends:
an episode's end leads on to the next beginning, so no end costs anything. Its advantages are added to
those of the agent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from softcount.integrations.defaults import choose_torso
from softcount.tensors import load_module, load_optimiser, module_state, optimiser_state, to_tensors
from softcount.torsos import make_torso
from softcount.types import Array, ObservationSpec, State, load_rng, map_arrays, rng_state
from softcount.validation import above, at_least, between, check_fields


@dataclass(frozen=True, kw_only=True)
class CriticConfig:
    """How far the values look, and how they learn."""

    discount: float = 0.95
    """γ of the bonus."""
    gae_lambda: float = 0.95
    """λ of the advantages."""
    learning_rate: float = 1e-3
    """Of Adam."""
    epochs: int = 4
    """Passes over each rollout."""
    batch_size: int = 128
    """Observations per step of the optimiser."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            discount=between(0, 1),
            gae_lambda=between(0, 1),
            learning_rate=above(0),
            epochs=at_least(0),
            batch_size=at_least(1),
        )


class IntrinsicCritic:
    """Values of the bonus and the advantages that follow from them.

    >>> from softcount.types import ArraySpec
    >>> critic = IntrinsicCritic(ArraySpec((2,), "float32"), CriticConfig(discount=0.5, gae_lambda=1.0))
    >>> critic.advantages(np.zeros((3, 1, 2), np.float32), np.array([[0.0], [1.0]])).ravel().tolist()
    [0.5, 1.0]
    """

    def __init__(
        self,
        spec: ObservationSpec,
        config: CriticConfig | None = None,
        *,
        encoder: Any = None,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        self.config = config or CriticConfig()
        self.device = device
        with torch.random.fork_rng(devices=[]):  # the agent's draws stay as they were
            torch.manual_seed(seed)
            torso = make_torso(choose_torso(spec) if encoder is None else encoder, spec)
            head = nn.Linear(torso.out_features, 1)
        nn.init.zeros_(head.weight)  # nothing is expected before anything was paid
        nn.init.zeros_(head.bias)
        self.network = nn.Sequential(torso, head).to(device)
        self.optimiser = torch.optim.Adam(self.network.parameters(), self.config.learning_rate, eps=1e-5)
        self._rng = np.random.default_rng(seed)

    def advantages(self, observations: Any, rewards: Array) -> Array:
        """Returns the advantages `[T, N]` of rewards `[T, N]`, and learns from them.

        Observations are `[T + 1, N, ...]`: those acted on, and what is to be acted on next.
        """
        time, width = rewards.shape
        values = self.values(map_arrays(lambda x: x.reshape(-1, *x.shape[2:]), observations))
        values = values.reshape(time + 1, width)
        decay, running = self.config.discount * self.config.gae_lambda, np.zeros(width)
        advantages = np.zeros((time, width), np.float32)
        for t in reversed(range(time)):
            error = rewards[t] + self.config.discount * values[t + 1] - values[t]
            running = error + decay * running
            advantages[t] = running
        self._learn(map_arrays(lambda x: x[:-1], observations), advantages + values[:-1])
        return advantages

    @torch.no_grad()
    def values(self, observation: Any) -> Array:
        """What is expected from observations `[N, ...]` on."""
        return self._values(observation).cpu().numpy()

    def _learn(self, observations: Any, returns: Array) -> None:
        """Fits the values to returns `[T, N]` of observations `[T, N, ...]`."""
        flat = map_arrays(lambda x: x.reshape(-1, *x.shape[2:]), observations)
        targets = torch.as_tensor(np.asarray(returns, np.float32).ravel(), device=self.device)
        for _ in range(self.config.epochs):
            order = self._rng.permutation(len(targets))
            for start in range(0, len(order), self.config.batch_size):
                rows = order[start : start + self.config.batch_size]
                values = self._values(map_arrays(lambda x, rows=rows: x[rows], flat))
                loss = (values - targets[rows]).square().mean()
                self.optimiser.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                self.optimiser.step()

    def _values(self, observation: Any) -> torch.Tensor:
        tensors = to_tensors(map_arrays(np.ascontiguousarray, observation), self.device)
        values: torch.Tensor = self.network(tensors)[:, 0]
        return values

    def state_dict(self) -> State:
        return {
            "network": module_state(self.network),
            "optimiser": optimiser_state(self.optimiser),
            "generator": rng_state(self._rng),
        }

    def load_state_dict(self, state: State) -> None:
        load_module(self.network, state["network"])
        load_optimiser(self.optimiser, state["optimiser"])
        load_rng(self._rng, state["generator"])
