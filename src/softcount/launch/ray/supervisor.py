"""Whoever watches the roles: asks each for a sign of life, ends those that hang, says who came back.

Ray itself starts a process anew that has died. It does not notice one that hangs, and it does not know
what a new process needs. A role that is silent for `hang_seconds` is ended, so that Ray starts another.
"""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayActorError

from softcount.launch.ray.calls import end_process, get, until_answered

STATUS = "status.json"
PING_SECONDS = 1.0
START_SECONDS = 180.0
"""How long a process may take to build its role."""


@dataclass
class Watched:
    """One role, and what is known of it."""

    name: str
    handle: Any
    boot: str = ""  # of the process that was heard last
    pid: int = 0
    host: str = ""
    node_id: str = ""
    is_ready: bool = True
    numbers: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    restarts: int = 0
    heard: float = field(default_factory=time.monotonic)
    asked: float = 0.0
    answer: Any = None  # where the next sign of life will be
    is_away: bool = True  # it starts, or is started anew

    def take(self, pulse: Any) -> bool:
        """Takes a sign of life in; says whether another process gave it than last time."""
        now = time.monotonic()
        boot = str(getattr(pulse, "boot", "") or f"{pulse.host} {pulse.pid} {getattr(pulse, 'epoch', 0)}")
        numbers = dict(getattr(pulse, "numbers", {}) or {"requests": float(getattr(pulse, "position", 0))})
        is_same = boot == self.boot
        if is_same:
            passed = max(now - self.heard, 1e-9)
            self.rates = {name: (x - self.numbers.get(name, 0.0)) / passed for name, x in numbers.items()}
        came_back = bool(self.boot) and not is_same
        self.boot, self.pid, self.host, self.numbers = boot, pulse.pid, pulse.host, numbers
        self.node_id = getattr(pulse, "node_id", self.node_id)
        self.is_ready = getattr(pulse, "is_ready", True)
        self.restarts += came_back
        self.heard, self.is_away, self.answer = now, False, None
        return came_back

    def trust(self) -> None:
        """Takes it for ready, whatever it said before: a sign of life on its way is not listened to."""
        self.is_ready, self.answer, self.asked = True, None, time.monotonic()


class Supervisor:
    """Asks all roles now and then; `tick` is called often and never waits."""

    def __init__(self, folder: Path | None, node_id: str, hang_seconds: float) -> None:
        self.folder, self.node_id, self.hang_seconds = folder, node_id, hang_seconds
        self.roles: dict[str, Watched] = {}
        self._written = 0.0

    def watch(self, name: str, handle: Any) -> None:
        self.roles[name] = Watched(name, handle, node_id=self.node_id)

    def tick(self, describe: Callable[[], dict[str, Any]] = dict) -> list[str]:
        """Asks, listens, ends what hangs; returns the names of those that came back as new processes."""
        back = [role.name for role in self.roles.values() if self._attend(role)]
        if time.monotonic() - self._written > PING_SECONDS:
            self._written = time.monotonic()
            self.write_status(describe())
        return back

    def _attend(self, role: Watched) -> bool:
        now = time.monotonic()
        if role.answer is None and now - role.asked > PING_SECONDS:
            role.asked, role.answer = now, role.handle.ping.remote()
        if role.answer is None:
            return False
        done, _ = ray.wait([role.answer], timeout=0)
        if done:
            try:
                return role.take(get(role.answer))
            except RayActorError as error:
                if "creation task" in str(error):  # its last line is what the role said
                    raise RuntimeError(
                        f"{role.name} cannot be started: {str(error).strip().splitlines()[-1]}"
                    ) from error
                role.answer, role.is_away = None, True
            except Exception as error:
                raise RuntimeError(f"{role.name} failed: {type(error).__name__}: {error}") from error
        patience = START_SECONDS if role.is_away else self.hang_seconds
        if now - role.heard > patience and role.pid:
            end_process(role.pid, role.node_id)
            role.answer, role.is_away, role.heard = None, True, now
        elif now - role.heard > patience:
            raise RuntimeError(f"{role.name} did not start within {patience:g} seconds")
        return False

    def greet(self) -> None:
        """Hears every role once, and takes whoever answers for the one it knows."""
        for role in self.roles.values():
            role.take(until_answered(role.handle.ping.remote, self.hang_seconds))

    def wait_for_all(self) -> None:
        """Waits until every role has been heard of."""
        while any(role.is_away for role in self.roles.values()):
            self.tick()
            time.sleep(0.05)

    def write_status(self, more: dict[str, Any]) -> None:
        """Writes what `softcount status` shows; a reader sees the old file or the new one."""
        if self.folder is None or not self.folder.is_dir():
            return
        now = time.monotonic()
        roles = [
            {
                "name": role.name,
                "host": role.host,
                "pid": role.pid,
                "restarts": role.restarts,
                "silent_seconds": round(now - role.heard, 1),
                "is_away": role.is_away,
                "numbers": role.numbers,
                "rates": role.rates,
            }
            for role in self.roles.values()
        ]
        content = {
            "time": time.time(),
            "pid": os.getpid(),
            "host": socket.gethostname(),
            **more,
            "roles": roles,
        }
        temporary = self.folder / f".{STATUS}.{os.getpid()}"
        temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
        os.replace(temporary, self.folder / STATUS)
