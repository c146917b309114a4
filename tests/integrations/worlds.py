"""Two small worlds: one whose every observation is known, one where a lever is all there is."""

from __future__ import annotations

import gymnasium
import numpy as np
from gymnasium import spaces

LENGTHS = (3, 1, 4)


class Counter(gymnasium.Env):
    """Observes (copy, episode, time). Episodes last 3, 1, 4, 3, … steps, ended and cut in turn."""

    observation_space = spaces.Box(0, 1000, (3,), np.float32)
    action_space = spaces.Discrete(3)

    def __init__(self, copy=0):
        self.copy, self.episode = copy, -1

    def observe(self):
        return np.array([self.copy, self.episode, self.time], np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode += 1
        self.time = 0
        return self.observe(), {}

    def step(self, action):
        self.time += 1
        is_over = self.time == LENGTHS[(self.episode + self.copy) % 3]
        is_cut = self.episode % 2 == 1
        return self.observe(), float(action), is_over and not is_cut, is_over and is_cut, {}


class Lever(gymnasium.Env):
    """Observes whether the lever was pulled (action 1) in the last step. Never pays anything."""

    observation_space = spaces.Box(0, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, length=8):
        self.length = length

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.array([0.0, 0.5], np.float32), {}

    def step(self, action):
        self.time += 1
        observation = np.array([float(action == 1), 0.5], np.float32)
        return observation, 0.0, self.time == self.length, False, {}


def pulled(observation):
    """A surprise that is 1 where the lever was pulled; for `Function`."""
    return observation[:, 0]


def not_pulled(observation):
    return 1 - observation[:, 0]
