"""An Eight Rooms task as a `dm_env.Environment` with DM-HARD-8's published names, shapes and bounds.

So the adapter to the original's servers wraps it unchanged: `DmHard8(config, world=EightRoomsWorld(...))`.
Actions are sticky, as there: what is not sent keeps its value. The world itself holds an action for
`action_repeat` ticks and draws once; leave the adapter's own repeat at 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import dm_env
import numpy as np
from dm_env import specs

from softcount.envs.eight_rooms.vector import EightRooms, EightRoomsConfig, senses
from softcount.envs.nine_actions import ACTIONS, IMAGE, SCORE
from softcount.types import TimeStep


class EightRoomsWorld(dm_env.Environment):  # type: ignore[misc]
    """One world, with `Score` among its observations; the adapter keeps that from the agent.

    >>> world = EightRoomsWorld(EightRoomsConfig(task="throw_across", variant="tiny"), seed=0)
    >>> sorted(world.reset().observation)
    ['ACCELERATION', 'HAND_DISTANCE', 'HAND_FORCE', 'HAND_IS_HOLDING', 'RGB_INTERLEAVED', 'Score']
    """

    def __init__(self, config: EightRoomsConfig, seed: int = 0) -> None:
        self.core = EightRooms(replace(config, actions="continuous", observation="image"), seed=seed)
        self._sent = dict.fromkeys(ACTIONS, 0.0)

    def action_spec(self) -> Any:
        """Returns the specs of the nine actions by name."""
        return {name: specs.BoundedArray((), np.float64, *bounds, name) for name, bounds in ACTIONS.items()}

    def observation_spec(self) -> Any:
        """Returns the specs of the six observations by name."""
        cfg = self.core.config
        shapes = {
            "ACCELERATION": (3,),
            "HAND_FORCE": (),
            "HAND_IS_HOLDING": (),
            "HAND_DISTANCE": (),
            SCORE: (),
        }
        image = specs.Array((cfg.height, cfg.width, 3), np.uint8, IMAGE)
        return {IMAGE: image} | {name: specs.Array(shape, np.float64, name) for name, shape in shapes.items()}

    def reset(self) -> dm_env.TimeStep:
        """Starts an episode."""
        self._sent = dict.fromkeys(ACTIONS, 0.0)
        return dm_env.restart(self._see(self.core.reset()))

    def step(self, action: Mapping[str, Any]) -> dm_env.TimeStep:
        """Takes any of the nine actions; the others stay as they are."""
        if self.core.is_over[0]:
            return self.reset()
        for name, value in action.items():
            if name not in ACTIONS:
                raise ValueError(f"no action is called {name!r}; expected one of {', '.join(ACTIONS)}")
            self._sent[name] = float(value)
        step = self.core.step(np.array([list(self._sent.values())], np.float32))
        reward, seen = float(step.reward[0]), self._see(step)
        if step.is_terminal[0]:
            return dm_env.termination(reward, seen)
        return dm_env.truncation(reward, seen) if step.is_last[0] else dm_env.transition(reward, seen)

    def _see(self, step: TimeStep) -> dict[str, Any]:
        states = self.core.batch.states
        felt = {name: np.asarray(value[0], np.float64) for name, value in senses(states).items()}
        return {IMAGE: step.observation[0], **felt, SCORE: np.asarray(states["score"][0], np.float64)}
