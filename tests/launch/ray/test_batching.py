"""Requests answered together: nobody waits longer than was said, and everybody gets their own answer."""

import asyncio
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


def test_as_soon_as_all_have_asked_they_are_answered():
    groups = []

    async def ask():
        batcher = Batcher(counting(groups), most=3, wait_s=60.0)
        return await asyncio.wait_for(asyncio.gather(*map(batcher, (1, 2, 3))), 5)

    assert asyncio.run(ask()) == [10, 20, 30]
    assert groups == [[1, 2, 3]]


def test_who_asks_alone_is_answered_after_the_wait_and_not_before():
    groups = []

    async def ask():
        batcher = Batcher(counting(groups), most=2, wait_s=0.05)
        first = asyncio.ensure_future(batcher(7))
        await asyncio.sleep(0.01)
        assert not first.done()
        assert await asyncio.wait_for(first, 5) == 70
        return await asyncio.wait_for(asyncio.gather(batcher(1), batcher(2)), 5)

    assert asyncio.run(ask()) == [10, 20]
    assert groups == [[7], [1, 2]]


def test_a_late_third_waits_for_the_next_group_only():
    groups = []

    async def ask():
        batcher = Batcher(counting(groups), most=2, wait_s=0.02)
        answers = await asyncio.wait_for(asyncio.gather(*map(batcher, (1, 2, 3))), 5)
        return answers, batcher.num_requests, batcher.num_batches

    assert asyncio.run(ask()) == ([10, 20, 30], 3, 2)
    assert groups == [[1, 2], [3]]


def test_an_error_reaches_everybody_of_its_group_and_nobody_else():
    def answer(numbers):
        if 0 in numbers:
            raise ZeroDivisionError("zero was asked")
        return [1 / number for number in numbers]

    async def ask():
        batcher = Batcher(answer, most=2, wait_s=60.0)
        bad = await asyncio.gather(batcher(0), batcher(1), return_exceptions=True)
        return bad, await asyncio.gather(batcher(2), batcher(4))

    bad, good = asyncio.run(ask())
    assert [type(error) for error in bad] == [ZeroDivisionError] * 2
    assert good == [0.5, 0.25]


def test_one_that_gave_up_is_not_answered_and_holds_nobody_up():
    groups = []

    async def ask():
        batcher = Batcher(counting(groups), most=2, wait_s=0.05)
        gone = asyncio.ensure_future(batcher(1))
        await asyncio.sleep(0)
        gone.cancel()
        return await asyncio.wait_for(batcher(2), 5)

    assert asyncio.run(ask()) == 20
    assert groups == [[2]]


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
