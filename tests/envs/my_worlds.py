"""Worlds as users write them; imported by name in tests."""

from __future__ import annotations

import gymnasium
import numpy as np
from gymnasium import spaces


class Walk(gymnasium.Env):
    """A walk along a line; can save where it is."""

    def __init__(self, length=5):
        self.length = length
        self.observation_space = spaces.Discrete(length)
        self.action_space = spaces.Discrete(2, start=1)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self.at, {}

    def step(self, action):
        assert action in (1, 2)
        self.at = min(max(self.at + (1 if action == 2 else -1), 0), self.length - 1)
        return self.at, float(self.at == self.length - 1), self.at == self.length - 1, False, {}

    def get_state(self):
        return {"at": self.at}

    def set_state(self, state):
        self.at = int(state["at"])


class Forgetful(Walk):
    """The same; cannot save anything."""

    get_state = set_state = property()  # hasattr is False

    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Tuple((spaces.Discrete(5), spaces.Box(0, 1, (1,), np.float32)))

    def reset(self, **options):
        at, info = super().reset(**options)
        return (at, np.zeros(1, np.float32)), info

    def step(self, action):
        at, *rest = super().step(action)
        return (at, np.zeros(1, np.float32)), *rest


def not_an_environment():
    return 3


gymnasium.register("Walk-v0", Walk, max_episode_steps=4)
