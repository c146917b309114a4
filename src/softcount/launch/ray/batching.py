"""Requests of several actors answered together: one pass for all costs little more than one for one.

    actor 0 ──┐
    actor 1 ──┼──▶ waits for the others, but not longer than `wait_s` ──▶ one answer, cut apart again
    actor 2 ──┘

It knows asyncio and nothing of Ray.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np

from softcount.types import leaves_of, map_arrays

T = TypeVar("T")
R = TypeVar("R")


class Batcher(Generic[T, R]):
    """Collects requests until all who may ask have asked, or the first has waited long enough.

    >>> async def ask() -> list[int]:
    ...     batcher = Batcher(lambda numbers: [10 * n for n in numbers], most=2, wait_s=1.0)
    ...     return await asyncio.gather(batcher(1), batcher(2))
    >>> asyncio.run(ask())
    [10, 20]
    """

    def __init__(self, answer: Callable[[list[T]], list[R]], *, most: int, wait_s: float) -> None:
        self._answer, self.most, self.wait_s = answer, most, wait_s
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self.num_requests, self.num_batches = 0, 0

    async def __call__(self, request: T) -> R:
        """Returns the answer to one request."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[R] = loop.create_future()
        self._waiting.append((request, future))
        if len(self._waiting) >= self.most:
            self._flush()
        elif self._timer is None:
            self._timer = loop.call_later(self.wait_s, self._flush)
        return await future

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        asked = [(request, future) for request, future in waiting if not future.done()]  # some gave up
        if not asked:
            return
        self.num_requests += len(asked)
        self.num_batches += 1
        try:
            answers = self._answer([request for request, _ in asked])
        except Exception as error:  # whoever asked is told
            for _, future in asked:
                future.set_exception(error)
            return
        for (_, future), answer in zip(asked, answers, strict=True):
            future.set_result(answer)


def answer_together(answer: Callable[[Any], Any], requests: list[Any]) -> list[Any]:
    """Puts requests side by side, asks once, and cuts the answer apart by their rows.

    >>> answer_together(lambda x: (2 * x[0],), [(np.ones(2),), (np.zeros(1),)])
    [(array([2., 2.]),), (array([0.]),)]
    """
    if len(requests) == 1:
        return [answer(requests[0])]
    whole = answer(map_arrays(lambda *leaves: np.concatenate(leaves), *requests))
    borders = np.cumsum([0, *(len(leaves_of(request)[0]) for request in requests)])
    return [map_arrays(lambda x, a=a, b=b: x[a:b], whole) for a, b in pairwise(borders.tolist())]
