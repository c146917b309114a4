"""A value function of the bonus's own, so that the agent's can keep to the game's reward.

    A_t = Σ_k (γλ)^k δ_{t+k}        δ_t = r_t + γ V(o_{t+1}) − V(o_t)

One value function for both rewards forgets the goal: while going on is worth more bonus than the goal
pays, entering the goal looks like a loss. Here the bonus has its own values, whose stream never ends:
an episode's end leads on to the next beginning, so no end costs anything. Its advantages are added to
those of the agent.

A bonus fades, by a hundred times and more. So values are learned in units of r̄ / (1 − γ), what going on is
worth at the time: else an optimiser that knows the errors of the first rollouts does next to nothing for
those of later ones. Decision 540.

    advantages = critic.advantages(observations, rewards)     before the agent learns from a rollout
    critic.learn()                                            after it

Values may share their encoder with the policy (`body`): what tells which places pay is what a policy needs to
go there, and before the first goal nothing else teaches it. Decision 543.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from softcount.integrations.defaults import choose_torso
from softcount.stats import MovingAverage
from softcount.tensors import load_module, load_optimiser, module_state, optimiser_state, to_tensors
from softcount.torsos import make_torso
from softcount.types import Array, ObservationSpec, State, load_rng, map_arrays, rng_state
from softcount.validation import above, at_least, between, check_fields

PAY_STEP = 0.05
"""How fast r̄ follows the mean of each rollout: about the last twenty."""

EPSILON = 1e-5
"""Adam's, as in PPO: values that fit do not go on moving a body that they share."""
MAX_GRAD_NORM = 0.5
"""At most so much of a gradient is taken, as in PPO."""


