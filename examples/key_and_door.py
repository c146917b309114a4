"""A world of one's own: a key opens the door between two rooms, and the goal lies behind it.

`docs/own_environment.md` explains it line by line, and trains agents in it.
"""

import gymnasium as gym
import numpy as np


class KeyAndDoor(gym.Env):
    """Two rooms side by side; seen are row, column, whether one has the key, and whether the door is open."""

    def __init__(self, size=7, max_steps=150):
        self.size, self.max_steps = size, max_steps
        self.observation_space = gym.spaces.MultiDiscrete([size, 2 * size + 1, 2, 2])
        self.action_space = gym.spaces.Discrete(4)  # up, down, left, right

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.row, self.column, self.has_key, self.is_open, self.time = 0, 0, 0, 0, 0
        return self.observe(), {"place": self.place()}

    def step(self, action):
        self.time += 1
        down, right = ((-1, 0), (1, 0), (0, -1), (0, 1))[action]
        row = min(max(self.row + down, 0), self.size - 1)
        column = min(max(self.column + right, 0), 2 * self.size)
        if column == self.size:  # the wall between the rooms has one door, in the middle
            is_door = row == self.size // 2
            self.is_open |= is_door and self.has_key
            if not (is_door and self.is_open):
                row, column = self.row, self.column
        self.row, self.column = row, column
        self.has_key |= (row, column) == (self.size - 1, 0)  # it lies in a corner
        is_solved = (row, column) == (0, 2 * self.size)
        is_cut = self.time >= self.max_steps
        return self.observe(), float(is_solved), is_solved, is_cut, {"place": self.place()}

    def observe(self):
        return np.array([self.row, self.column, self.has_key, self.is_open])

    def place(self):
        """A number for each state, to see how much of the world was visited."""
        cell = self.row * (2 * self.size + 1) + self.column
        return int(cell + self.size * (2 * self.size + 1) * (self.has_key + self.is_open))


gym.register("KeyAndDoor-v0", KeyAndDoor)
