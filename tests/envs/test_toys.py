import itertools

import numpy as np
import pytest

from softcount.envs.toys import Catch, Chain, CueMemory, ToyVector, TwoWorlds
from softcount.types import VectorEnv

WORLDS = [CueMemory(), Chain(), TwoWorlds(), Catch()]


def play(env, policy, num_steps, seed=0):
    """Returns all timesteps of `policy(timestep) -> actions`."""
    steps = [env.reset(seed)]
    for _ in range(num_steps):
        steps.append(env.step(policy(steps[-1])))
    return steps


def returns(steps):
    """Undiscounted returns of complete episodes, by environment."""
    found = [[] for _ in steps[0].reward]
    totals = np.zeros(len(found))
    for step in steps:
        totals += step.reward
        for n in np.flatnonzero(step.is_last):
            found[n].append(round(float(totals[n]), 4))
            totals[n] = 0
    return found


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: type(world).__name__)
def test_episode_ends_are_rows_of_their_own_and_the_next_row_is_first(world):
    env = ToyVector(world, num_envs=5, seed=1)
    assert isinstance(env, VectorEnv)
    assert (env.task_names, env.task_ids.tolist()) == ((type(world).__name__,), [0, 0, 0, 0, 0])
    rng = np.random.default_rng(0)
    steps = play(env, lambda _: rng.integers(world.num_actions, size=5), 200)
    assert steps[0].is_first.all()
    for before, after in itertools.pairwise(steps):
        np.testing.assert_array_equal(after.is_first, before.is_last)
        assert (after.reward[after.is_first] == 0).all()
        assert not (after.is_first & after.is_last).any()
        assert (after.is_last | ~after.is_terminal).all()
        assert after.observation.shape == (5, *world.observation_shape)
    assert sum(step.is_last.sum() for step in steps) > 5


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: type(world).__name__)
def test_a_restored_environment_goes_on_alike(world):
    env, other = ToyVector(world, num_envs=3, seed=1), ToyVector(world, num_envs=3, seed=2)
    rng = np.random.default_rng(0)
    play(env, lambda _: rng.integers(world.num_actions, size=3), 17)
    other.set_state(env.get_state())
    for _ in range(80):
        action = rng.integers(world.num_actions, size=3)
        first, second = env.step(action), other.step(action)
        for x, y in zip(first[:-1], second[:-1], strict=True):
            np.testing.assert_array_equal(x, y)


def test_the_cue_is_seen_once_and_waiting_then_answering_pays_one():
    env = ToyVector(CueMemory(cues=3, delay=4), num_envs=20, seed=0)
    steps = [env.reset(3)]
    cue = steps[0].observation[:, :3].argmax(1)
    assert set(cue.tolist()) == {0, 1, 2}
    for _ in range(4):
        steps.append(env.step(np.full(20, 3)))
        assert (steps[-1].observation[:, :3] == 0).all()
    assert (steps[-1].observation[:, 3] == 1).all()
    last = env.step(cue)
    assert (last.reward == 1).all()
    assert last.is_terminal.all()
    env.reset(4)
    assert env.step(np.full(20, 1)).reward.tolist() == pytest.approx([-0.1] * 20)


def backward_and_forward(step):
    """The first copy goes to the near end, the others to the far one."""
    parity = step.observation.argmax(1) % 2
    return np.where(np.arange(len(parity)) == 0, 1 - parity, parity)


def test_the_chain_pays_little_near_and_much_far():
    steps = play(ToyVector(Chain(), num_envs=2), backward_and_forward, 9)
    near, far = returns(steps)
    assert near == [pytest.approx(0.3)] * 2
    assert far == [1.0]
    assert steps[3].is_terminal.tolist() == [True, False]
    assert steps[9].is_terminal[1]


def test_always_doing_the_same_in_the_chain_leads_nowhere():
    steps = play(ToyVector(Chain(), num_envs=2), lambda _: np.array([0, 1]), 60)
    assert returns(steps) == [[0.0], [0.0]]
    assert steps[60].is_last.all()
    assert not steps[60].is_terminal.any()


def test_odd_copies_are_cut_before_the_far_end_and_look_the_same():
    env = ToyVector(TwoWorlds(), num_envs=3)
    steps = play(env, lambda _: np.array([0, 1, 1]), 31)
    _, odd, even = returns(steps)
    assert set(even) == {1.0}
    assert set(odd) == {0.0}
    assert steps[8].is_last[1:].tolist() == [True, False]
    assert not steps[8].is_terminal[1:].any()  # a time limit
    np.testing.assert_array_equal(steps[8].observation[1], steps[8].observation[2])


def test_a_paddle_that_follows_the_ball_catches_it():
    def follow(step):
        board = step.observation
        ball = board[:, :-1].sum(1).argmax(1)
        paddle = board[:, -1].argmax(1)
        return 1 + np.sign(ball - paddle)

    env = ToyVector(Catch(), num_envs=8, seed=0)
    found = list(itertools.chain(*returns(play(env, follow, 60))))
    assert set(found) == {1.0}
    still = list(itertools.chain(*returns(play(env, lambda _: np.ones(8, int), 300))))
    assert np.mean(still) == pytest.approx(2 * 0.2 - 1, abs=0.2)
