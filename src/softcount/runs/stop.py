"""Stopping a run between two steps instead of in the middle of one.

The first Ctrl-C, or the SIGTERM that schedulers send, only asks to stop: the step under way is
finished and a checkpoint taken. A second Ctrl-C stops at once.
"""

from __future__ import annotations

import signal
from types import FrameType, TracebackType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class StopOnSignal:
    """Says whether the process was asked to stop while this was entered.

    >>> with StopOnSignal() as is_stopped:
    ...     before = is_stopped()
    ...     signal.raise_signal(signal.SIGTERM)
    ...     (before, is_stopped())
    (False, True)
    """

    def __init__(self) -> None:
        self._is_stopped = False
        self._handlers: dict[signal.Signals, Any] = {}

    def __call__(self) -> bool:
        return self._is_stopped

    def __enter__(self) -> StopOnSignal:
        for number in SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup: stays ignored
                self._handlers[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self._is_stopped and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._is_stopped = True
