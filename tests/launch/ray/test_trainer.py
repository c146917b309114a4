"""The trainer without Ray: rows count once, the ratio holds, what acts is never old, a pause is a pause."""

import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from launch.small_vmpo import MAZE
from launch.test_local import TINY, assert_same

from softcount.launch.acting import act
from softcount.launch.build import build
from softcount.launch.local import LocalLoop
from softcount.launch.ray.shares import share_out
from softcount.launch.ray.trainer import NotStarted, Rows, Trainer, TrainingRoles, stack
from softcount.types import map_arrays

ROWS = 3  # in one message


class NearMemory:
    """A memory in this process that has what a client has besides."""

    def __init__(self, server):
        self.server, self.num_moves, self.num_scores = server, 0, 0

    def score(self, *asked):
        self.num_scores += 1
        return self.server.score(*asked)

    def move_with(self, embed, *, at_once):
        self.num_moves += 1
        if self.server.num_founded():
            self.server.move_atoms(embed(self.server.founding_observations(0, self.server.num_founded())))


class Scene:
    """A trainer, and an actor beside it that gives it rows."""

    def __init__(self, config=TINY, max_lag=4.0, publish_every=2):
        roles = build(config)
        self.roles, self.published = roles, []
        self.memory = NearMemory(roles.memory)
        roles.inference.load(roles.learner.parameters())
        self.acting = build(config).inference
        self.acting.load(roles.learner.parameters())
        self.trainer = Trainer(
            TrainingRoles(roles.inference, self.memory, roles.replay, roles.learner),
            relabel=config.meme.relabel,
            reembed_every=config.recode.reembed_every,
            num_places=roles.actor.num_places(),
            max_lag=max_lag,
            publish_every=publish_every,
            publish=lambda parameters, version: self.published.append(version),
        )
        self.sequence = 0

    def rows(self, num=ROWS, incarnation=1):
        """The next rows of all environments, as one message."""
        taken = []
        for _ in range(num):
            acted = act(
                self.roles.actor,
                self.acting,
                self.roles.memory,
                keeps_observations=self.roles.memory.wants_observations(),
                timed=self.trainer._timed,
            )
            taken.append((acted.row, acted.state))
        steps, states = stack(taken)
        message = Rows(
            0, incarnation, self.sequence, steps, states, np.arange(len(steps.reward[0])), [0] * num
        )
        self.sequence += 1
        return message


@pytest.fixture
def scene():
    scene = Scene()
    scene.trainer.expect([0])
    yield scene
    scene.trainer.end()


def test_a_message_that_comes_twice_counts_once(scene):
    scene.trainer.start()
    message = scene.rows()
    for _ in range(3):
        assert scene.trainer.add(message, 10.0)
    assert scene.trainer.num_rows == {0: ROWS}
    assert scene.trainer.num_steps == int((~message.steps.is_first).sum())
    assert scene.trainer.roles.replay.replay.num_acted == scene.trainer.num_steps


def test_a_new_life_of_an_actor_begins_to_count_anew_and_the_old_one_counts_no_more(scene):
    scene.trainer.start()
    old = [scene.rows(), scene.rows()]
    scene.trainer.add(old[0], 10.0)
    scene.sequence = 0
    scene.trainer.add(scene.rows(incarnation=2), 10.0)
    assert scene.trainer.num_rows == {0: 2 * ROWS}
    scene.trainer.add(old[1], 10.0)
    assert scene.trainer.num_rows == {0: 2 * ROWS}


def test_rows_come_into_the_replay_one_by_one_in_their_order_with_the_state_before_each():
    scene, seen = Scene(), []
    scene.trainer.expect([0])
    add = scene.trainer.roles.replay.add
    scene.trainer.roles.replay.add = lambda row, state, ids: (
        seen.append((row, state, ids)) or add(row, state, ids)
    )
    scene.trainer.start()
    message = scene.rows()
    scene.trainer.add(message, 10.0)
    scene.trainer.end()
    assert len(seen) == ROWS
    for k, (row, _, ids) in enumerate(seen):
        np.testing.assert_array_equal(row.observation, message.steps.observation[k])
        np.testing.assert_array_equal(row.extras["mixture"], message.steps.extras["mixture"][k])
        np.testing.assert_array_equal(ids, np.arange(4))


