"""The replay server: how batches are weighed, and that it starts again where it was."""

import numpy as np
import pytest

from softcount.replay.config import ReplayConfig
from softcount.replay.sequences import SequenceReplay
from softcount.roles.replay_server import ReplayServer
from softcount.types import ArraySpec, Step

NUM_ENVS = 4
CONFIG = ReplayConfig(
    trace_length=6, period=3, capacity=30, min_traces=2, newest=0, priority_exponent=0.7, replay_ratio=2.0
)


def server_of(exponent, seed=0):
    replay = SequenceReplay(CONFIG, NUM_ENVS, ArraySpec((2,), "float32"), (np.zeros((1, 3), np.float32),))
    return ReplayServer(replay, batch_size=5, seed=seed, importance_exponent=exponent)


def feed(server, num_steps=40, seed=0):
    """Adds rows of one endless episode in each environment."""
    rng = np.random.default_rng(seed)
    no = np.zeros(NUM_ENVS, bool)
    for t in range(num_steps):
        server.add(
            Step(
                observation=rng.normal(size=(NUM_ENVS, 2)).astype(np.float32),
                prev_action=rng.integers(4, size=NUM_ENVS),
                reward=rng.normal(size=NUM_ENVS).astype(np.float32),
                intrinsic=rng.random(NUM_ENVS).astype(np.float32),
                is_first=np.full(NUM_ENVS, t == 0),
                is_last=no,
                is_terminal=no,
                action=rng.integers(4, size=NUM_ENVS),
                extras={"task": np.arange(NUM_ENVS)},
            ),
            (rng.random((NUM_ENVS, 3)).astype(np.float32),),
        )


def give_priorities(server):
    """Gives every trace that can be drawn a priority of its own; returns how likely each is, by id."""
    rng, priorities = np.random.default_rng(3), {}
    while len(priorities) < server.replay.num_traces:
        for number in server.sample().ids.tolist():
            priorities.setdefault(number, float(rng.uniform(0.1, 5.0)))
    server.reprioritise(np.array(list(priorities)), np.array(list(priorities.values())))
    total = sum(x**CONFIG.priority_exponent for x in priorities.values())
    return {number: x**CONFIG.priority_exponent / total for number, x in priorities.items()}


@pytest.mark.parametrize("exponent", [0.0, 0.6, 1.0])
def test_importance_weights_undo_the_sampling_as_far_as_configured(exponent):
    server = server_of(exponent)
    feed(server)
    likely = give_priorities(server)
    assert len(likely) > 10
    seen = set()
    for _ in range(10):
        sample = server.sample()
        raw = [(len(likely) * likely[number]) ** -exponent for number in sample.ids.tolist()]
        np.testing.assert_allclose(sample.weights, [w / max(raw) for w in raw], rtol=1e-6)
        seen |= set(sample.weights.tolist())
    assert seen == {1.0} if exponent == 0 else len(seen) > 10


def test_without_an_exponent_all_traces_weigh_the_same():
    server = ReplayServer(server_of(0.5).replay, batch_size=5, seed=0)
    feed(server)
    give_priorities(server)
    assert (server.sample().weights == 1).all()


def test_a_batch_is_what_its_replay_drew():
    one, two = server_of(0.6), server_of(0.6)
    for server in (one, two):
        feed(server)
    for _ in range(5):
        sample = one.sample()
        drawn = two.replay.sample(5, two.rng)
        np.testing.assert_array_equal(sample.ids, drawn.ids)
        for name in ("observation", "prev_action", "reward", "intrinsic", "is_first", "action"):
            found, expected = getattr(sample.sequence.steps, name), getattr(drawn.sequence.steps, name)
            np.testing.assert_array_equal(found, expected, err_msg=name)
        np.testing.assert_array_equal(sample.sequence.state[0], drawn.sequence.state[0])
    assert one.metrics() == two.metrics()


def test_a_restored_server_draws_the_same_from_the_same_segments():
    one, two = server_of(0.6), server_of(0.6, seed=9)
    feed(one)
    give_priorities(one)
    feed(two, seed=5)  # a used one must forget what it was
    state = one.state_dict()
    names = one.segment_names()
    assert names
    two.load_state_dict(state, {name: one.segment(name) for name in names})
    for _ in range(5):
        first, second = one.sample(), two.sample()
        np.testing.assert_array_equal(first.ids, second.ids)
        np.testing.assert_array_equal(first.weights, second.weights)
        np.testing.assert_array_equal(first.sequence.steps.observation, second.sequence.steps.observation)
        np.testing.assert_array_equal(
            first.sequence.steps.extras["task"], second.sequence.steps.extras["task"]
        )
    assert one.num_parts() == two.num_parts() > 1
    for number in range(one.num_parts()):
        np.testing.assert_array_equal(one.part(number), two.part(number))
