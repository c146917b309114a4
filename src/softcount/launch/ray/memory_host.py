"""The process of the shared memory: one thread around `once.Once`, and how it is started and called.

It loads no torch, so it is back soon after it was killed. Ray starts it anew by itself and repeats no
call: a call that is repeated by Ray would come in another order, and only the client knows the stamp.
"""

from __future__ import annotations

import errno
import logging
import time
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from softcount.launch.memory_plan import MemoryPlan
from softcount.launch.ray.client import Unavailable
from softcount.launch.ray.journal import Superseded
from softcount.launch.ray.once import Once, OnceConfig
from softcount.launch.ray.stamps import Answer, Pulse, Request
from softcount.types import State

RETRY_SECONDS = 0.5


class MemoryHost:
    """What Ray runs: every method is short, and one runs at a time."""

    def __init__(self, plan: MemoryPlan, folder: str, config: OnceConfig) -> None:
        while True:
            try:
                self._once = Once(plan.build(), Path(folder), config)
            except OSError as error:
                if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                    raise
                logging.getLogger(__name__).warning("the memory waits for space in %s: %s", folder, error)
                time.sleep(RETRY_SECONDS)
            else:
                return

    def request(self, request: Request, known_epoch: int) -> Answer:
        return self._once.request(request, known_epoch)

    def ask(self, method: str, *arguments: Any) -> Any:
        return self._once.ask(method, *arguments)

    def hold(self, actor: int, seconds: float) -> int:
        return self._once.hold(actor, seconds)

    def ping(self) -> Pulse:
        return self._once.pulse()

    def checkpoint(self) -> State:
        return self._once.checkpoint()

    def close(self) -> None:
        """Writes what is to be written; the process can then be ended."""
        self._once.close()


def start(
    plan: MemoryPlan,
    folder: Path,
    *,
    namespace: str,
    name: str = "memory",
    config: OnceConfig | None = None,
    node_id: str | None = None,
) -> Any:
    """Starts the memory of a folder as a named actor, on the host that has the folder; returns its handle."""
    options: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "max_restarts": -1,
        "max_task_retries": 0,
        "max_concurrency": 1,
        "num_cpus": 0,
    }
    if node_id is not None:
        options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(node_id, soft=False)
    actor = ray.remote(MemoryHost).options(**options)
    return actor.remote(plan, str(folder.absolute()), config or OnceConfig())


class RayCalls:
    """How a client calls a named memory on Ray; follows it when another process takes the name."""

    def __init__(self, namespace: str, name: str = "memory") -> None:
        self.namespace, self.name = namespace, name
        self._handle: Any = None

    def request(self, request: Request, known_epoch: int, timeout_s: float) -> Answer:
        return self._call("request", (request, known_epoch), timeout_s)  # type: ignore[no-any-return]

    def ask(self, method: str, arguments: tuple[Any, ...], timeout_s: float) -> Any:
        return self._call("ask", (method, *arguments), timeout_s)

    def hold(self, actor: int, seconds: float, timeout_s: float) -> int:
        return int(self._call("hold", (actor, seconds), timeout_s))

    def _call(self, method: str, arguments: tuple[Any, ...], timeout_s: float) -> Any:
        try:
            if self._handle is None:
                self._handle = ray.get_actor(self.name, self.namespace)
            return ray.get(getattr(self._handle, method).remote(*arguments), timeout=timeout_s)
        except RayTaskError as error:  # the memory raised it
            if isinstance(error.cause, Superseded):
                self._handle = None
                raise Unavailable(str(error.cause)) from error
            raise error.cause from error
        except (RayActorError, GetTimeoutError, ValueError) as error:  # ValueError: nobody has that name
            self._handle = None
            raise Unavailable(f"{type(error).__name__}: {error}") from error
        except RayError as error:
            raise Unavailable(f"{type(error).__name__}: {error}") from error
