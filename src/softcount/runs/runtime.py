"""Where the roles of a run live: in this process, or each in its own on Ray."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from softcount.config import RunConfig
from softcount.hints import install
from softcount.launch.local import LocalLoop
from softcount.measure.coverage import Coverage
from softcount.stats import Means
from softcount.types import State


class Loop(Protocol):
    """What steps the roles, wherever they are."""

    roles: Any
    num_steps: int
    num_updates: int
    coverage: Coverage | None
    means: Means
    seconds: dict[str, float]
    learner_seconds: float
    evaluator: Any  # one of its own, or None

    def step(self) -> None: ...
    def look(self) -> None: ...
    def close(self) -> None: ...
    def state_dict(self) -> State: ...
    def segments(self) -> dict[str, Callable[[], State]]: ...
    def load_state_dict(self, state: State, segments: dict[str, State]) -> None: ...


def start_loop(config: RunConfig, folder: Path, make_local: Callable[[RunConfig], LocalLoop]) -> Loop:
    """Starts the roles where the configuration says; `folder` is the run's."""
    if config.runtime.kind == "local":
        return make_local(config)
    if importlib.util.find_spec("ray") is None:
        raise ImportError(f"runtime.kind is 'ray', which needs Ray: {install('ray')}")
    if config.runtime.mode == "deterministic":
        from softcount.launch.ray.proxies import LockstepLoop

        return LockstepLoop(config)
    from softcount.launch.ray.free import FreeLoop

    return FreeLoop(config, folder)
