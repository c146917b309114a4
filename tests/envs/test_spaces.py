"""Units of observations at the border."""

import gymnasium
import numpy as np
import pytest

from softcount.envs.make import make
from softcount.envs.spaces import in_unit_range


class Vectors(gymnasium.Env):
    """Shows the two ends of its space, one after the other."""

    def __init__(self, space):
        self.observation_space, self.action_space = space, gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return self.observation_space.low, {}

    def step(self, action):
        return self.observation_space.high, 0.0, False, False, {}


def test_vectors_with_finite_bounds_come_in_the_unit_range():
    low, high = np.array([-1.2, -0.07], np.float32), np.array([0.6, 0.07], np.float32)
    env = in_unit_range(Vectors(gymnasium.spaces.Box(low, high)))
    np.testing.assert_allclose(env.reset()[0], [-1, -1], atol=1e-6)
    np.testing.assert_allclose(env.step(0)[0], [1, 1], atol=1e-6)
    car, bare = make("gym/MountainCarContinuous-v0", seed=1), gymnasium.make("MountainCarContinuous-v0")
    assert car.observation_spec.dtype == "float32"
    start = car.reset(seed=1).observation[0]
    seed = int(np.random.SeedSequence(1).generate_state(1)[0])
    np.testing.assert_allclose(start, (bare.reset(seed=seed)[0] - low) / (high - low) * 2 - 1, atol=1e-5)


@pytest.mark.parametrize(
    "space",
    [
        gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32),
        gymnasium.spaces.Box(np.float32([0, -np.inf]), np.float32([1, np.inf])),
        gymnasium.spaces.Box(0, 255, (2,), np.uint8),
        gymnasium.spaces.Box(0, 1, (2, 2), np.float32),
        gymnasium.spaces.Box(np.float32([0, 3]), np.float32([1, 3])),
        gymnasium.spaces.MultiDiscrete([2, 3]),
    ],
)
def test_other_observations_stay_as_they_are(space):
    env = Vectors(space)
    assert in_unit_range(env) is env
