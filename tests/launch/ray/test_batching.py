"""Requests answered together: nobody waits longer than was said, and everybody gets their own answer."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from launch.test_local import TINY

from softcount.launch.build import build
from softcount.launch.ray.batching import Batcher, answer_together
from softcount.roles.actor import Request
from softcount.types import leaves_of, map_arrays


def counting(groups):
    """Answers each number with ten times itself, and notes who was answered together."""

    def answer(numbers):
        groups.append(list(numbers))
        return [10 * number for number in numbers]

    return answer


class Askers:
    """Threads that ask, in an order that the test decides."""

    def __init__(self, batcher):
        self.batcher, self.pool = batcher, ThreadPoolExecutor(8)

    def ask(self, number, after=0):
        """Asks on a thread of its own, when so many wait already."""
        deadline = time.monotonic() + 5
        while len(self.batcher._waiting) != after and time.monotonic() < deadline:
            time.sleep(0.001)
        return self.pool.submit(self.batcher, number)


def test_as_soon_as_all_have_asked_they_are_answered():
    groups = []
    askers = Askers(Batcher(counting(groups), most=3, wait_s=60.0))
    asked = [askers.ask(number, after=number - 1) for number in (1, 2, 3)]
    assert [one.result(5) for one in asked] == [10, 20, 30]
    assert groups == [[1, 2, 3]]


def test_who_asks_alone_is_answered_after_the_wait_and_not_before():
    groups = []
    askers = Askers(Batcher(counting(groups), most=2, wait_s=0.2))
    first = askers.ask(7)
    time.sleep(0.02)
    assert not first.done()
    assert first.result(5) == 70
    asked = [askers.ask(1), askers.ask(2, after=1)]
    assert [one.result(5) for one in asked] == [10, 20]
    assert groups == [[7], [1, 2]]


def test_a_late_third_waits_for_the_next_group_only():
    groups, release = [], threading.Event()
    counted = counting(groups)
    batcher = Batcher(lambda numbers: release.wait(5) and counted(numbers), most=2, wait_s=0.05)
    askers = Askers(batcher)
    asked = [askers.ask(1), askers.ask(2, after=1), askers.ask(3)]
    release.set()
    assert [one.result(5) for one in asked] == [10, 20, 30]
    assert sorted(groups) == [[1, 2], [3]]
    assert (batcher.num_requests, batcher.num_batches) == (3, 2)


def test_an_error_reaches_everybody_of_its_group_and_nobody_else():
    def answer(numbers):
        if 0 in numbers:
            raise ZeroDivisionError("zero was asked")
        return [1 / number for number in numbers]

    askers = Askers(Batcher(answer, most=2, wait_s=60.0))
    bad = [askers.ask(0), askers.ask(1, after=1)]
    assert [type(one.exception(5)) for one in bad] == [ZeroDivisionError] * 2
    good = [askers.ask(2), askers.ask(4, after=1)]
    assert [one.result(5) for one in good] == [0.5, 0.25]


def test_who_waited_for_a_slow_answer_does_not_cut_the_next_group_short():
    groups, release = [], threading.Event()
    counted = counting(groups)
    batcher = Batcher(lambda numbers: release.wait(5) and counted(numbers), most=2, wait_s=0.05)
    askers = Askers(batcher)
    asked = [askers.ask(1), askers.ask(2, after=1)]
    batcher.wait_s = 60.0
    asked.append(askers.ask(3))
    time.sleep(0.3)  # the first one's wait is over, and its answer is still being made
    asked.append(askers.ask(4, after=1))
    release.set()
    assert [one.result(5) for one in asked] == [10, 20, 30, 40]
    assert sorted(groups) == [[1, 2], [3, 4]]


@pytest.mark.parametrize("sizes", [(4,), (1, 3), (2, 1, 1), (1, 1, 1, 1)])
def test_any_grouping_of_actors_gives_every_row_the_same_answer(sizes):
    roles = build(TINY)
    roles.inference.load(roles.learner.parameters())
    request = roles.actor.request()
    whole = roles.inference(request)
    borders = np.cumsum([0, *sizes])
    parts: list[Request] = [map_arrays(lambda x, a=a, b=b: x[a:b], request) for a, b in pairwise(borders)]
    for order in (range(len(parts)), reversed(range(len(parts)))):
        order = list(order)
        answers = answer_together(roles.inference, [parts[i] for i in order])
        for i, answer in zip(order, answers, strict=True):
            rows = slice(borders[i], borders[i + 1])
            expected = map_arrays(lambda x, rows=rows: x[rows], whole)
            for found, leaf in zip(leaves_of(answer), leaves_of(expected), strict=True):
                np.testing.assert_allclose(found, leaf, rtol=1e-5, atol=1e-6)
