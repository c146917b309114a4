"""Where the rows of a replay lie: chunks of consecutive steps of one environment.

A chunk holds `period` rows. Observations are compressed, the chunk's first row apart from
the others: it is also the bootstrap row of an earlier trace, which need not unpack the rest.
All other columns and the recurrent state before the first row are plain arrays. Chunks
are numbered in the order they were completed and leave in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from softcount.hints import install
from softcount.types import Array, State

FIRST_SLOTS = 64


class Codec(NamedTuple):
    """How bytes are packed and unpacked."""

    pack: Callable[[bytes], bytes]
    unpack: Callable[[bytes], bytes]


class ChunkStore:
    """A first-in-first-out store of chunks, addressed by serial number."""

    def __init__(self, period: int, max_chunks: int, compression: str) -> None:
        if compression not in CODECS:
            raise ValueError(f"compression is {compression!r}; expected one of {', '.join(CODECS)}")
        self.period = period
        self.max_chunks = max_chunks
        self.codec = CODECS[compression]()
        self.oldest = 0
        self.next_serial = 0
        self.num_bytes = 0
        self.plain_bytes = 0  # of one chunk, without observations
        self._slot = np.zeros(max_chunks, np.int64)  # by serial % max_chunks
        self._free: list[int] = []
        self._num_slots = 0
        self._columns: dict[str, Array] = {}  # [slots, period, ...]
        self._states: list[Array] = []  # [slots, ...]
        self._env: Array = np.zeros(0, np.int64)
        self._blobs: list[list[bytes]] = []  # per slot: first row and rest of each observation leaf

    def __len__(self) -> int:
        return self.next_serial - self.oldest

    def is_alive(self, serials: Array) -> Array:
        """Says which chunks are still there."""
        return (serials >= self.oldest) & (serials < self.next_serial)

    def append(
        self,
        envs: Array,
        observations: Mapping[str, Array],
        columns: Mapping[str, Array],
        states: list[Array],
    ) -> Array:
        """Stores one chunk for each of `envs` out of arrays `[num_envs, period, ...]`; returns serials."""
        serials = self.next_serial + np.arange(len(envs))
        for env in envs.tolist():
            blobs: list[bytes] = []
            for rows in observations.values():
                blobs += [self.codec.pack(rows[env, :1].tobytes()), self.codec.pack(rows[env, 1:].tobytes())]
            one = {name: x[env] for name, x in columns.items()}
            self._put(env, blobs, one, [state[env] for state in states])
        return serials

    def evict(self) -> int:
        """Drops the oldest chunk and returns its serial."""
        slot = int(self._slot[self.oldest % self.max_chunks])
        self._account(slot, -1)
        self._blobs[slot] = []
        self._free.append(slot)
        self.oldest += 1
        return self.oldest - 1

    def envs(self, serials: Array) -> Array:
        """Returns which environment each chunk is of."""
        return self._env[self._slots(serials)]

    def column(self, name: str, serials: Array) -> Array:
        """Returns a column of chunks, `[..., period, ...]`."""
        return self._columns[name][self._slots(serials)]

    def states(self, serials: Array) -> list[Array]:
        """Returns the leaves of the recurrent states before the first rows."""
        slots = self._slots(serials)
        return [state[slots] for state in self._states]

    def first_rows(self, number: int, serials: Array, out: Array) -> None:
        """Unpacks the first rows of observation leaf `number` into `out` `[B, ...]`."""
        for b, slot in enumerate(self._slots(serials).tolist()):
            out[b] = self._unpack(slot, 2 * number, out)[0]

    def rows(self, number: int, serials: Array, out: Array) -> None:
        """Unpacks all rows of observation leaf `number` into `out` `[period, B, ...]`."""
        for b, slot in enumerate(self._slots(serials).tolist()):
            out[0, b] = self._unpack(slot, 2 * number, out[0])[0]
            out[1:, b] = self._unpack(slot, 2 * number + 1, out[0])

    def segment(self, first: int, last: int) -> State:
        """Returns chunks `first … last − 1`, as far as they are still there, as one state."""
        serials = np.arange(max(first, self.oldest), last)
        slots = self._slots(serials)
        blobs = [blob for slot in slots.tolist() for blob in self._blobs[slot]]
        return {
            "serials": serials,
            "envs": self._env[slots],
            "columns": {name: x[slots] for name, x in self._columns.items()},
            "states": [state[slots] for state in self._states],
            "sizes": np.array([len(blob) for blob in blobs], np.int64),
            "blobs": np.frombuffer(b"".join(blobs), np.uint8),
        }

    def load_segment(self, state: State, oldest: int) -> None:
        """Appends the chunks of a segment from serial `oldest` on; segments come in order."""
        serials, sizes, content = state["serials"], state["sizes"], state["blobs"].tobytes()
        per_chunk = len(sizes) // max(len(serials), 1)
        ends = np.cumsum(sizes)
        for n, serial in enumerate(serials.tolist()):
            if serial < oldest:
                continue
            if len(self) == 0:
                self.oldest = self.next_serial = serial
            if serial != self.next_serial:
                raise ValueError(
                    f"the replay's segments lack chunk {self.next_serial}; the next one is {serial}"
                )
            part = range(n * per_chunk, (n + 1) * per_chunk)
            blobs = [content[ends[i] - sizes[i] : ends[i]] for i in part]
            columns = {name: x[n] for name, x in state["columns"].items()}
            self._put(int(state["envs"][n]), blobs, columns, [leaf[n] for leaf in state["states"]])

    def _put(self, env: int, blobs: list[bytes], columns: dict[str, Array], states: list[Array]) -> None:
        if len(self) >= self.max_chunks:
            raise ValueError(f"the store is full with {self.max_chunks} chunks; evict first")
        if not self._free:
            self._grow(columns, states)
        slot = self._free.pop()
        self._blobs[slot] = blobs
        self._env[slot] = env
        for name, rows in columns.items():
            self._columns[name][slot] = rows
        for store, state in zip(self._states, states, strict=True):
            store[slot] = state
        self._slot[self.next_serial % self.max_chunks] = slot
        self._account(slot, 1)
        self.next_serial += 1

    def _grow(self, columns: dict[str, Array], states: list[Array]) -> None:
        """Doubles the number of slots, up to the largest number of chunks."""
        old = self._num_slots
        new = min(max(2 * old, FIRST_SLOTS), self.max_chunks)

        def grown(store: Array | None, like: Array) -> Array:
            larger = np.zeros((new, *like.shape), like.dtype)
            if store is not None:
                larger[:old] = store
            return larger

        self._columns = {name: grown(self._columns.get(name), x) for name, x in columns.items()}
        stores: list[Any] = [*self._states] or [None] * len(states)
        self._states = [grown(store, x) for store, x in zip(stores, states, strict=True)]
        self._env = grown(self._env if old else None, np.zeros((), np.int64))
        self._blobs += [[] for _ in range(new - old)]
        self._free += range(new - 1, old - 1, -1)
        self._num_slots = new
        self.plain_bytes = sum(x.nbytes for x in (*columns.values(), *states))

    def _account(self, slot: int, sign: int) -> None:
        self.num_bytes += sign * (self.plain_bytes + sum(map(len, self._blobs[slot])))

    def _slots(self, serials: Array) -> Array:
        slots: Array = self._slot[serials % self.max_chunks]
        return slots

    def _unpack(self, slot: int, blob: int, like: Array) -> Array:
        content = self.codec.unpack(self._blobs[slot][blob])
        return np.frombuffer(content, like.dtype).reshape(-1, *like.shape[1:])


def _lz4() -> Codec:
    try:
        import lz4.block
    except ImportError as error:
        raise ImportError(f"compressed replay needs lz4: {install('agent')}") from error
    return Codec(lz4.block.compress, lz4.block.decompress)


def _plain() -> Codec:
    return Codec(lambda content: content, lambda content: content)


CODECS: dict[str, Callable[[], Codec]] = {"lz4": _lz4, "none": _plain}
