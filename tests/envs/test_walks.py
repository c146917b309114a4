"""Recorded walks: seeded, within the maze, seen through screens and static, steered."""

from __future__ import annotations

import numpy as np

from softcount.envs.disco_maze import AGENT, DiscoMaze, DiscoMazeConfig
from softcount.envs.walks import Walks, screens, static, steer, walk


def record(**options):
    config = DiscoMazeConfig(size=7, lethal=False, observation="palette", max_steps=50)
    env = DiscoMaze(config, num_envs=4, seed=0)
    settings = {"blind": 0.2, "inertia": 0.5, "pushing": 0.0, **options}
    return env, walk(env, 60, warmup=5, seed=0, **settings)


def test_walks_are_seeded_and_follow_the_maze():
    env, walks = record()
    _, again = record()
    assert np.array_equal(walks.observation, again.observation)
    cells = np.array([env.cell_of(p) for p in walks.place.ravel()]).reshape(60, 4, 2)
    moved = np.abs(cells[1:] - cells[:-1]).sum(-1)
    assert (moved[~walks.is_first[1:]] <= 1).all()
    assert (walks.observation == AGENT).sum((2, 3)).max() == 1


def test_without_blind_moves_no_wall_is_hit():
    _, walks = record(blind=0.0)
    stays = (walks.place[1:] == walks.place[:-1]) & ~walks.is_first[1:]
    assert not stays.any()


def test_hidden_places_take_part_in_no_transition():
    _, walks = record()
    hidden = np.array([walks.place[10, 0], walks.place[20, 1]])
    rng = np.random.default_rng(0)
    sequence = walks.sample(12, 8, rng, hidden)
    rng = np.random.default_rng(0)
    starts = rng.integers(60 - 12 + 1, size=8)
    t, b = starts + np.arange(12)[:, None], rng.integers(4, size=8)
    is_hidden = np.isin(walks.place[t, b], hidden)
    joined = ~sequence.steps.is_first[1:] & ~sequence.steps.is_last[:-1]
    assert is_hidden.any()
    assert not (joined & (is_hidden[1:] | is_hidden[:-1])).any()
    really = ~walks.is_first[t, b][1:] & ~walks.is_last[t, b][:-1]
    assert np.array_equal(joined, really & ~is_hidden[1:] & ~is_hidden[:-1])


def test_screens_show_the_room_of_the_agent_and_static_spares_it():
    env, walks = record()
    rooms = screens(walks, env, 3)
    assert rooms.observation.shape == (60, 4, 3, 3)
    row, column = env.cell_of(walks.place[7, 2])
    padded = np.pad(walks.observation[7, 2], ((0, 2), (0, 2)), constant_values=8)
    top, left = row // 3 * 3, column // 3 * 3
    assert np.array_equal(rooms.observation[7, 2], padded[top : top + 3, left : left + 3])
    noisy = static(rooms, 1.0, seed=0)
    assert np.array_equal(noisy.observation == AGENT, rooms.observation == AGENT)
    assert (noisy.observation != rooms.observation).mean() > 0.4
    assert np.array_equal(static(rooms, 0.0, seed=0).observation, rooms.observation)


def test_turns_lead_where_the_directions_led():
    _, walks = record()
    driven = steer(walks)
    left, right, up, down = 0, 1, 2, 3  # actions of the maze
    clockwise = [up, right, down, left]
    heading = walks.action[0]
    for t, turns in enumerate(driven.action):
        heading = np.array(
            [clockwise[(clockwise.index(h) + a) % 4] for h, a in zip(heading, turns, strict=True)]
        )
        assert np.array_equal(heading, walks.action[t + 1])
    assert np.array_equal(driven.place, walks.place[1:])
    assert np.array_equal(driven.observation, walks.observation[1:])


def test_parts_select_environments():
    _, walks = record()
    part = walks.part(slice(1, 3))
    assert isinstance(part, Walks)
    assert np.array_equal(part.place, walks.place[:, 1:3])
