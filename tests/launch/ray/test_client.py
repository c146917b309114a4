"""The client: the same stamp until it is answered, longer pauses each time, and the memory's own methods."""

import inspect

import numpy as np
import pytest

from softcount import store
from softcount.launch.ray.client import MemoryClient, MemoryUnreachable, Patience, Refused, Unavailable
from softcount.launch.ray.stamps import Answer, new_incarnation
from softcount.roles.memory_server import MemoryServer
from softcount.types import Features

BATCH = Features(embedding=np.ones((2, 3), np.float32)), np.arange(2), np.zeros(2, bool), np.ones(2, bool)
DONE = Answer("done", 3, 8, np.float32([1, 2]))


class Script:
    """A memory that does what a script says; time passes only while somebody sleeps or waits."""

    def __init__(self, *lines):
        self.lines, self.requests, self.pauses, self.known, self.asked = list(lines), [], [], [], []
        self.now = 0.0

    def next(self, timeout_s):
        line = self.lines.pop(0)
        if isinstance(line, Exception):
            self.now += timeout_s
            raise line
        return line

    def request(self, request, known_epoch, timeout_s):
        self.requests.append(request)
        self.known.append(known_epoch)
        return self.next(timeout_s)

    def ask(self, method, arguments, timeout_s):
        self.asked.append((method, *arguments))
        return self.next(timeout_s)

    def hold(self, actor, seconds, timeout_s):
        self.asked.append(("hold", actor, seconds))
        return self.next(timeout_s)

    def sleep(self, seconds):
        self.pauses.append(seconds)
        self.now += seconds


def client_of(script, **patience):
    return MemoryClient(
        script,
        actor=4,
        incarnation=9,
        patience=Patience(**patience),
        sleep=script.sleep,
        clock=lambda: script.now,
    )


def test_each_batch_has_the_next_number_and_carries_all_that_the_memory_needs():
    script = Script(DONE, DONE._replace(position=9))
    client = client_of(script)
    paid = client(*BATCH, np.array([5, 6]), {"grid": np.zeros((2, 2), np.uint8)})
    assert (paid.tolist(), paid.dtype, paid.flags.writeable) == ([1.0, 2.0], np.float32, True)
    client(*BATCH)
    assert [(r.actor, r.incarnation, r.sequence, r.kind) for r in script.requests] == [
        (4, 9, 0, "observe"),
        (4, 9, 1, "observe"),
    ]
    assert (client.epoch, client.position) == (3, 9)
    body = store.unpack(script.requests[0].body)
    assert body["embedding"].tolist() == [[1, 1, 1], [1, 1, 1]]
    assert body["env_ids"].tolist() == [0, 1]
    assert (body["is_first"].tolist(), body["is_terminal"].tolist()) == ([False] * 2, [True] * 2)
    assert (body["task_ids"].tolist(), body["observation"]["grid"].shape) == ([5, 6], (2, 2))
    assert (body["surprise"], body["place"]) == (None, None)


def test_what_was_not_answered_is_sent_again_with_the_same_stamp_after_ever_longer_pauses():
    script = Script(*[Unavailable("gone")] * 6, DONE)
    client = client_of(script, call_timeout_s=2, first_pause_s=0.1, longest_pause_s=0.5)
    assert client(*BATCH).tolist() == [1.0, 2.0]
    assert len(set(script.requests)) == 1
    assert script.pauses == [0.1, 0.2, 0.4, 0.5, 0.5, 0.5]
    assert client.num_retries == 6
    assert client.waited_s == pytest.approx(6 * 2 + sum(script.pauses))


@pytest.mark.parametrize("verdict", ["superseded", "full"])
def test_a_memory_that_cannot_count_now_is_asked_again(verdict):
    script = Script(Answer(verdict, 1, -1, None, "not now"), DONE)
    client = client_of(script)
    client(*BATCH)
    assert len(set(script.requests)) == 1
    assert (client.num_retries, client.sequence) == (1, 1)


def test_an_answer_of_an_older_memory_than_the_last_is_not_taken():
    script = Script(DONE, DONE._replace(epoch=2), DONE._replace(position=9))
    client = client_of(script)
    client(*BATCH)
    client(*BATCH)
    assert script.known == [0, 3, 3]
    assert script.requests[1] == script.requests[2]
    assert client.position == 9


@pytest.mark.parametrize("verdict", ["gap", "older", "answered", "reused"])
def test_a_refusal_is_an_error_at_once(verdict):
    script = Script(Answer(verdict, 1, -1, None, "for a reason"))
    with pytest.raises(Refused, match=f"{verdict}: for a reason") as caught:
        client_of(script)(*BATCH)
    assert caught.value.answer.verdict == verdict
    assert script.pauses == []


def test_a_batch_that_the_memory_did_not_like_has_used_its_number():
    script = Script(Answer("failed", 1, 7, None, "ValueError: bad"), DONE)
    client = client_of(script)
    with pytest.raises(Refused, match="ValueError: bad"):
        client(*BATCH)
    client(*BATCH)
    assert [request.sequence for request in script.requests] == [0, 1]


def test_held_is_waited_for_and_is_no_failure():
    script = Script(*[Answer("held", 1, -1)] * 3, DONE)
    client = client_of(script, held_pause_s=0.25)
    client(*BATCH)
    assert (script.pauses, client.num_retries) == ([0.25] * 3, 0)


def test_patience_ends_and_says_how_long_and_why():
    script = Script(*[Unavailable("no route")] * 9)
    client = client_of(script, call_timeout_s=3, give_up_s=7, first_pause_s=1, longest_pause_s=1)
    with pytest.raises(MemoryUnreachable, match="did not answer actor 4 for 7 seconds: no route"):
        client(*BATCH)
    assert len(script.requests) == 2  # at 3, and at 7 seconds
    assert client.sequence == 0  # whoever tries again sends the same


def test_questions_are_asked_again_too():
    script = Script(Unavailable("gone"), {"reward": 1.0})
    client = client_of(script)
    assert client.metrics() == {"reward": 1.0}
    assert script.asked == [("metrics",), ("metrics",)]


def test_the_client_can_be_put_where_the_memory_stands():
    for name, method in inspect.getmembers(MemoryServer, inspect.isfunction):
        if name.startswith("_") and name != "__call__":
            continue
        wanted = list(inspect.signature(method).parameters)
        found = list(inspect.signature(getattr(MemoryClient, name)).parameters)
        assert found[: len(wanted)] == wanted, name


def test_later_lives_have_greater_numbers():
    first = new_incarnation()
    assert new_incarnation(at_least=first) > first
    assert new_incarnation(at_least=first + 10**15) == first + 10**15 + 1
