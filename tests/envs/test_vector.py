import gymnasium
import numpy as np
import pytest

from softcount.envs.vector import GymnasiumVector
from softcount.types import ArraySpec, ContinuousActions, MultiDiscreteActions


class Countdown(gymnasium.Env):
    """Counts up from 0; ends after `length` steps, for good or by a cut; pays the count."""

    observation_space = gymnasium.spaces.Box(0, 1000, (1,), np.float32)

    def __init__(self, length, is_cut=False, action_space=None):
        self.length, self.is_cut = length, is_cut
        self.action_space = action_space or gymnasium.spaces.Discrete(3)
        self.seeds, self.actions = [], []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.seeds.append(seed)
        self.time = 0
        return np.array([0], np.float32), {"place": 0}

    def step(self, action):
        self.actions.append(action)
        self.time += 1
        is_over = self.time >= self.length
        observation = np.array([self.time], np.float32)
        return (
            observation,
            self.time,
            is_over and not self.is_cut,
            is_over and self.is_cut,
            {"place": self.time},
        )


def test_final_observations_are_rows_and_the_next_row_is_first():
    envs = [Countdown(2), Countdown(3, is_cut=True)]
    env = GymnasiumVector(envs, seed=0)
    rows = [env.reset()] + [env.step(np.array([t % 3, 1])) for t in range(7)]
    assert [row.observation[:, 0].tolist() for row in rows] == [
        [0, 0], [1, 1], [2, 2], [0, 3], [1, 0], [2, 1], [0, 2], [1, 3],
    ]  # fmt: skip
    assert [row.reward.tolist() for row in rows[:4]] == [[0, 0], [1, 1], [2, 2], [0, 3]]
    assert [row.is_first.tolist() for row in rows[:5]] == [[1, 1], [0, 0], [0, 0], [1, 0], [0, 1]]
    assert [row.is_last.tolist() for row in rows[:5]] == [[0, 0], [0, 0], [1, 0], [0, 1], [0, 0]]
    assert [row.is_terminal.tolist() for row in rows[:5]] == [[0, 0], [0, 0], [1, 0], [0, 0], [0, 0]]
    assert [row.place.tolist() for row in rows[:4]] == [[0, 0], [1, 1], [2, 2], [0, 3]]
    assert envs[0].actions == [0, 1, 0, 1, 0]  # of t = 0, 1, 3, 4, 6: those at the ends were not played


def test_copies_get_seeds_of_their_own_once_and_a_reset_without_seed_goes_on():
    envs = [Countdown(1), Countdown(1)]
    env = GymnasiumVector(envs, seed=5)
    env.reset()
    env.step(np.zeros(2, int))
    env.step(np.zeros(2, int))
    env.reset()
    env.reset(seed=5)
    first, second = (one.seeds for one in envs)
    assert first[0] is not None
    assert first[1:3] == [None, None]
    assert first[3] == first[0] != second[0]


def test_dicts_of_observations_and_other_actions_are_stacked():
    class Dicts(Countdown):
        observation_space = gymnasium.spaces.Dict(
            {"image": gymnasium.spaces.Box(0, 255, (2, 2), np.uint8), "count": gymnasium.spaces.Discrete(9)}
        )

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            return {"image": np.zeros((2, 2), np.uint8), "count": 0}, {}

        def step(self, action):
            _, *rest, _ = super().step(action)
            return {"image": np.full((2, 2), self.time, np.uint8), "count": self.time}, *rest, {}

    box = gymnasium.spaces.Box(np.array([-1, 0], np.float32), np.array([1, 2], np.float32))
    env = GymnasiumVector([Dicts(5, action_space=box) for _ in range(2)])
    assert env.observation_spec == {"image": ArraySpec((2, 2), "uint8"), "count": ArraySpec((9,), "float32")}
    assert env.action_spec == ContinuousActions((-1.0, 0.0), (1.0, 2.0))
    assert env.reset().place is None
    step = env.step(np.array([[0.5, 1], [0, 0]], np.float32))
    assert step.observation["count"].argmax(1).tolist() == [1, 1]
    assert step.observation["image"].shape == (2, 2, 2)
    assert env.envs[0].actions[0].tolist() == [0.5, 1]
    with pytest.raises(ValueError, match=r"action \[0.0, nan\] of copy 1 is illegal"):
        env.step(np.array([[0, 0], [0, np.nan]], np.float32))

    several = gymnasium.spaces.MultiDiscrete([3, 2])
    env = GymnasiumVector([Countdown(5, action_space=several)])
    assert env.action_spec == MultiDiscreteActions((3, 2))
    env.reset()
    env.step(np.array([[2, 1]]))
    with pytest.raises(ValueError, match=r"expected integers from 0 to \[2, 1\]"):
        env.step(np.array([[2, 2]]))


def test_what_cannot_be_done_is_said():
    env = GymnasiumVector([Countdown(2)])
    with pytest.raises(RuntimeError, match="before reset"):
        env.step(np.array([0]))
    with pytest.raises(NotImplementedError, match="cannot save its state"):
        env.get_state()
    with pytest.raises(ValueError, match="at least one"):
        GymnasiumVector([])
    with pytest.raises(ValueError, match="spaces of copy 1 differ"):
        GymnasiumVector([Countdown(2), Countdown(2, action_space=gymnasium.spaces.Discrete(4))])
    with pytest.raises(TypeError, match="cannot act in"):
        GymnasiumVector([Countdown(2, action_space=gymnasium.spaces.Text(4))])
