"""Turns Gymnasium environments into the project's vector environment, in one process.

Gymnasium ends an episode with `terminated` or `truncated` and wants `reset` next. Here
the true final observation is an ordinary row with `is_last`, the action given there is
ignored, and the next row of that copy is the FIRST of a new episode; so no observation
is ever lost or overwritten and the number of rows never changes.

Ground truth for measurement comes from `info["place"]` where an environment reports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np

from softcount.envs.observations import ObservationReader
from softcount.envs.spaces import checked_actions, to_action_spec, to_own_action
from softcount.types import Array, State, TimeStep


class GymnasiumVector:
    """Copies of a Gymnasium environment behind `types.VectorEnv`.

    >>> env = GymnasiumVector([gymnasium.make("CartPole-v1") for _ in range(2)], seed=0)
    >>> env.reset().observation.shape, env.action_spec
    ((2, 4), DiscreteActions(num=2))
    >>> env.step(np.array([0, 1])).reward.tolist()
    [1.0, 1.0]
    """

    def __init__(
        self, envs: Sequence[gymnasium.Env[Any, Any]], *, seed: int = 0, first_copy: int = 0
    ) -> None:
        """Takes copies; `first_copy` is the number of the first where others of them live elsewhere."""
        if not envs:
            raise ValueError("no environments were given; expected at least one")
        for i, env in enumerate(envs):
            if env.observation_space != envs[0].observation_space or env.action_space != envs[0].action_space:
                raise ValueError(f"the spaces of copy {i} differ from those of copy 0; expected equal copies")
        self.envs = list(envs)
        self.num_envs = len(envs)
        self._reader = ObservationReader(envs[0].observation_space)
        self.observation_spec = self._reader.spec
        self.action_spec = to_action_spec(envs[0].action_space)
        self.num_places: int | None = _attribute(envs[0], "num_places")
        self.task_ids = np.zeros(self.num_envs, np.int64)
        spec = envs[0].spec
        self.task_names: tuple[str, ...] = (spec.id if spec else type(envs[0].unwrapped).__name__,)
        self._seed: int | None = seed
        self._is_over = np.ones(self.num_envs, bool)
        self._action_space = envs[0].action_space
        self._first_copy = first_copy

    @property
    def map_shape(self) -> tuple[int, int] | None:
        """Rows and columns of the map that `cell_of` points into, where there is one."""
        shape: tuple[int, int] | None = _attribute(self.envs[0], "map_shape")
        return shape

    @property
    def num_frames(self) -> int | None:
        """Frames that all copies have played so far, where they count them."""
        if _attribute(self.envs[0], "num_frames") is None:
            return None
        return sum(int(env.get_wrapper_attr("num_frames")) for env in self.envs)

    def cell_of(self, place: int) -> tuple[int, int]:
        """Returns where on the map a place lies."""
        cell: tuple[int, int] = self.envs[0].get_wrapper_attr("cell_of")(place)
        return cell

    def reset(self, seed: int | None = None) -> TimeStep:
        """Starts a new episode in every copy; a seed gives each copy its own, derived from it."""
        self._seed = self._seed if seed is None else seed
        self._is_over[:] = True
        return self._advance([None] * self.num_envs)

    def step(self, actions: Array) -> TimeStep:
        """Steps every copy; copies whose episode was over start a new one instead."""
        actions = checked_actions(actions, self.action_spec, self.num_envs)
        if self._seed is not None:
            raise RuntimeError("step was called before reset")
        return self._advance([to_own_action(action, self._action_space) for action in actions])

    def get_state(self) -> State:
        """Returns the states of all copies; each must offer `get_state` itself."""
        for env in self.envs:
            if not hasattr(env, "get_state"):
                raise NotImplementedError(f"{env} cannot save its state: it has no get_state and set_state")
        return {
            "envs": [env.get_state() for env in self.envs],  # type: ignore[attr-defined]
            "is_over": self._is_over.copy(),
            "seed": self._seed,
        }

    def set_state(self, state: State) -> None:
        """Continues exactly where `get_state` was called."""
        if len(state["envs"]) != self.num_envs:
            raise ValueError(f"the state is of {len(state['envs'])} copies; expected {self.num_envs}")
        for env, part in zip(self.envs, state["envs"], strict=True):
            env.set_state(part)  # type: ignore[attr-defined]
        self._is_over = np.array(state["is_over"])
        self._seed = state["seed"]

    def close(self) -> None:
        """Closes every copy."""
        for env in self.envs:
            env.close()

    def _advance(self, actions: list[Any]) -> TimeStep:
        is_first, seeds = self._is_over, self._next_seeds()
        reward = np.zeros(self.num_envs, np.float32)
        is_terminal = np.zeros(self.num_envs, bool)
        is_over = np.zeros(self.num_envs, bool)
        observations: list[Any] = [None] * self.num_envs
        infos: list[dict[str, Any]] = [{}] * self.num_envs
        for i, env in enumerate(self.envs):
            if is_first[i]:
                observations[i], infos[i] = env.reset(seed=seeds[i])
            else:
                row = env.step(actions[i])
                observations[i], reward[i], is_terminal[i], is_cut, infos[i] = row
                is_over[i] = is_terminal[i] or is_cut
        self._is_over = is_over
        place = np.array([info["place"] for info in infos], np.int64) if "place" in infos[0] else None
        return TimeStep(
            self._reader.stack(observations), reward, is_first, is_over.copy(), is_terminal, place
        )

    def _next_seeds(self) -> list[int | None]:
        if self._seed is None:
            return [None] * self.num_envs
        last = self._first_copy + self.num_envs
        seeds = np.random.SeedSequence(self._seed).generate_state(last)[self._first_copy :]
        self._seed = None
        return list(seeds.tolist())


def _attribute(env: gymnasium.Env[Any, Any], name: str) -> Any:
    """Looks an attribute up through all wrappers; None where there is none."""
    return env.get_wrapper_attr(name) if env.has_wrapper_attr(name) else None
