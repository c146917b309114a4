"""The on-policy queue: every row is learned from exactly once, with the state before it; state on disk."""

import numpy as np
import pytest

from softcount import store
from softcount.replay.queue import OnPolicyQueue
from softcount.types import Step

NUM_ENVS = 6


def row_of(t, num_envs=NUM_ENVS, tasks=None):
    """A row whose every number tells its time and environment."""
    marks = 100.0 * t + np.arange(num_envs)
    first = np.full(num_envs, t % 5 == 0)
    return Step(
        observation={"image": np.stack([marks] * 3, 1).astype(np.float32)},
        prev_action=np.stack([marks - 100] * 2, 1).astype(np.float32),  # continuous actions of two numbers
        reward=marks.astype(np.float32),
        intrinsic=-marks.astype(np.float32),
        is_first=first,
        is_last=np.full(num_envs, t % 5 == 4),
        is_terminal=np.zeros(num_envs, bool),
        action=np.stack([marks] * 2, 1).astype(np.float32),
        extras={"task": np.zeros(num_envs, int) if tasks is None else tasks, "log_prob": marks},
    )


def state_of(t, num_envs=NUM_ENVS):
    return (np.full((num_envs, 2), t) + 0.1 * np.arange(num_envs)[:, None],)


def feed(queue, start, stop, tasks=None):
    for t in range(start, stop):
        queue.add(row_of(t, queue.num_envs, tasks), state_of(t, queue.num_envs))


def test_every_environment_is_in_one_batch_of_an_unroll_with_all_its_rows_and_the_state_before_them():
    queue = OnPolicyQueue(4, 2, NUM_ENVS, seed=0)
    for unroll in range(3):
        feed(queue, 5 + 4 * (unroll - 1) if unroll else 0, 5 + 4 * unroll)
        met = []
        while queue.due():
            sample = queue.sample()
            steps = sample.sequence.steps
            assert sample.weights is None
            envs = (steps.reward[0] % 100).astype(int)
            times = 4 * unroll + np.arange(5)
            expected = 100.0 * times[:, None] + envs
            np.testing.assert_array_equal(steps.reward, expected)
            np.testing.assert_array_equal(steps.intrinsic, -expected)
            np.testing.assert_array_equal(steps.observation["image"][..., 2], expected)
            np.testing.assert_array_equal(steps.action[..., 1], expected)
            np.testing.assert_array_equal(steps.extras["log_prob"], expected)
            np.testing.assert_array_equal(steps.is_first[:, 0], times % 5 == 0)
            np.testing.assert_allclose(sample.sequence.state[0][:, 0], 4 * unroll + 0.1 * envs)
            met += envs.tolist()
        assert sorted(met) == list(range(NUM_ENVS))
    assert queue.metrics() == {"unrolls": 3.0, "batches": 0.0}


def test_nothing_is_due_before_an_unroll_is_whole():
    queue = OnPolicyQueue(4, 3, NUM_ENVS, seed=0)
    feed(queue, 0, 4)
    assert not queue.due()
    with pytest.raises(ValueError, match="holds no batch"):
        queue.sample()
    feed(queue, 4, 5)
    assert queue.due()
    with pytest.raises(TypeError, match="no order"):
        queue.reprioritise(np.zeros(3, int), np.ones(3))


def test_orders_are_random_and_seeded():
    def orders(seed):
        queue = OnPolicyQueue(1, NUM_ENVS, NUM_ENVS, seed=seed)
        feed(queue, 0, 12)
        return [queue.sample().sequence.steps.reward[0] % 100 for _ in range(11)]

    np.testing.assert_array_equal(orders(1), orders(1))
    assert len({tuple(order) for order in orders(1)}) > 5
    assert not np.array_equal(orders(1), orders(2))


def test_every_batch_holds_every_task_equally():
    tasks = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    queue = OnPolicyQueue(2, 4, 8, seed=0)
    feed(queue, 0, 41, tasks)
    for _ in range(40):  # 20 unrolls, 2 batches each
        assert sorted(queue.sample().sequence.steps.extras["task"][0].tolist()) == [0, 0, 1, 1]
    uneven = OnPolicyQueue(2, 1, 8, seed=0)
    with pytest.raises(ValueError, match="a batch that 2 divides"):
        feed(uneven, 0, 3, tasks)


@pytest.mark.parametrize("cut", range(1, 12))
def test_a_state_written_to_disk_continues_bit_for_bit_wherever_it_was_taken(cut, tmp_path):
    def run(queue, start, stop):
        given = []
        for t in range(start, stop):
            queue.add(row_of(t), state_of(t))
            if t % 2 and queue.due():
                given.append(queue.sample().sequence)
        return given

    one, other = (OnPolicyQueue(3, 2, NUM_ENVS, seed=seed) for seed in (4, 9))
    run(one, 0, cut)
    store.save(tmp_path / "queue", one.state_dict(), kind="queue")
    other.load_state_dict(store.load(tmp_path / "queue", kind="queue"), {})
    first, second = run(one, cut, 24), run(other, cut, 24)
    assert len(first) == len(second) > 5
    for a, b in zip(first, second, strict=True):
        np.testing.assert_equal(a.steps._asdict(), b.steps._asdict())
        np.testing.assert_array_equal(a.state[0], b.state[0])
    assert one.segment_names() == []


def test_all_observations_that_wait_can_be_looked_through():
    queue = OnPolicyQueue(3, 2, NUM_ENVS, seed=0)
    feed(queue, 0, 6)
    seen = np.concatenate([queue.part(i)["image"][:, 0] for i in range(queue.num_parts())])
    expected = [100.0 * t + e for t in range(4) for e in range(NUM_ENVS)]  # the unroll that was cut
    expected += [100.0 * t + e for t in range(3, 6) for e in range(NUM_ENVS)]  # the open one
    assert sorted(seen.tolist()) == sorted(expected)


@pytest.mark.parametrize(
    ("fields", "says"),
    [((0, 2, 6), "unroll_length is 0"), ((4, 4, 6), "a divisor of the 6"), ((4, 0, 6), "batch_size is 0")],
)
def test_what_cannot_be_cut_evenly_is_refused(fields, says):
    with pytest.raises(ValueError, match=says):
        OnPolicyQueue(*fields, seed=0)