@dataclass(frozen=True, kw_only=True)
class CriticConfig:
    """How far the values look, and how they learn."""

    discount: float = 0.95
    """γ of the bonus. Where what is new is 50 steps away it needs 0.99, and the bonus then weighs more."""
    gae_lambda: float = 0.95
    """λ of the advantages."""
    learning_rate: float = 1e-3
    """Of Adam."""
    epochs: int = 4
    """Steps of the optimiser after each rollout, in passes over it."""
    rollouts: int = 1
    """How many, the newest included, the rows of a step are drawn from. Decision 544."""
    batch_size: int = 128
    """Observations per step of the optimiser."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            discount=between(0, 1, "[)"),
            gae_lambda=between(0, 1),
            learning_rate=above(0),
            epochs=at_least(0),
            rollouts=at_least(1),
            batch_size=at_least(1),
        )


class IntrinsicCritic:
    """Values of the bonus and the advantages that follow from them.

    >>> from softcount.types import ArraySpec
    >>> critic = IntrinsicCritic(ArraySpec((2,), "float32"), CriticConfig(discount=0.5, gae_lambda=1.0))
    >>> critic.advantages(np.zeros((3, 1, 2), np.float32), np.array([[0.0], [1.0]])).ravel().tolist()
    [0.5, 1.0]
    >>> critic.learn()
    """

    def __init__(
        self,
        spec: ObservationSpec,
        config: CriticConfig | None = None,
        *,
        encoder: Any = None,
        body: Any = None,
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        """Values of observations of a spec; or of what `body` reads, a module of the agent's own.

        A body has `out_features` and learns along; it is not saved here, since the agent saves it.
        """
        self.config = config or CriticConfig()
        self.device = device
        with torch.random.fork_rng(devices=[]):  # the agent's draws stay as they were
            torch.manual_seed(seed)
            torso = body
            if body is None:
                torso = make_torso(choose_torso(spec) if encoder is None else encoder, spec)
            head = nn.Linear(torso.out_features, 1)
        nn.init.zeros_(head.weight)  # nothing is expected before anything was paid
        nn.init.zeros_(head.bias)
        self.network = nn.Sequential(torso, head).to(device)
        self._saved = self.network if body is None else head
        parameters = self.network.parameters()
        self.optimiser = torch.optim.Adam(parameters, self.config.learning_rate, eps=EPSILON)
        self.pay = MovingAverage(PAY_STEP)
        self._rows: deque[tuple[Any, Array]] = deque(maxlen=self.config.rollouts)  # and their returns
        self._is_due = False
        self._rng = np.random.default_rng(seed)

    def advantages(self, observations: Any, rewards: Array) -> Array:
        """Returns the advantages `[T, N]` of rewards `[T, N]`, and keeps them for `learn`.

        Observations are `[T + 1, N, ...]`: those acted on, and what is to be acted on next.
        """
        time, width = rewards.shape
        self.pay.add(float(np.abs(rewards).mean()))
        unit = self.unit
        values = self._unit_values(map_arrays(_flat, observations)).reshape(time + 1, width)
        decay, running = self.config.discount * self.config.gae_lambda, np.zeros(width)
        advantages = np.zeros((time, width), np.float32)
        for t in reversed(range(time)):
            error = rewards[t] / unit + self.config.discount * values[t + 1] - values[t]
            running = error + decay * running
            advantages[t] = running
        seen = map_arrays(lambda x: np.array(_flat(x[:-1])), observations)
        self._rows.append((seen, (advantages + values[:-1]).ravel()))
        self._is_due = True
        return advantages * np.float32(unit)

    @property
    def unit(self) -> float:
        """What going on is worth, r̄ / (1 − γ); 1 as long as nothing was paid."""
        return self.pay.value / (1.0 - self.config.discount) or 1.0

    def values(self, observation: Any) -> Array:
        """What is expected from observations `[N, ...]` on."""
        return self._unit_values(observation) * np.float32(self.unit)

    @torch.no_grad()
    def _unit_values(self, observation: Any) -> Array:
        return self._values(observation).cpu().numpy()

    def learn(self, share: float = 1.0) -> None:
        """Fits the values to the returns of the last rollouts, each in the units of its time.

        To be called when the agent has learned from the newest: a policy with the same body would else not be
        the one that acted. Does nothing if there is nothing new. `share` is what is left of the bonus's
        weight: values that count less move a shared body less.
        """
        if not self._is_due:
            return
        self._is_due = False
        for group in self.optimiser.param_groups:
            group["lr"] = share * self.config.learning_rate
        newest = len(self._rows[-1][1])
        seen = map_arrays(lambda *parts: np.concatenate(parts), *(part for part, _ in self._rows))
        returns = np.concatenate([part for _, part in self._rows])
        for _ in range(self.config.epochs * -(-newest // self.config.batch_size)):
            rows = self._rng.integers(len(returns), size=self.config.batch_size)
            targets = torch.as_tensor(returns[rows], device=self.device)
            loss = (self._values(map_arrays(lambda x, rows=rows: x[rows], seen)) - targets).square().mean()
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(self.network.parameters(), MAX_GRAD_NORM)
            self.optimiser.step()

    def _values(self, observation: Any) -> torch.Tensor:
        tensors = to_tensors(map_arrays(np.ascontiguousarray, observation), self.device)
        values: torch.Tensor = self.network(tensors)[:, 0]
        return values

    def state_dict(self) -> State:
        return {
            "network": module_state(self._saved),
            "optimiser": optimiser_state(self.optimiser),
            "pay": self.pay.state_dict(),
            "is_due": self._is_due,
            "rollouts": [{"seen": seen, "returns": returns} for seen, returns in self._rows],
            "generator": rng_state(self._rng),
        }

    def load_state_dict(self, state: State) -> None:
        load_module(self._saved, state["network"])
        load_optimiser(self.optimiser, state["optimiser"])
        self.pay.load_state_dict(state["pay"])
        self._rows.clear()
        self._rows.extend((rows["seen"], np.array(rows["returns"])) for rows in state["rollouts"])
        self._is_due = bool(state["is_due"])
        load_rng(self._rng, state["generator"])


def _flat(rows: Array) -> Array:
    """Joins time and environments."""
    return rows.reshape(-1, *rows.shape[2:])
