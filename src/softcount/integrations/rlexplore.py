"""RLeXplore's names on top of `IntrinsicReward`, so that switching is one changed import.

    from softcount.integrations.rlexplore import RND        # was: from rllte.xplore.reward import RND
    irs = RND(envs, device="cpu", beta=1.0, kappa=0.0)
    irs.watch(obs, actions, rewards, terminateds, truncateds, next_obs)     # each step, optional
    intrinsic = irs.compute(samples, sync=True)                             # (T, N), each rollout

What differs: the environments are only read for their spaces, never stepped; `watch` and
`compute` together take each step in once; everything can be saved; `RECODE` and the
paper's representations are there. The bonus is normalised by its own rule (Decision 53),
so there are no `rwd_norm_type` and `obs_norm_type`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

from softcount.integrations.reward import IntrinsicReward
from softcount.integrations.schedules import Geometric
from softcount.types import Array, State, map_arrays

COLUMNS = ("observations", "actions", "next_observations", "terminateds", "truncateds")


class RolloutReward:
    """`watch`, `compute` and `update` for rollouts `(T, N, ...)`.

    >>> import gymnasium
    >>> envs = gymnasium.make_vec("CartPole-v1", num_envs=2)
    >>> irs = RolloutReward(envs, name="RND", beta=0.5)
    >>> samples = {"observations": np.zeros((3, 2, 4)), "next_observations": np.zeros((3, 2, 4)),
    ...            "actions": np.zeros((3, 2), int), "rewards": np.zeros((3, 2)),
    ...            "terminateds": np.zeros((3, 2)), "truncateds": np.zeros((3, 2))}
    >>> irs.compute(samples).shape
    (3, 2)
    """

    def __init__(
        self,
        envs: Any,
        device: str = "cpu",
        beta: float = 1.0,
        kappa: float = 0.0,
        *,
        name: str,
        **options: Any,
    ) -> None:
        for needed in ("single_observation_space", "single_action_space", "num_envs"):
            if not hasattr(envs, needed):
                raise TypeError(f"envs has no {needed}; expected a Gymnasium vector environment")
        self.reward = IntrinsicReward(
            name,
            envs.single_observation_space,
            envs.single_action_space,
            num_envs=envs.num_envs,
            device=device,
            weight=Geometric(beta, kappa),
            **options,
        )
        self._watched: list[Array] = []

    def watch(
        self,
        observations: Any,
        actions: Any,
        rewards: Any,
        terminateds: Any,
        truncateds: Any,
        next_observations: Any,
    ) -> None:
        """Takes one step of all environments in; `compute` returns its bonus. `rewards` is not used."""
        self._watched.append(
            self.reward.take_in(observations, actions, next_observations, terminateds, truncateds)
        )

    def compute(self, samples: Mapping[str, Any], sync: bool = True) -> Any:
        """Returns the bonus of a rollout, as a tensor where tensors were given.

        Takes its steps in, unless each was watched. With `sync` it also learns; without, call `update`.
        """
        missing = [name for name in COLUMNS if name not in samples]
        if missing:
            raise ValueError(f"samples lack {', '.join(missing)}; expected {', '.join(COLUMNS)}")
        num = len(samples["terminateds"])
        if not self._watched:
            for t in range(num):
                self._watched.append(self.reward.take_in(*(_at(samples[name], t) for name in COLUMNS)))
        if len(self._watched) != num:
            raise ValueError(
                f"{len(self._watched)} steps were watched; the rollout has {num}, expected equal"
            )
        rewards = np.stack(self._watched)
        self._watched = []
        if sync:
            self.update(samples)
        if not isinstance(samples["terminateds"], torch.Tensor):
            return rewards
        return torch.from_numpy(rewards).to(samples["terminateds"].device)

    def update(self, samples: Mapping[str, Any]) -> dict[str, float]:
        """Learns from the history, as often as the schedule has it for a rollout of this length."""
        config = self.reward.config
        num_updates = len(samples["terminateds"]) * self.reward.num_envs // config.steps_per_update
        metrics: dict[str, float] = {}
        if self.reward.num_steps >= config.first_update:
            for _ in range(max(num_updates, 1)):
                metrics = self.reward.learn()
        return metrics

    def metrics(self) -> dict[str, float]:
        return self.reward.metrics()

    def state_dict(self) -> State:
        return {"reward": self.reward.state_dict(), "watched": [row.copy() for row in self._watched]}

    def load_state_dict(self, state: State) -> None:
        self.reward.load_state_dict(state["reward"])
        self._watched = [np.array(row) for row in state["watched"]]


def _at(column: Any, t: int) -> Any:
    return map_arrays(lambda x: x[t], column)


Maker = Callable[..., RolloutReward]
RECODE: Maker = partial(RolloutReward, name="RECODE-AP")
RND: Maker = partial(RolloutReward, name="RND")
NGU: Maker = partial(RolloutReward, name="NGU-AP")
PseudoCounts: Maker = partial(RolloutReward, name="EMM-AP")
"""The episodic half of NGU."""
