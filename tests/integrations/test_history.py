"""Rings of rows: what goes in comes out in order, with the action of the row that followed."""

from __future__ import annotations

import numpy as np

from softcount.integrations.history import History
from softcount.types import ArraySpec, ContinuousActions, DiscreteActions


def fill(history, steps, env_ids=(0, 1)):
    ids = np.array(env_ids)
    for t in range(steps):
        observation = np.stack([ids * 100 + t], -1).astype(np.float32)
        is_first = np.full(len(ids), t % 5 == 0)
        is_last = np.full(len(ids), t % 5 == 4)
        history.append(ids, observation, ids + t, is_first, is_last, is_last)


def test_a_row_gets_the_action_that_led_to_the_next_row_unless_an_episode_begins():
    history = History(ArraySpec((1,), "float32"), DiscreteActions(99), 2, capacity=20)
    fill(history, 12)
    steps = history.latest(np.array([0, 1]), 12).steps
    for t in range(11):
        expected = 0 if (t + 1) % 5 == 0 else t + 1
        assert steps.action[t].tolist() == [expected, expected + (1 if expected else 0)]
    assert steps.action[11].tolist() == [0, 0]  # not known yet
    np.testing.assert_array_equal(
        steps.prev_action[1:][~steps.is_first[1:]], steps.action[:-1][~steps.is_first[1:]]
    )


def test_samples_are_consecutive_rows_of_one_environment_and_reach_the_newest():
    history = History(ArraySpec((1,), "float32"), DiscreteActions(99), 2, capacity=8)
    fill(history, 30)
    sequence = history.sample(np.random.default_rng(0), 500, 3)
    rows = sequence.steps.observation[..., 0]
    assert rows.shape == (3, 500)
    assert (np.diff(rows, axis=0) == 1).all()
    assert set(rows[0] % 100) == set(range(22, 28))  # the eight newest are 22 … 29
    assert set(rows[0] // 100) == {0, 1}


def test_nothing_is_sampled_until_a_stream_is_long_enough_and_only_from_those():
    history = History(ArraySpec((1,), "float32"), DiscreteActions(99), 3, capacity=8)
    fill(history, 2)
    assert history.sample(np.random.default_rng(0), 4, 3) is None
    fill(history, 5, env_ids=(2,))
    sequence = history.sample(np.random.default_rng(0), 50, 3)
    assert (sequence.steps.observation >= 200).all()


def test_dict_observations_and_continuous_actions_are_kept():
    spec = {"x": ArraySpec((2,), "float32"), "image": ArraySpec((3, 3, 1), "uint8")}
    history = History(spec, ContinuousActions((-1.0,), (1.0,)), 1, capacity=4)
    no = np.zeros(1, bool)
    for t in range(6):
        row = {"x": np.full((1, 2), t, np.float32), "image": np.full((1, 3, 3, 1), t, np.uint8)}
        history.append(np.array([0]), row, np.full((1, 1), t / 10, np.float32), no, no, no)
    other = History(spec, ContinuousActions((-1.0,), (1.0,)), 1, capacity=4)
    other.load_state_dict(history.state_dict())
    steps = other.latest(np.array([0]), 4).steps
    assert steps.observation["image"][:, 0, 0, 0, 0].tolist() == [2, 3, 4, 5]
    np.testing.assert_allclose(steps.action[:3, 0, 0], [0.3, 0.4, 0.5])
