"""The square with walls: where a point can go, what it sees, where it is."""

import numpy as np
import pytest

from softcount.envs.make import make, make_env
from softcount.envs.point_maze import PLANS, PointMaze, PointMazeConfig

ROUTES = {
    "s": [(1, 0)] * 9 + [(0, 1)] * 4 + [(-1, 0)] * 9 + [(0, 1)] * 4 + [(1, 0)] * 9 + [(0, 1)] * 3,
    "n": [(0, 1)] * 9 + [(1, 0)] * 4 + [(0, -1)] * 9 + [(1, 0)] * 4 + [(0, 1)] * 9 + [(1, 0)] * 3,
    "hook": [(0, 1)] * 9 + [(1, 0)] * 9,
    "open": [(1, 1)] * 9,
}


def still(plan="s", num_envs=1, **fields):
    return PointMaze(PointMazeConfig(plan=plan, slip=0.0, **fields), num_envs=num_envs)


@pytest.mark.parametrize("plan", PLANS)
def test_the_goal_can_be_reached_and_pays(plan):
    env = still(plan, goal_reward=3.0)
    env.reset(seed=0)
    for push in ROUTES[plan]:
        step = env.step(np.float32([push]))
        if step.is_last[0]:
            break
    assert step.is_terminal[0]
    assert step.reward[0] == 3.0
    assert step.place[0] == 99
    assert env.step(np.float32([[0, 0]])).is_first[0]


def test_walls_stop_and_gaps_do_not():
    env = still(num_envs=2)
    env.reset(seed=0)
    env.at[:] = [[0.5, 0.25], [0.9, 0.25]]
    env.step(np.float32([[0, 1], [0, 1]]))
    np.testing.assert_allclose(env.at, [[0.5, 0.299], [0.9, 0.35]])
    env.step(np.float32([[0, -1], [-1, 0]]))
    np.testing.assert_allclose(env.at, [[0.5, 0.199], [0.8, 0.35]])


def test_no_push_crosses_a_wall():
    rng = np.random.default_rng(0)
    env = PointMaze(PointMazeConfig(plan="s", push=0.5, max_steps=10_000), num_envs=50)
    env.reset(seed=0)
    before = env.at.copy()
    for _ in range(200):
        step = env.step(rng.uniform(-1, 1, (50, 2)).astype(np.float32))
        went = ~step.is_first
        for wall in (0.3, 0.7):
            is_across = went & ((before[:, 1] < wall) != (env.at[:, 1] < wall))
            x = env.at[is_across, 0]  # x moves first, so y moved at this x
            assert ((x > 0.8) if wall == 0.3 else (x < 0.2)).all()
        assert ((env.at >= 0) & (env.at <= 1)).all()
        before = env.at.copy()


def test_what_is_seen_is_the_position_and_the_free_ways():
    env = still()
    env.reset(seed=0)
    env.at[:] = [[0.5, 0.5]]
    seen = env.step(np.zeros((1, 2), np.float32)).observation[0]
    np.testing.assert_allclose((seen + 1) / 2, [0.5, 0.5, 0.5, 0.5, 0.2, 0.2], atol=1e-6)


def test_an_episode_is_cut_without_an_end():
    env = still(max_steps=3)
    env.reset(seed=0)
    steps = [env.step(np.zeros((1, 2), np.float32)) for _ in range(4)]
    assert [bool(s.is_last[0]) for s in steps] == [False, False, True, False]
    assert not any(s.is_terminal[0] for s in steps)
    assert steps[3].is_first[0]


def test_places_lie_where_the_map_says():
    env = still()
    portrayed = env.portray(np.arange(100), np.random.default_rng(0))
    at = (portrayed[:, :2] + 1) / 2
    for place in (0, 9, 37, 99):
        row, column = env.cell_of(place)
        assert column == int(at[place, 0] * 10)
        assert 9 - row == int(at[place, 1] * 10)


def test_it_is_seeded_and_continues_exactly():
    one, other = (PointMaze(num_envs=3, seed=seed) for seed in (0, 1))
    one.reset(seed=5)
    rng = np.random.default_rng(0)
    for _ in range(120):
        one.step(rng.uniform(-1, 1, (3, 2)).astype(np.float32))
    other.set_state(one.get_state())
    for _ in range(150):
        action = rng.uniform(-1, 1, (3, 2)).astype(np.float32)
        for a, b in zip(one.step(action), other.step(action), strict=True):
            np.testing.assert_array_equal(a, b)


def test_plans_are_names_and_can_be_tasks_of_one_run():
    env = make("point-maze/s,point-maze/n,point-maze/hook", num_envs=6)
    first = env.reset(seed=0).observation
    assert len(np.unique(first.round(3), axis=0)) == 3  # told apart at the first look
    alone = make_env("point-maze/n", max_steps=7)
    alone.reset(seed=0)
    assert [alone.step(np.zeros(2, np.float32))[3] for _ in range(7)] == [False] * 6 + [True]
    with pytest.raises(RuntimeError, match="call reset before the next step"):
        alone.step(np.zeros(2, np.float32))


def test_bad_settings_say_what_was_expected():
    with pytest.raises(ValueError, match="push is 0"):
        PointMazeConfig(push=0.0)
    with pytest.raises(ValueError, match="plan is 'q'"):
        PointMazeConfig(plan="q")
    with pytest.raises(ValueError, match="is illegal"):
        still().step(np.float32([[2.0, 0.0]]))