def test_the_replay_ratio_holds_and_whoever_adds_waits_for_the_learner(scene):
    scene.trainer.start()
    replay = scene.trainer.roles.replay
    for _ in range(60):
        assert scene.trainer.add(scene.rows(), 30.0)
        assert replay.backlog() <= scene.trainer.max_lag
    assert scene.trainer.num_updates > 20
    scene.trainer.pause()
    owed = replay.replay.num_owed() / (replay.batch_size * TINY.meme.replay.trace_length)
    assert owed <= scene.trainer.max_lag
    assert replay.metrics()["ratio"] == pytest.approx(TINY.meme.replay.replay_ratio, rel=0.15)


def test_a_learner_that_is_behind_answers_no_after_the_wait_and_loses_nothing(scene):
    scene.trainer.max_lag = 0.5
    release = threading.Event()
    learn = scene.trainer._learn
    scene.trainer._learn = lambda *asked: release.wait(30) and learn(*asked)
    scene.trainer.start()
    answers = [scene.trainer.add(scene.rows(), 0.2) for _ in range(12)]
    assert answers[0]  # nothing was due yet
    assert not answers[-1]
    release.set()
    assert scene.trainer.add(scene.rows(), 30.0)
    assert scene.trainer.num_rows == {0: 13 * ROWS}


def test_parameters_are_published_every_so_many_updates_and_act_here_too(scene):
    scene.trainer.start()
    for _ in range(40):
        scene.trainer.add(scene.rows(), 30.0)
    scene.trainer.pause()
    assert scene.published == list(range(2, scene.trainer.num_updates + 1, 2))
    scene.trainer.publish()
    held = scene.trainer.roles.inference.state_dict()["policy"]
    for name, value in scene.trainer.roles.learner.parameters().policy.items():
        np.testing.assert_array_equal(held[name], value)


def test_batches_that_are_due_together_are_scored_with_one_question(scene):
    scene.trainer.max_lag = 100.0
    while not scene.trainer.roles.replay.backlog() > 3:
        message = scene.rows()
        scene.trainer._add(message)
    scene.trainer.start()
    deadline = time.monotonic() + 30
    while scene.trainer.roles.replay.due() and time.monotonic() < deadline:
        time.sleep(0.01)
    scene.trainer.pause()
    assert scene.trainer.num_updates >= 4
    assert scene.memory.num_scores < scene.trainer.num_updates


def test_bonuses_asked_together_are_those_asked_one_by_one():
    loop = LocalLoop(build(TINY), overlap=False)
    for _ in range(40):
        loop.step()
    samples = [loop.roles.replay.sample() for _ in range(3)]
    together = loop._relabelled(*samples)
    for sample, found in zip(samples, together, strict=True):
        np.testing.assert_allclose(found, loop._relabelled(sample)[0], rtol=1e-5, atol=1e-7)
    assert not np.allclose(together[0], together[1])


def test_atoms_follow_the_representation_every_so_many_updates():
    scene = Scene(replace(TINY, recode=replace(TINY.recode, reembed_every=5)))
    scene.trainer.expect([0])
    scene.trainer.start()
    for _ in range(40):
        scene.trainer.add(scene.rows(), 30.0)
    scene.trainer.pause()
    assert scene.memory.num_moves == scene.trainer.num_updates // 5 > 2
    scene.trainer.end()


def test_the_lag_of_what_acted_is_reported(scene):
    scene.trainer.start()
    for _ in range(30):
        scene.trainer.add(scene.rows(), 30.0)
    scene.trainer.pause()
    updates = scene.trainer.num_updates
    message = scene.rows(2)._replace(versions=[updates - 3, updates - 1])
    scene.trainer.report()
    scene.trainer.add(message, 1.0)
    report = scene.trainer.report()
    assert report["means"]["runtime/parameter_lag"] == 2.0
    assert scene.trainer.lags == {0: 1.0}


def test_nothing_changes_between_a_pause_and_the_next_start(scene):
    scene.trainer.start()
    for _ in range(30):
        scene.trainer.add(scene.rows(), 30.0)
    scene.trainer.pause()
    before = scene.trainer.state_dict()
    time.sleep(0.1)
    assert_same(before, scene.trainer.state_dict())


def test_a_trainer_without_a_past_refuses_rows():
    scene = Scene()
    with pytest.raises(NotStarted, match="waits for a checkpoint"):
        scene.trainer.add(scene.rows(), 1.0)


