"""Environments shared out among actors: a state that is cut apart and put together is the same."""

import json
from dataclasses import replace

import numpy as np
import pytest
from launch.small_vmpo import POINT
from launch.test_local import TINY, assert_same

from softcount.launch.build import build, build_actor, build_inference, look_at_world
from softcount.launch.local import LocalLoop
from softcount.launch.ray.shares import join, share_out, split

TWO_TASKS = replace(
    TINY,
    env="disco-maze:layout=1,disco-maze:layout=2",
    env_options={"size": 7},
    num_envs=8,
    memory_per_task=True,
)
WORLDS = {
    "maze": replace(TINY, num_envs=6),
    "two tasks": TWO_TASKS,
    "continuous": replace(POINT, num_envs=4),
    "one by one": replace(TINY, env="minigrid/MultiRoom-N2-S4-v0", env_options={}, num_envs=5, agent="MEME"),
}


def acted(config, steps=25):
    """All environments in one process, some steps into their episodes."""
    loop = LocalLoop(build(replace(config, overlap=False)), overlap=False)
    for _ in range(steps):
        loop.step()
    return loop.roles.actor


def test_each_environment_is_shared_out_once_and_tasks_equally():
    for num_envs, num_tasks, num_actors in [(6, 1, 4), (8, 2, 2), (12, 3, 4), (5, 1, 1)]:
        shares = share_out(num_envs, num_tasks, num_actors)
        assert len(shares) == num_actors
        assert sorted(np.concatenate(shares).tolist()) == list(range(num_envs))
        assert max(map(len, shares)) - min(map(len, shares)) <= num_tasks
        copies = num_envs // num_tasks
        for ids in shares:
            assert len({int((ids // copies == task).sum()) for task in range(num_tasks)}) == 1


def test_more_actors_than_environments_are_refused():
    with pytest.raises(ValueError, match=r"runtime\.num_actors is 5; expected at most 4"):
        share_out(8, 2, 5)


@pytest.mark.parametrize("num_actors", [1, 2, 4])
@pytest.mark.parametrize("world", WORLDS)
def test_what_is_cut_apart_and_put_together_is_the_same(world, num_actors):
    config = WORLDS[world]
    state = acted(config).state_dict()
    specs, _ = look_at_world(config)
    shares = share_out(config.num_envs, len(specs.task_names), num_actors)
    parts = split(state, shares)
    assert_same(join(parts, shares), state)
    assert [len(part["prev_action"]) for part in parts] == [len(ids) for ids in shares]


@pytest.mark.parametrize("world", WORLDS)
def test_every_actor_goes_on_where_its_environments_were(world):
    config = WORLDS[world]
    whole = acted(config)
    specs, _ = look_at_world(config)
    shares = share_out(config.num_envs, len(specs.task_names), 2)
    inference = build_inference(config, specs)
    for ids, part in zip(shares, split(whole.state_dict(), shares), strict=True):
        actor = build_actor(config, specs, inference, ids)
        actor.load_state_dict(part)
        request, expected = actor.request(), whole.request()
        np.testing.assert_array_equal(request.observation, expected.observation[ids])
        np.testing.assert_array_equal(request.prev_action, expected.prev_action[ids])
        np.testing.assert_array_equal(request.condition, expected.condition[ids])
        np.testing.assert_array_equal(actor.totals, whole.totals[:, ids])
        np.testing.assert_array_equal(actor.arrival().task_ids, whole.arrival().task_ids[ids])
        np.testing.assert_array_equal(actor.arrival().env_ids, ids)


def test_worlds_of_a_share_take_the_steps_that_they_would_have_taken():
    whole = acted(WORLDS["maze"])
    specs, _ = look_at_world(WORLDS["maze"])
    shares = share_out(6, 1, 2)
    states = split(whole.state_dict(), shares)
    actions = np.random.default_rng(0).integers(0, 4, (12, 6))
    expected = [whole.env.step(row) for row in actions]
    inference = build_inference(WORLDS["maze"], specs)
    for ids, state in zip(shares, states, strict=True):
        actor = build_actor(WORLDS["maze"], specs, inference, ids)
        actor.load_state_dict(state)
        for row, step in zip(actions, expected, strict=True):
            found = actor.env.step(row[ids])
            np.testing.assert_array_equal(found.place, step.place[ids])
            np.testing.assert_array_equal(found.is_last, step.is_last[ids])
            np.testing.assert_array_equal(found.is_first, step.is_first[ids])


def test_actors_draw_different_numbers_and_the_first_goes_on_with_the_old_ones():
    state = acted(WORLDS["maze"]).state_dict()
    parts = split(state, share_out(6, 1, 3))
    assert parts[0]["rng"] == state["rng"]
    assert len({part["rng"] for part in parts}) == 3
    assert len({json.dumps(part["env"]["rng"]) for part in parts}) == 3
    draws = []
    for part in parts:
        rng = np.random.default_rng(0)
        rng.bit_generator.state = json.loads(part["rng"])
        draws.append(rng.random(1000))
    assert len(np.unique(np.concatenate(draws))) == 3000


def test_what_an_environment_plays_follows_from_its_number():
    config = replace(TINY, num_envs=6)
    specs, _ = look_at_world(config)
    whole = build(config).actor.behaviour
    for ids in share_out(6, 1, 3):
        own = build_actor(config, specs, build_inference(config, specs), ids).behaviour
        np.testing.assert_array_equal(own.epsilon, whole.epsilon[ids])
        np.testing.assert_array_equal(own.mixture, whole.mixture[ids])
        assert [b.state_dict()["rng"] for b in own.bandits] == [
            whole.bandits[i].state_dict()["rng"] for i in ids
        ]


def test_episodes_that_were_not_reported_yet_are_reported_once():
    state = acted(WORLDS["maze"], 60).state_dict()
    assert state["episodes"]
    parts = split(state, share_out(6, 1, 3))
    assert [len(part["episodes"]) for part in parts] == [len(state["episodes"]), 0, 0]
