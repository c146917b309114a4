"""Requests of several actors answered together: one pass for all costs little more than one for one.

    actor 0 ──┐
    actor 1 ──┼──▶ waits for the others, but not longer than `wait_s` ──▶ one answer, cut apart again
    actor 2 ──┘

Each request comes on a thread of its own. It knows nothing of Ray.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, TimeoutError
from itertools import pairwise
from typing import Any, Generic, TypeVar

import numpy as np

from softcount.types import leaves_of, map_arrays

T = TypeVar("T")
R = TypeVar("R")
Group = list[tuple[T, "Future[R]"]]


class Batcher(Generic[T, R]):
    """Collects requests until all who may ask have asked, or the first has waited long enough.

    Who completes a group answers it; if nobody does, its first one.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> batcher = Batcher(lambda numbers: [10 * n for n in numbers], most=2, wait_s=1.0)
    >>> with ThreadPoolExecutor(2) as pool:
    ...     list(pool.map(batcher, (1, 2)))
    [10, 20]
    """

    def __init__(self, answer: Callable[[list[T]], list[R]], *, most: int, wait_s: float) -> None:
        self._answer, self.most, self.wait_s = answer, most, wait_s
        self._waiting: Group[T, R] = []
        self._lock = threading.Lock()
        self.num_requests, self.num_batches = 0, 0

    def __call__(self, request: T) -> R:
        """Returns the answer to one request."""
        mine: Future[R] = Future()
        with self._lock:
            self._waiting.append((request, mine))
            is_first = len(self._waiting) == 1
            group = self._take() if len(self._waiting) >= self.most else []
        if is_first and not group:
            try:
                return mine.result(self.wait_s)
            except TimeoutError:
                with self._lock:
                    is_waiting = bool(self._waiting) and self._waiting[0][1] is mine
                    group = self._take() if is_waiting else []
        if group:
            self._answer_all(group)
        return mine.result()

    def _take(self) -> Group[T, R]:
        group, self._waiting = self._waiting, []
        self.num_requests += len(group)
        self.num_batches += 1
        return group

    def _answer_all(self, group: Group[T, R]) -> None:
        try:
            answers = self._answer([request for request, _ in group])
        except Exception as error:  # whoever asked is told
            for _, future in group:
                future.set_exception(error)
            return
        for (_, future), answer in zip(group, answers, strict=True):
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
