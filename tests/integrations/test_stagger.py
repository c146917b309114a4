"""One cut in each environment, and no other change."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest

from softcount.integrations.stagger import Staggered


class Line(gymnasium.Env):
    """Episodes of five steps; seen is the time."""

    observation_space = gymnasium.spaces.Box(0, 9, (1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        return np.full(1, self.time, np.float32), 0.5, False, self.time == 5, {"time": self.time}


def ends(cut, num=22):
    env, found = Staggered(Line(), cut), []
    env.reset()
    for step in range(1, num):
        observation, reward, terminated, truncated, info = env.step(0)
        assert (observation[0], reward, terminated) == (info["time"], 0.5, False)
        if truncated:
            found.append(step)
            env.reset()
    return found


def test_the_episode_that_runs_then_is_cut_and_all_later_ones_are_shifted():
    assert ends(0) == [5, 10, 15, 20]
    assert ends(3) == [3, 8, 13, 18]
    assert ends(7) == [5, 7, 12, 17]
    with pytest.raises(ValueError, match="expected 0 or more"):
        Staggered(Line(), -1)
