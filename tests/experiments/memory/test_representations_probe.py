"""The data and the probes of the experiment, on cases worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.memory.representations_probe import SETTINGS, floors, linear_probe, nearest, plot, spread
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


def test_probes_read_what_is_there_and_nothing_else():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=400)
    x = np.eye(3)[labels] + 0.1 * rng.normal(size=(400, 3))
    assert (nearest(x[:300], labels[:300], x[300:]) == labels[300:]).mean() > 0.98
    assert (linear_probe(x[:300], labels[:300], x[300:]) == labels[300:]).mean() > 0.98
    noise = rng.normal(size=(400, 3))
    assert (nearest(noise[:300], labels[:300], noise[300:]) == labels[300:]).mean() < 0.5


def test_spread_by_hand():
    x = np.array([[0.0], [2.0], [10.0], [10.0]])
    # centres 1 and 10; within: mean of 1 and 0; between: 2·var = 2·(4.5)²
    assert spread(x, np.array([0, 0, 1, 1])) == pytest.approx(0.5 / (2 * 4.5**2))


def test_parts_select_environments():
    _, walks = record()
    part = walks.part(slice(1, 3))
    assert isinstance(part, Walks)
    assert np.array_equal(part.place, walks.place[:, 1:3])


def test_floors_of_action_prediction_by_hand():
    # Two places; action 1 moves, 0 and 2 push a wall. Pushes come in pairs: a coin, then the same again.
    action = np.array([1, 0, 0, 1, 2, 2, 1, 2, 2, 1, 0, 0] * 10 + [1])[:, None]
    place = np.cumsum(np.concatenate([[0], action[:-1, 0] == 1]))[:, None] % 2
    never = np.zeros(action.shape, bool)
    walks = Walks(np.zeros((*action.shape, 1, 1), np.uint8), action, never, never, place)
    found = floors(walks)
    assert found["pair"] == pytest.approx(2 / 3 * np.log(2), abs=0.01)
    assert found["pair_and_previous_action"] == pytest.approx(1 / 3 * np.log(2), abs=0.01)
    # the place before a push: another for the first of a pair, this one for the second; both are coins
    assert found["pair_and_previous_place"] == pytest.approx(2 / 3 * np.log(2), abs=0.01)
    # after a push: once repeated, once a move; after a move: either push
    assert found["previous_action"] == pytest.approx(np.log(2), abs=0.01)


def test_the_picture_has_bars_of_means_dots_of_seeds_and_losses():
    kinds = SETTINGS["window"].kinds
    runs = [
        {
            "setting": "window", "kind": kind, "knn": 0.1 * i + 0.2 * seed, "knn_hidden_cells": 0.3,
            "linear": 0.4, "loss_curve": [1.0, 0.5 + seed], "floors": {"pair": 0.2, "history": 0.1},
        }
        for seed in range(2)
        for i, kind in enumerate(kinds)
    ]  # fmt: skip
    above, below = plot(runs).axes
    heights = [bar.get_height() for bar in above.patches]
    assert heights[::3] == pytest.approx([0.1 * i + 0.1 for i in range(len(kinds))])
    dots = [line.get_ydata()[0] for line in above.lines]
    assert dots == pytest.approx([0.1 * i + 0.2 * seed for i in range(len(kinds)) for seed in range(2)])
    curves = [list(line.get_ydata()) for line in below.lines if list(line.get_xdata()) == [10, 30]]
    assert curves.count([1.0, 1.5]) == sum(kind not in ("random", "autoencoder") for kind in kinds)
    levels = {line.get_ydata()[0] for line in below.lines if line.get_linestyle() == "--"}
    assert levels == {0.2, 0.1}  # AP is told by the pair, CASnotM by the past
