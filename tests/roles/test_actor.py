"""The actor: what it asks, what it hands over, and when a mixture changes."""

import itertools

import numpy as np
import pytest

from softcount.agents.meme.acting import MixtureBehaviour
from softcount.agents.meme.bandit import Bandit, BanditConfig
from softcount.envs.make import make
from softcount.roles.actor import Actor, Reply
from softcount.types import DiscreteActions, Features, TimeStep

NUM_ENVS, NUM_ACTIONS = 5, 4


def actor_of(epsilon=0.0, seed=0, num_envs=NUM_ENVS):
    env = make("disco-maze", num_envs=num_envs, seed=1, size=7)
    bandits = [Bandit(3, BanditConfig(epsilon=1.0), seed=i) for i in range(num_envs)]
    behaviour = MixtureBehaviour(bandits, np.full(num_envs, epsilon))
    state = (np.zeros((num_envs, 2), np.float32),)
    return Actor(env, behaviour, state=state, feature_state=(), seed=seed)


def reply_of(actions, state):
    policy = np.eye(NUM_ACTIONS, dtype=np.float32)[actions]
    return Reply(policy, Features(), (state,), ())


def play(actor, num_steps, seed=0):
    """Plays random actions with made-up intrinsic rewards; returns requests, rows and states before them."""
    rng = np.random.default_rng(seed)
    history = []
    for t in range(num_steps):
        request = actor.request()
        actions = rng.integers(NUM_ACTIONS, size=NUM_ENVS)
        intrinsic = rng.random(NUM_ENVS).astype(np.float32)
        row, before = actor.step(reply_of(actions, np.full((NUM_ENVS, 2), t + 1, np.float32)), intrinsic)
        history.append((request, row, before, actions, intrinsic))
    return history


def test_a_request_holds_the_last_action_and_the_intrinsic_reward_one_step_late():
    history = play(actor_of(), 60)
    for (_, _, _, actions, intrinsic), (request, *_) in itertools.pairwise(history):
        np.testing.assert_array_equal(request.prev_action, np.where(request.is_first, 0, actions))
        np.testing.assert_array_equal(request.prev_intrinsic, np.where(request.is_first, 0, intrinsic))
    assert any(request.is_first.any() for request, *_ in history[1:])


def test_a_row_holds_what_was_asked_and_what_was_done():
    for request, row, before, actions, intrinsic in play(actor_of(), 30):
        np.testing.assert_array_equal(row.observation, request.observation)
        np.testing.assert_array_equal(row.prev_action, request.prev_action)
        np.testing.assert_array_equal(row.reward, request.reward)
        np.testing.assert_array_equal(row.action, actions)  # ε = 0: greedy
        np.testing.assert_array_equal(row.intrinsic, intrinsic)
        np.testing.assert_array_equal(row.extras["prev_intrinsic"], request.prev_intrinsic)
        np.testing.assert_array_equal(row.extras["mixture"], request.condition)
        np.testing.assert_array_equal(row.extras["task"], np.zeros(NUM_ENVS))
        assert before is request.state


class Scripted:
    """Environments that return anything, with the flags of real episodes, and remember it."""

    num_envs, action_spec = NUM_ENVS, DiscreteActions(NUM_ACTIONS)

    def __init__(self):
        self.rng, self.told, self.returned, self.seeds = np.random.default_rng(0), [], [], []
        self.task_ids = np.array([1, 0, 2, 1, 0])

    def get_state(self):
        raise NotImplementedError("these environments cannot be saved")

    def reset(self, seed=None):
        self.seeds.append(seed)
        return self._return(np.ones(NUM_ENVS, bool))

    def step(self, actions):
        self.told.append(actions.copy())
        return self._return(self.returned[-1].is_last)

    def _return(self, is_first):
        is_last = ~is_first & (self.rng.random(NUM_ENVS) < 0.3)
        reward = np.where(is_first, 0, self.rng.normal(size=NUM_ENVS)).astype(np.float32)
        observation, place = self.rng.random((NUM_ENVS, 2)), self.rng.integers(9, size=NUM_ENVS)
        is_terminal = is_last & (self.rng.random(NUM_ENVS) < 0.5)
        self.returned.append(TimeStep(observation, reward, is_first, is_last, is_terminal, place))
        return self.returned[-1]


def actor_in(env):
    state = (np.zeros((NUM_ENVS, 2), np.float32),)
    behaviour = MixtureBehaviour([Bandit(3, seed=i) for i in range(NUM_ENVS)], np.full(NUM_ENVS, 0.5))
    return Actor(env, behaviour, state=state, feature_state=(), seed=0)


def test_worlds_that_cannot_be_saved_start_new_episodes_in_worlds_that_were_not_seen():
    actor, other = actor_in(Scripted()), actor_in(Scripted())
    for _ in range(3):
        play(actor, 20)
        other.load_state_dict(actor.state_dict())
        request = other.request()
        assert request.is_first.all()
        assert not request.prev_action.any()
        assert not request.prev_intrinsic.any()
        assert not request.state[0].any()
        assert not other.totals.any()
    assert len(set(other.env.seeds)) == 4  # at its own start, and at every restart another