def test_what_the_learner_stumbles_over_is_told_to_whoever_adds_rows(scene):
    def stumble(*asked):
        raise FloatingPointError("the loss is not finite")

    scene.trainer._learn = stumble
    scene.trainer.start()
    messages = [scene.rows() for _ in range(40)]
    with pytest.raises(FloatingPointError, match="the loss is not finite"):
        _ = [scene.trainer.add(message, 10.0) for message in messages]


def test_a_state_of_one_process_goes_on_here_with_the_update_that_was_under_way():
    loop = LocalLoop(build(TINY), overlap=False)
    while loop.pending is None or loop.num_updates < 5:
        loop.step()
    state, updates = loop.state_dict(), loop.num_updates
    assert state["loop"]["pending"] is not None
    segments = {name: make() for name, make in loop.segments().items()}
    scene = Scene()
    scene.trainer.load_state_dict(state, segments)
    assert scene.trainer.num_updates == updates + 1
    assert scene.trainer.num_steps == loop.num_steps
    assert scene.trainer.pending is None
    back = LocalLoop(build(TINY), overlap=False)
    parts = {**state, **scene.trainer.state_dict()}
    back.load_state_dict(parts, {name: make() for name, make in scene.trainer.segments().items()})
    assert back.num_updates == updates + 1
    back.step()


def test_rows_of_some_environments_wait_until_all_others_are_there():
    scene = Scene(MAZE, max_lag=100.0)
    whole, parted = scene.trainer.roles.replay, build(MAZE).replay
    shares = share_out(4, 1, 2)
    for _ in range(20):
        message = scene.rows(1)
        row = map_arrays(lambda x: x[0], message.steps)
        state = map_arrays(lambda x: x[0], message.states)
        whole.add(row, state)
        for ids in reversed(shares):
            part = map_arrays(lambda x, ids=ids: x[ids], (row, state))
            parted.add(*part, ids)
    assert whole.num_unrolls == parted.num_unrolls > 1
    assert_same(whole.state_dict(), parted.state_dict())


def test_an_actor_of_an_on_policy_agent_cannot_run_away_from_the_others():
    scene = Scene(MAZE, max_lag=1e9)
    scene.trainer.expect([0, 1])
    scene.trainer.start()
    shares = share_out(4, 1, 2)
    answers = []
    for sequence in range(12):
        message = scene.rows(3)
        part = map_arrays(lambda x: x[:, shares[0]], (message.steps, message.states))
        rows = Rows(0, 1, sequence, part[0], part[1], shares[0], [0] * 3)
        answers.append(scene.trainer.add(rows, 0.1))
    assert answers[0]
    assert not answers[-1]
    scene.trainer.end()


def test_where_it_is_strict_an_unroll_begins_when_all_that_was_learned_acts():
    config = replace(MAZE, vmpo=replace(MAZE.vmpo, strict=True))
    length, num_batches = config.vmpo.unroll_length, config.num_envs // config.vmpo.batch_size
    scene = Scene(config, max_lag=1e9, publish_every=1)
    release, learn = threading.Event(), scene.trainer._learn
    scene.trainer._learn = lambda *asked: release.wait(30) and learn(*asked)
    scene.trainer.expect([0, 1])
    with pytest.raises(NotStarted, match="waits for a checkpoint"):
        scene.trainer.leave(0, 1.0)
    scene.trainer.start()
    shares, sequences = share_out(4, 1, 2), [0, 0]
    whole = scene.rows(length + 1)

    def give(actor, start, stop):
        cut = map_arrays(lambda x: x[start:stop, shares[actor]], (whole.steps, whole.states))
        rows = Rows(actor, 1, sequences[actor], *cut, shares[actor], [0] * (stop - start))
        sequences[actor] += 1
        assert scene.trainer.add(rows, 10.0)

    assert scene.trainer.leave(0, 1.0) == scene.trainer.leave(1, 1.0) == length + 1
    give(0, 0, length + 1)
    assert scene.trainer.leave(0, 0.05) == 0  # the other one is missing
    give(1, 0, 2)
    assert scene.trainer.leave(1, 1.0) == length - 1
    give(1, 2, length + 1)
    assert [scene.trainer.leave(actor, 0.05) for actor in (0, 1)] == [0, 0]  # it learns
    release.set()
    assert [scene.trainer.leave(actor, 30.0) for actor in (0, 1)] == [length, length]
    assert scene.published == [num_batches] == [scene.trainer.num_updates]
    held = scene.trainer.roles.inference.state_dict()["policy"]
    for name, value in scene.trainer.roles.learner.parameters().policy.items():
        np.testing.assert_array_equal(held[name], value)
    scene.trainer.end()
