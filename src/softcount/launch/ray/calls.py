"""Calls between roles on Ray: errors as they were raised, and calls that are made again until answered."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0


class Interrupted(RuntimeError):
    """Whoever waited for an answer was told to stop waiting."""


def get(reference: Any, timeout_s: float | None = None) -> Any:
    """Returns what a call returned, or raises what it raised."""
    try:
        return ray.get(reference, timeout=timeout_s)
    except RayTaskError as error:
        raise (error.cause if isinstance(error.cause, Exception) else error) from None


def until_answered(
    call: Callable[[], Any], timeout_s: float, is_interrupted: Callable[[], bool] = lambda: False
) -> Any:
    """Makes a call until its callee answers: only for calls that may be executed twice."""
    pause = FIRST_PAUSE_S
    while True:
        try:
            return get(call(), timeout_s)
        except (RayActorError, GetTimeoutError) as error:
            if is_interrupted():
                raise Interrupted(str(error)) from None
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)


def end_process(pid: int, node_id: str) -> None:
    """Ends a process on a host, also one that does not react to anything."""
    there = NodeAffinitySchedulingStrategy(node_id, soft=False)
    task = ray.remote(_kill).options(num_cpus=0, max_retries=0, scheduling_strategy=there)
    try:
        ray.get(task.remote(pid), timeout=30)
    except (RayError, GetTimeoutError):
        return  # the host itself is gone, and the process with it


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
