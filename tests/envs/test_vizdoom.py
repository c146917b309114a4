import os

import numpy as np
import pytest

from softcount.envs.vizdoom import STARTS, MyWayHome, MyWayHomeConfig


@pytest.fixture
def build(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = []

    def build(**options):
        made.append(MyWayHome(MyWayHomeConfig(**options)))
        return made[-1]

    yield build
    folders = [env._folder.name for env in made]
    for env in made:
        env.close()
    assert os.listdir(tmp_path) == []  # nothing is written where the program runs
    assert not any(os.path.exists(folder) for folder in folders)


def position(env):
    return tuple(float(value) for value in env.game.get_state().game_variables[:2])


@pytest.mark.parametrize("start", ["sparse", "very-sparse"])
def test_sparse_starts_are_where_they_should_be_in_every_episode(build, start):
    env = build(start=start)
    for seed in range(3):
        _, info = env.reset(seed=seed)
        assert position(env) == pytest.approx(STARTS[start], abs=1)
        x, y = STARTS[start]
        assert env.cell_of(info["place"]) == ((128 - y) // 32, (x - 160) // 32)


def test_dense_starts_are_spread_over_the_rooms(build):
    env = build()
    places = {env.reset(seed=seed)[1]["place"] for seed in range(12)}
    assert len(places) >= 6


def test_the_vest_ends_the_episode_for_good_with_reward_one(build):
    env = build(start="sparse")
    env.reset(seed=0)
    env.game.send_game_command("warp 1040 -320")  # beside the vest at (1040, -352)
    for _ in range(60):
        for action in (3, 3, 2):  # forward, forward, turn right
            _, reward, terminated, truncated, _ = env.step(action)
            if terminated:
                break
        if terminated:
            break
    assert terminated
    assert not truncated
    assert reward == pytest.approx(1, abs=0.01)
    with pytest.raises(RuntimeError, match="call reset"):
        env.step(0)


def test_the_cut_comes_after_2100_tics_with_a_true_last_observation(build):
    env = build(start="very-sparse")
    env.reset(seed=0)
    ends = [env.step(1)[2:4] for _ in range(524)]
    assert not any(terminated or truncated for terminated, truncated in ends)
    observation, reward, terminated, truncated, _ = env.step(1)
    assert (terminated, truncated) == (False, True)
    assert np.array_equal(observation, env.game.get_state().screen_buffer)
    assert reward == pytest.approx(-0.0004)


def test_turning_round_shows_other_things_and_forward_moves(build):
    env = build(start="very-sparse")
    first, _ = env.reset(seed=1)
    where = position(env)
    turned = env.step(1)[0]
    assert not np.array_equal(first, turned)
    assert position(env) == where
    for _ in range(10):
        env.step(3)
    assert position(env) != where


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": "sparce"}, "start is 'sparce'"),
        ({"width": 100}, "width is 100"),
        ({"max_tics": 0}, "max_tics 0"),
    ],
)
def test_a_wrong_config_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        MyWayHomeConfig(**options)
