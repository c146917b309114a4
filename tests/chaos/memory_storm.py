"""A storm over the shared memory and its clients on one machine."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from chaos.reckoning import reckon
from chaos.senders import DIM, Sender, read_log
from chaos.storm import Disk, Log, Role, Storm, Watch
from softcount.bonuses.make import BonusConfig, Place
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.launch.memory_plan import MemoryPlan
from softcount.launch.ray import once
from softcount.launch.ray.memory_host import RayCalls, start
from softcount.launch.ray.once import OnceConfig
from softcount.launch.ray.stamps import new_incarnation
from softcount.memory import RecodeConfig

CALL_TIMEOUT_S = 3.0
HANG_S = 3.0
AT_ONCE = 200
"""Batches that a client sends before it is asked whether that is enough."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How much is sent, by how many, and through what."""

    embeddings: int = 1_000_000
    clients: int = 3
    rows: int = 64
    atoms: int = 5_000
    snapshot_batches: int = 500
    faults: tuple[tuple[str, str], ...] = ()
    """What is done to whom, in order: ("kill", "memory"), ("hang", "memory"), ("pause", "client"), ..."""
    pause_s: float = 2.0
    """Between two faults, on average."""
    calm_s: float = 0.0
    """After the last one."""
    seed: int = 0


def plan_of(settings: Settings) -> MemoryPlan:
    memory = RecodeConfig(size=settings.atoms, dim=DIM, warmup_atoms=100)
    place = Place(dim=DIM, num_envs=settings.clients * settings.rows, seed=settings.seed)
    return MemoryPlan(kind="recode", bonus=BonusConfig(recode=RecodeBonusConfig(memory=memory)), place=place)


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Disk | None]:
    """A file system of its own for the journal; None where that is not allowed (only root may)."""
    folder.mkdir(parents=True, exist_ok=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        yield None
        return
    try:
        yield Disk(str(folder))
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


class Clients:
    """Starts every client anew when it dies, until all is sent and the storm is over."""

    def __init__(self, settings: Settings, calls: RayCalls, logs: Path, log: Log) -> None:
        self.settings, self.calls, self.logs, self.log = settings, calls, logs, log
        self.batches = settings.embeddings // settings.clients // settings.rows
        self.pids: dict[int, int | None] = dict.fromkeys(range(settings.clients))
        self.retries, self.is_calm = 0, threading.Event()
        self.nodes: dict[int, str] = {}  # where each is to live, as long as that host does
        self.threads = [threading.Thread(target=self._keep, args=(a,), daemon=True) for a in self.pids]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def _is_done(self, actor: int) -> bool:
        answered = sum(entry.paid is not None for entry in read_log(self.logs, actor))
        return self.is_calm.is_set() and answered >= self.batches

    def _keep(self, actor: int) -> None:
        incarnation = 0
        while not self._is_done(actor):
            sender = ray.remote(Sender).options(num_cpus=0, max_restarts=0, **self._placed(actor))
            incarnation = new_incarnation(incarnation)
            arguments = (self.calls, actor, incarnation, str(self.logs), self.settings.rows, CALL_TIMEOUT_S)
            handle = sender.remote(*arguments)
            self.pids[actor], node = ray.get(handle.whereabouts.remote())
            self.log.add("client", actor=actor, pid=self.pids[actor], node=node)
            with suppress(RayError):  # it was killed
                while not self._is_done(actor):
                    self.retries += ray.get(handle.run.remote(AT_ONCE))
            self.pids[actor] = None
            ray.kill(handle)

    def _placed(self, actor: int) -> dict[str, Any]:
        node = self.nodes.get(actor)
        if node not in {node["NodeID"] for node in ray.nodes() if node["Alive"]}:
            return {}
        return {"scheduling_strategy": NodeAffinitySchedulingStrategy(node, soft=False)}


class Supervised:
    """The memory as a supervisor sees it: pinged, and killed when it hangs."""

    def __init__(self, handle, log: Log, *, may_kill: bool = True) -> None:
        self.may_kill = may_kill
        self.handle, self.log, self.pid, self.position = handle, log, None, 0
        self.answered_at = time.monotonic()
        self._lock = threading.Lock()

    def look(self, timeout_s: float = 1.0) -> dict | None:
        """Pings; returns what it says. One that does not answer for long is killed."""
        with self._lock:
            try:
                pulse = ray.get(self.handle.ping.remote(), timeout=timeout_s)
            except RayError:
                if self.may_kill and self.pid is not None and time.monotonic() - self.answered_at > HANG_S:
                    with suppress(ProcessLookupError):
                        os.kill(self.pid, signal.SIGKILL)
                    self.log.add("hung memory killed", pid=self.pid)
                    self.answered_at = time.monotonic()
                return None
            self.pid, self.answered_at = pulse.pid, time.monotonic()
            return {"position": pulse.position, "epoch": pulse.epoch, "problem": pulse.problem}

    def answers(self) -> bool:
        return self.look(0.2) is not None  # a ping that was sent to the dead one is not waited for


def ride_out(settings: Settings, cluster, folder: Path) -> dict:
    """The whole storm, then the reckoning."""
    log, rng, plan = Log(), np.random.default_rng(settings.seed), plan_of(settings)
    journal, logs = folder / "journal", folder / "logs"
    logs.mkdir(parents=True)
    with small_disk(journal, 1024) as disk:
        memory_folder = journal / "memory"
        once.found(memory_folder, plan.build())
        config = OnceConfig(snapshot_batches=settings.snapshot_batches, keep_history=True)
        name = f"memory-{settings.seed}-{os.getpid()}"
        handle = start(plan, memory_folder, namespace=cluster.namespace, name=name, config=config)
        memory = Supervised(handle, log)
        clients = Clients(settings, RayCalls(cluster.namespace, name), logs, log)
        ray.get(handle.ping.remote())
        watch = Watch(memory.look, log, "memory", 0.2)
        clients.start()
        watch.start()
        struck = _strike_all(settings, Storm(log, disk=disk), memory, clients, rng)
        clients.is_calm.set()
        for thread in clients.threads:
            thread.join()
        watch.stop()
        live = ray.get(handle.ask.remote("state_dict"))
        pulse = ray.get(handle.ping.remote())
        ray.get(handle.close.remote())
        ray.kill(handle)
        found = reckon(memory_folder, logs, range(settings.clients), settings.rows, plan, live)
    return {
        "settings": {**vars(settings), "faults": [list(fault) for fault in settings.faults]},
        "reckoning": found,
        "faults": struck,
        "skipped": [] if disk is not None else ["full disk: only root may mount a small file system"],
        "epochs": pulse.epoch,
        "retries": clients.retries,
        "seconds": log.now(),
        "events": log.events,
    }


def _strike_all(settings: Settings, storm: Storm, memory: Supervised, clients: Clients, rng) -> list[dict]:
    struck = []
    for fault, who in settings.faults:
        time.sleep(float(rng.uniform(0.2, 1.8)) * settings.pause_s)
        if "full disk" in fault and storm.disk is None:
            continue
        if who == "memory":
            memory.look()
            role = Role("memory", lambda: memory.pid, memory.answers)
        else:
            actor = int(rng.integers(settings.clients))
            role = Role(
                f"client {actor}",
                lambda a=actor: clients.pids[a],
                lambda a=actor: clients.pids[a] is not None,
            )
        struck.append(storm.strike(fault, role, seconds=float(rng.uniform(0.5, 2.5))))
    time.sleep(settings.calm_s)
    return struck
