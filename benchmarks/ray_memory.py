"""Embeddings per second through the shared memory on Ray, and where its CPU time goes.

    python benchmarks/ray_memory.py [--quick] [--out results/ray/memory.json]

A memory that is full (walk4, D = 32) is asked by some clients in processes of their own, each waiting for
its answer before it sends the next batch. Every batch is journalled, and snapshots are taken as in a run.
For each cell three ways take turns with the same rows: the memory alone in one process; with journal and
de-duplication; and over Ray. "Per second and core" is one over the CPU time of the memory's process for
one embedding, its share in Ray's messages and all snapshots included; wall clocks of a busy machine say
little, and stand beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import ray

from experiments.memory.streams import filled_state, make_stream
from softcount.bonuses.make import BonusConfig, Place
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.launch.memory_plan import MemoryPlan
from softcount.launch.ray import once
from softcount.launch.ray.client import MemoryClient
from softcount.launch.ray.cluster import connect
from softcount.launch.ray.memory_host import RayCalls, start
from softcount.launch.ray.once import Once
from softcount.measure.machine import machine
from softcount.memory import RecodeConfig
from softcount.roles.memory_server import MemoryServer
from softcount.store import write_atomically
from softcount.types import Features

DIM = 32
CELLS = (
    (200_000, 1, 64),
    (200_000, 2, 64),
    (200_000, 4, 64),
    (200_000, 4, 16),
    (200_000, 2, 256),
    (50_000, 2, 64),
)
"""Atoms, clients, rows in a batch."""
TARGET = 20_000


def plan_of(size: int, num_envs: int) -> MemoryPlan:
    memory = RecodeConfig(size=size, dim=DIM)
    bonus = BonusConfig(recode=RecodeBonusConfig(memory=memory), engine="native")
    return MemoryPlan(kind="recode", bonus=bonus, place=Place(dim=DIM, num_envs=num_envs))


def filled(plan: MemoryPlan, size: int) -> MemoryServer:
    """A server whose memory is full."""
    server = plan.build()
    config = RecodeConfig(size=size, dim=DIM, embeddings_per_step=plan.place.num_envs)
    state = server.state_dict()
    server.load_state_dict({**state, "memory": filled_state(config, make_stream("walk4", DIM))})
    return server


def rows_of(client: int, num_batches: int, batch: int) -> list[np.ndarray]:
    stream = make_stream("walk4", DIM, num_walkers=batch, seed=1000 + client)
    return [next(stream) for _ in range(num_batches)]


def send_all(memory: Any, rows: list[np.ndarray]) -> None:
    none = np.zeros(len(rows[0]), bool)
    for batch in rows:
        memory(Features(embedding=batch), np.arange(len(batch)), none, none)


class Sender:
    """A client in a process of its own."""

    def __init__(self, namespace: str, name: str, client: int, num_batches: int, batch: int) -> None:
        self.rows = rows_of(client, num_batches, batch)
        self.memory = MemoryClient(RayCalls(namespace, name), actor=client, incarnation=1)
        self.memory.metrics()

    def send(self) -> float:
        """Returns the CPU seconds that it took here."""
        started = time.process_time()
        send_all(self.memory, self.rows)
        return time.process_time() - started

    def ready(self) -> None:
        pass


class Here:
    """Calls a memory of this process."""

    def __init__(self, memory: Once) -> None:
        self.memory = memory

    def request(self, request: Any, known_epoch: int, timeout_s: float) -> Any:
        return self.memory.request(request, known_epoch)


def alone(plan: MemoryPlan, size: int, clients: int, num: int, batch: int) -> float:
    """CPU seconds of the memory without anything around it."""
    server = filled(plan, size)
    rows = [r for client in range(clients) for r in rows_of(client, num, batch)]
    started = time.process_time()
    send_all(server, rows)
    return time.process_time() - started


def journalled(plan: MemoryPlan, size: int, clients: int, num: int, batch: int) -> float:
    """CPU seconds with stamps, journal and snapshots, in one process."""
    folder = Path(tempfile.mkdtemp())
    once.found(folder, filled(plan, size))
    memory = Once(plan.build(), folder)
    rows = [r for client in range(clients) for r in rows_of(client, num, batch)]
    started = time.process_time()
    send_all(MemoryClient(Here(memory), actor=0, incarnation=1), rows)  # type: ignore[arg-type]
    memory.close()
    spent = time.process_time() - started
    shutil.rmtree(folder)
    return spent


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def over_ray(
    cluster: Any, plan: MemoryPlan, size: int, clients: int, num: int, batch: int
) -> dict[str, float]:
    """Wall and CPU seconds of a memory process that all clients ask at once."""
    folder = Path(tempfile.mkdtemp())
    once.found(folder, filled(plan, size))
    handle = start(plan, folder, namespace=cluster.namespace, name=folder.name)
    pid = ray.get(handle.ping.remote()).pid
    actor = ray.remote(Sender).options(num_cpus=0)
    senders = [actor.remote(cluster.namespace, folder.name, i, num, batch) for i in range(clients)]
    ray.get([sender.ready.remote() for sender in senders])
    before, started = cpu_seconds(pid), time.perf_counter()
    of_clients = ray.get([sender.send.remote() for sender in senders])
    wall = time.perf_counter() - started
    ray.get(handle.close.remote())
    spent = cpu_seconds(pid) - before
    for process in (handle, *senders):
        ray.kill(process)
    shutil.rmtree(folder)
    return {"wall": wall, "memory": spent, "clients": sum(of_clients)}


def measure(cluster: Any, size: int, clients: int, batch: int, num_rows: int, rounds: int) -> dict[str, Any]:
    """One cell: the three ways take turns; medians over the rounds."""
    num = max(1, num_rows // (clients * batch))
    total = num * clients * batch
    plan = plan_of(size, clients * batch)
    arguments = (plan, size, clients, num, batch)
    turns = [
        {"alone": alone(*arguments), "journalled": journalled(*arguments), **over_ray(cluster, *arguments)}
        for _ in range(rounds)
    ]
    micros = {way: 1e6 * float(np.median([turn[way] for turn in turns])) / total for way in turns[0]}
    return {
        "atoms": size,
        "clients": clients,
        "batch": batch,
        "embeddings": total,
        "microseconds_per_embedding": micros,
        "per_second_and_core": 1e6 / micros["memory"],
        "per_second_wall": 1e6 / micros["wall"],
        "turns": turns,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one small cell, one round")
    parser.add_argument("--out", type=Path, default=Path("results/ray/memory.json"))
    args = parser.parse_args()
    cells, num_rows, rounds = (CELLS, 256_000, 3) if not args.quick else (((5_000, 2, 64),), 20_000, 1)
    started, found = time.perf_counter(), []
    with connect(num_cpus=2, object_store_bytes=200 * 2**20) as cluster:
        for size, clients, batch in cells:
            found.append(measure(cluster, size, clients, batch, num_rows, rounds))
            cell = found[-1]
            parts = ", ".join(f"{k} {v:.1f}" for k, v in cell["microseconds_per_embedding"].items())
            print(
                f"{size:>7} atoms, {clients} x {batch:>3}: {cell['per_second_and_core']:>7,.0f} per second"
                f" and core, {cell['per_second_wall']:>7,.0f} by the clock; µs per embedding: {parts}",
                flush=True,
            )
    document = {
        "command": "python benchmarks/ray_memory.py" + (" --quick" if args.quick else ""),
        "target_per_second_and_core": TARGET,
        "stream": "walk4",
        "dim": DIM,
        "rounds": rounds,
        "cells": found,
        "load": os.getloadavg(),
        "wall_seconds": time.perf_counter() - started,
        "machine": f"{machine()}, Ray {ray.__version__}",
    }
    write_atomically(args.out, json.dumps(document, indent=1).encode())


if __name__ == "__main__":
    main()
