"""Faults at random times: who is hit, how, and how long it takes until it answers again.

A role joins by saying who it is: `Role(name, pid, answers)`, where `pid()` is its process now and
`answers()` says whether it answers, which may take a while. Everything is logged, in seconds since the start.
"""

import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

FAULTS = ("kill", "hang", "pause", "full disk", "kill on a full disk")
"""`hang` stops a process until its supervisor kills it; `pause` lets it go on after a while."""
HEALED = ("pause", "full disk", "kill on a full disk")
"""Faults that last a while and are over; the time until the role is back counts from their end."""


@dataclass(frozen=True)
class Role:
    """Something that can be hit."""

    name: str
    pid: Callable[[], int | None]
    answers: Callable[[], bool]


@dataclass
class Log:
    """What happened when."""

    started: float = field(default_factory=time.monotonic)
    events: list[dict] = field(default_factory=list)

    def now(self) -> float:
        return round(time.monotonic() - self.started, 3)

    def add(self, what: str, **fields) -> dict:
        self.events.append({"at": self.now(), "what": what, **fields})
        return self.events[-1]


@dataclass
class Disk:
    """A small file system that can be filled; None where nobody may make one."""

    folder: str

    def fill(self) -> None:
        with suppress(OSError), open(f"{self.folder}/filler", "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 16))
        with suppress(OSError), open(f"{self.folder}/filler-2", "wb", buffering=0) as file:
            while True:
                file.write(bytes(1 << 6))

    def free(self) -> None:
        for name in ("filler", "filler-2"):
            with suppress(FileNotFoundError):
                os.unlink(f"{self.folder}/{name}")


class Storm:
    """Hits roles one after the other and waits until each answers again."""

    def __init__(self, log: Log, *, disk: Disk | None = None, patience_s: float = 60.0) -> None:
        self.log, self.disk, self.patience_s = log, disk, patience_s

    def strike(self, fault: str, role: Role, seconds: float = 1.0) -> dict:
        """One fault; returns its entry in the log, with the time until the role answered again."""
        pid = role.pid()
        entry = self.log.add("fault", fault=fault, role=role.name, pid=pid)
        if "full disk" in fault:
            self._fill(pid if fault.startswith("kill") else None, seconds)
        elif pid is not None:
            self._hit(fault, pid, seconds)
        over_at = self.log.now()
        entry["lasted_s"] = round(over_at - entry["at"], 3)
        deadline = time.monotonic() + self.patience_s
        while not (role.answers() and (fault in ("pause", "full disk") or role.pid() != pid)):
            if time.monotonic() > deadline:
                entry["back_after_s"] = None
                return entry
            time.sleep(0.02)
        entry["back_after_s"] = round(self.log.now() - (over_at if fault in HEALED else entry["at"]), 3)
        return entry

    def _fill(self, pid: int | None, seconds: float) -> None:
        assert self.disk is not None
        self.disk.fill()
        if pid is not None:
            self._hit("kill", pid, 0.0)
        time.sleep(seconds)
        self.disk.free()

    @staticmethod
    def _hit(fault: str, pid: int, seconds: float) -> None:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL if fault == "kill" else signal.SIGSTOP)
            if fault == "pause":
                time.sleep(seconds)
                os.kill(pid, signal.SIGCONT)


class Watch(threading.Thread):
    """Looks at something over and over, until it is told to stop; says what it saw to the log."""

    def __init__(self, look: Callable[[], dict | None], log: Log, what: str, every_s: float) -> None:
        super().__init__(daemon=True)
        self.look, self.log, self.what, self.every_s = look, log, what, every_s
        self.is_over = threading.Event()

    def run(self) -> None:
        while not self.is_over.wait(self.every_s):
            if (seen := self.look()) is not None:
                self.log.add(self.what, **seen)

    def stop(self) -> None:
        self.is_over.set()
        self.join()
