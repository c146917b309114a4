"""Clients that send batches of known content and write down what they sent and what they were paid.

The content of a batch follows from its stamp alone, so that it can be made again for the reckoning. Before a
batch is sent its stamp is written to a file, and after the answer what was paid: a killed process leaves
at most one batch of which nobody knows.
"""

import os
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
import ray

from softcount.launch.ray.client import MemoryClient, Patience
from softcount.types import Features

HEAD = struct.Struct("<BQQqII")  # sent or paid, incarnation, sequence, position, epoch, number of rewards
DIM = 32


class Entry(NamedTuple):
    """A batch that was sent; what was paid, if that is known."""

    actor: int
    incarnation: int
    sequence: int
    position: int = -1
    paid: np.ndarray | None = None


def content(actor, incarnation, sequence, rows):
    """What a batch holds: points around fifty places."""
    rng = np.random.default_rng([actor, incarnation % 2**32, incarnation >> 32, sequence])
    places = np.random.default_rng(0).normal(size=(50, DIM)) * 3
    embedding = places[rng.integers(50, size=rows)] + rng.normal(size=(rows, DIM)) * 0.3
    return (
        Features(embedding=embedding.astype(np.float32)),
        np.arange(rows) + actor * rows,
        rng.random(rows) < 0.02,
        rng.random(rows) < 0.02,
    )


class Sender:
    """One life of a client."""

    def __init__(self, calls, actor, incarnation, folder, rows, call_timeout_s):
        patience = Patience(call_timeout_s=call_timeout_s, give_up_s=300)
        self.client = MemoryClient(calls, actor=actor, incarnation=incarnation, patience=patience)
        self.rows = rows
        path = Path(folder) / f"sender-{actor}.log"
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def whereabouts(self):
        return os.getpid(), ray.util.get_node_ip_address()

    def run(self, num):
        """Sends so many batches; returns how often it had to try again."""
        client, before = self.client, self.client.num_retries
        for _ in range(num):
            stamp = client.actor, client.incarnation, client.sequence
            os.write(self.file, HEAD.pack(0, *stamp[1:], -1, 0, 0))
            paid = client(*content(*stamp, self.rows))
            head = HEAD.pack(1, *stamp[1:], client.position, client.epoch, len(paid))
            os.write(self.file, head + paid.tobytes())
        return client.num_retries - before


def read_log(folder, actor):
    """All entries of a client, in the order in which they were sent; a torn end is the last one's."""
    path = Path(folder) / f"sender-{actor}.log"
    data, offset, found = path.read_bytes() if path.exists() else b"", 0, {}
    while offset + HEAD.size <= len(data):
        is_paid, incarnation, sequence, position, _, num = HEAD.unpack_from(data, offset)
        offset += HEAD.size
        paid = None
        if is_paid:
            if offset + 4 * num > len(data):
                break
            paid = np.frombuffer(data, np.float32, num, offset)
            offset += 4 * num
        found[incarnation, sequence] = Entry(actor, incarnation, sequence, position, paid)
    return list(found.values())