def test_a_row_holds_what_the_environments_returned_and_they_are_told_its_action():
    env = Scripted()
    actor = actor_in(env)
    history = play(actor, 80)
    for (request, row, *_), returned, told in zip(history, env.returned[:-1], env.told, strict=True):
        for name in ("observation", "reward", "is_first", "is_last", "is_terminal"):
            np.testing.assert_array_equal(getattr(row, name), getattr(returned, name), err_msg=name)
        for name in ("observation", "reward", "is_first"):
            np.testing.assert_array_equal(getattr(request, name), getattr(returned, name), err_msg=name)
        np.testing.assert_array_equal(row.extras["place"], returned.place)
        np.testing.assert_array_equal(row.extras["task"], env.task_ids)
        np.testing.assert_array_equal(row.action, told)


def test_the_recurrent_state_comes_back_with_the_next_request():
    history = play(actor_of(), 10)
    for t, (request, *_) in enumerate(history):
        assert (request.state[0] == t).all()


def test_a_mixture_is_kept_to_the_end_of_its_episode_and_credited_with_its_return():
    actor = actor_of()
    credited = [[] for _ in range(NUM_ENVS)]
    for i, bandit in enumerate(actor.behaviour.bandits):
        bandit.update = lambda arm, episode_return, i=i: credited[i].append((arm, episode_return))
    history = play(actor, 80)
    expected = [[] for _ in range(NUM_ENVS)]
    totals = np.zeros(NUM_ENVS)
    for (request, row, *_), (following, *_) in itertools.pairwise(history):
        totals += row.reward
        for i in range(NUM_ENVS):
            if row.is_last[i]:
                expected[i].append((request.condition[i], totals[i]))
                totals[i] = 0
            else:
                assert following.condition[i] == request.condition[i]
    assert [c[: len(e)] for c, e in zip(credited, expected, strict=True)] == expected
    assert len({mixture for e in expected for mixture, _ in e}) > 1


def test_episodes_report_both_returns_apart_their_length_in_steps_their_task_and_condition():
    env = Scripted()
    behaviour = MixtureBehaviour(
        [Bandit(3, BanditConfig(epsilon=1.0), seed=i) for i in range(NUM_ENVS)], np.zeros(NUM_ENVS)
    )
    state = (np.zeros((NUM_ENVS, 2), np.float32),)
    actor = Actor(env, behaviour, state=state, feature_state=(), seed=0)
    history = play(actor, 80)
    episodes = actor.take_episodes()
    extrinsic, intrinsic, length, expected = *np.zeros((3, NUM_ENVS)), []
    for request, row, _, _, paid in history:
        extrinsic += row.reward
        intrinsic += paid
        length += ~row.is_first
        for i in np.flatnonzero(row.is_last):
            returns = pytest.approx(extrinsic[i]), pytest.approx(intrinsic[i])
            expected.append((*returns, int(length[i]), env.task_ids[i], request.condition[i]))
            extrinsic[i] = intrinsic[i] = length[i] = 0
    assert [tuple(episode) for episode in episodes] == expected
    assert {episode.task for episode in episodes} == {0, 1, 2} == {e.condition for e in episodes}
    assert actor.take_episodes() == []
    assert actor.metrics(episodes)["bandit/acting_mean"] == np.mean([e.condition for e in episodes])


def test_epsilon_one_ignores_the_policy():
    actor = actor_of(epsilon=1.0)
    actions = [
        actor.step(reply_of(np.zeros(NUM_ENVS, int), np.zeros((NUM_ENVS, 2))), np.zeros(NUM_ENVS))[0].action
        for _ in range(80)
    ]
    counts = np.bincount(np.concatenate(actions), minlength=4)
    assert (counts > 60).all()


def test_a_restored_actor_continues_identically():
    one, two = actor_of(epsilon=0.3), actor_of(epsilon=0.3, seed=9)
    play(one, 30)
    two.load_state_dict(one.state_dict())
    for (_, first, *_), (_, second, *_) in zip(play(one, 40, seed=5), play(two, 40, seed=5), strict=True):
        np.testing.assert_array_equal(first.observation, second.observation)
        np.testing.assert_array_equal(first.action, second.action)
        np.testing.assert_array_equal(first.extras["mixture"], second.extras["mixture"])


def test_a_state_of_other_environments_is_refused():
    with pytest.raises(ValueError, match="5 environments; this actor has 2"):
        actor_of(num_envs=2).load_state_dict(actor_of().state_dict())


def test_a_world_without_places_is_told_from_one_that_cannot_count_them():
    actor = actor_of()
    assert actor.num_places() == actor.env.num_places > 0
    actor.timestep = actor.timestep._replace(place=None)
    assert actor.num_places() == -1
