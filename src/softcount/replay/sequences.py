"""Prioritised replay of packed traces  ([R2D2], [MEME]).

Steps are kept once, in chunks of `period` rows per environment; the trace that starts at a
chunk covers `trace_length` transitions, hence `trace_length + 1` rows, of which the last
only bootstraps. A trace can be sampled as soon as its last row is there:

    rows     0 ........ P ........ 2P ........ 3P         T = 2P
    trace 0  ├──────────────────────┤
    trace 1             ├──────────────────────┤

The agent's recurrent state is kept at every chunk start. New traces get the largest
priority seen. The replay ratio is exact and counts real steps: transitions acted (rows that
are not FIRST) against transitions learned from (pairs of rows within one episode).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from softcount.replay.chunks import ChunkStore
from softcount.replay.columns import columns_of, named_observation, step_of
from softcount.replay.config import ReplayConfig
from softcount.replay.priorities import SumTree
from softcount.types import (
    Array,
    ArraySpec,
    Observation,
    ObservationSpec,
    Sequence,
    State,
    Step,
    leaves_of,
    map_arrays,
)

PRIORITY_FLOOR = 1e-6


class Drawn(NamedTuple):
    """A batch of traces, time-major `[T + 1, B, ...]`."""

    sequence: Sequence
    ids: Array  # [B] int64, for `reprioritise`
    probabilities: Array  # [B] float64, of being drawn by priority


class SequenceReplay:
    """Traces of vectorised environments, sampled by priority, restored exactly.

    >>> config = ReplayConfig(trace_length=2, period=1, min_traces=1, replay_ratio=1.0)
    >>> replay = SequenceReplay(config, num_envs=1, observation_spec=ArraySpec((), "float32"))
    >>> for t in range(4):
    ...     no, nothing, none = np.zeros(1, bool), np.zeros(1, np.float32), np.zeros(1, np.int64)
    ...     replay.add(Step(observation=np.full(1, t, np.float32), prev_action=none, reward=nothing,
    ...         intrinsic=nothing, is_first=np.array([t == 0]), is_last=no, is_terminal=no,
    ...         action=none, extras={}), state=())
    >>> batch = replay.sample(2, np.random.default_rng(0))
    >>> batch.sequence.steps.observation.T.tolist()
    [[0.0, 1.0, 2.0], [1.0, 2.0, 3.0]]
    """

    def __init__(
        self, config: ReplayConfig, num_envs: int, observation_spec: ObservationSpec, state: Any = ()
    ) -> None:
        """`state` shows the structure of recurrent states, such as `agent.initial_state(1)`."""
        self.config = config
        self.num_envs = num_envs
        self._observation_spec = observation_spec
        self._state_like = state
        self._chunks_per_trace = config.trace_length // config.period
        # Besides chunks that start a trace there are those whose trace still waits for rows, the latest of an
        # environment, and one that is about to be closed.
        self._ring = config.capacity + num_envs * (self._chunks_per_trace + 1)
        self._clear()

    def _clear(self) -> None:
        config, K = self.config, self._chunks_per_trace
        self._chunks = ChunkStore(config.period, self._ring, config.compression)
        self._tree = SumTree(self._ring)  # by serial % ring, as the three arrays below
        self._next = np.full(self._ring, -1)  # serial of the next chunk of the same environment
        self._is_trace = np.zeros(self._ring, bool)
        self._is_fresh = np.zeros(self._ring, bool)  # never sampled yet
        self._fresh: deque[int] = deque(maxlen=config.capacity)
        self._recent = np.full((self.num_envs, K), -1)  # serials of each environment's latest chunks
        self._position = np.zeros(self.num_envs, np.int64)  # rows in each environment's open chunk
        specs = self._observation_spec
        leaves = specs if isinstance(specs, Mapping) else {"": specs}
        self._observations = {
            name: _open(self.num_envs, config.period, spec) for name, spec in leaves.items()
        }
        self._columns: dict[str, Array] = {}  # [num_envs, period, ...], made at the first step
        self._states = [np.zeros((self.num_envs, *x.shape[1:]), x.dtype) for x in leaves_of(self._state_like)]
        self._max_priority = 1.0
        self._cuts: list[int] = [0]  # borders of the segments that checkpoints refer to
        self.num_traces = 0
        self.num_acted = 0
        self.num_learned = 0
        self.num_acted_when_ready = -1

    @property
    def num_bytes(self) -> int:
        """Bytes held by stored chunks."""
        return self._chunks.num_bytes

    def add(self, step: Step, state: Any, env_ids: Array | None = None) -> None:
        """Takes in one row of each environment (or of `env_ids`) and the recurrent state before it."""
        envs = np.arange(self.num_envs) if env_ids is None else np.asarray(env_ids, np.int64)
        columns = columns_of(step)
        if not self._columns:
            shape = (self.num_envs, self.config.period)
            self._columns = {name: np.zeros((*shape, *x.shape[1:]), x.dtype) for name, x in columns.items()}
        if columns.keys() != self._columns.keys():
            raise ValueError(f"the step has columns {sorted(columns)}; expected {sorted(self._columns)}")
        position = self._position[envs]
        for name, rows in named_observation(step.observation).items():
            self._observations[name][envs, position] = rows
        for name, rows in columns.items():
            self._columns[name][envs, position] = rows
        starts = position == 0
        if starts.any():  # a trace can only start where a chunk does, so no other states are kept
            for store, leaf in zip(self._states, leaves_of(state), strict=True):
                store[envs[starts]] = leaf[starts]
        self._position[envs] += 1
        self.num_acted += int(np.count_nonzero(~step.is_first))
        # The first row of a chunk is the bootstrap row of the trace that began K chunks before it.
        self._register(self._recent[envs[starts], 0])
        self._close(envs[position == self.config.period - 1])
        if self.num_acted_when_ready < 0 and self.ready():
            self.num_acted_when_ready = self.num_acted

    def ready(self) -> bool:
        """Says whether `min_traces` are, or were once, there."""
        return self.num_acted_when_ready >= 0 or self.num_traces >= self.config.min_traces

    def due(self) -> bool:
        """Says whether the replay ratio asks for an update now; what was acted before `ready` is free."""
        return self.num_owed() > 0

    def num_owed(self) -> float:
        """Returns how many transitions should have been learned from by now and were not."""
        acted = self.num_acted - self.num_acted_when_ready
        return self.config.replay_ratio * acted - self.num_learned if self.ready() else 0.0

    def sample(self, batch_size: int, rng: np.random.Generator) -> Drawn:
        """Draws a batch; counts its real transitions as learned from."""
        if self.num_traces == 0:
            raise ValueError("the replay holds no complete trace yet")
        ids = self._draw(batch_size, rng)
        self._is_fresh[ids % self._ring] = False
        probabilities = self._tree.weights(ids % self._ring) / self._tree.total
        sequence = self._read(ids)
        cuts = sequence.steps.is_last[:-1] | sequence.steps.is_first[1:]
        self.num_learned += int(np.count_nonzero(~cuts))
        return Drawn(sequence, ids, probabilities)

    def num_parts(self) -> int:
        """How many parts there are of all observations that are kept: chunks, and the newest rows."""
        return len(self._chunks) + bool(self._position.any())

    def part(self, number: int) -> Observation:
        """Returns one part of the observations that are kept, `[N, ...]`; the newest rows come last."""
        if number < len(self._chunks):
            serial = np.array([self._chunks.oldest + number])
            rows = {}
            for leaf, (name, store) in enumerate(self._observations.items()):
                rows[name] = np.empty((self.config.period, 1, *store.shape[2:]), store.dtype)
                self._chunks.rows(leaf, serial, rows[name])
            return self._as_observation({name: x[:, 0] for name, x in rows.items()})
        is_open = np.arange(self.config.period) < self._position[:, None]  # [num_envs, period]
        return self._as_observation({name: x[is_open] for name, x in self._observations.items()})

    def _as_observation(self, parts: dict[str, Array]) -> Observation:
        return parts if isinstance(self._observation_spec, Mapping) else parts[""]

    def reprioritise(self, ids: Array, priorities: Array) -> None:
        """Sets new priorities; ids that were evicted meanwhile are ignored."""
        priorities = np.asarray(priorities, np.float64)
        if not np.isfinite(priorities).all() or (priorities < 0).any():
            raise ValueError(f"priorities are {priorities}; expected finite numbers that are not negative")
        self._max_priority = max(self._max_priority, float(priorities.max(initial=0.0)))
        alive = self._chunks.is_alive(ids)
        self._set_priorities(ids[alive], priorities[alive])

    def metrics(self) -> dict[str, float]:
        """Returns traces, bytes, compression factor and the replay ratio reached so far."""
        acted = self.num_acted - self.num_acted_when_ready
        observations = sum(x[0].nbytes for x in self._observations.values())
        raw_bytes = len(self._chunks) * (observations + self._chunks.plain_bytes)
        return {
            "traces": float(self.num_traces),
            "bytes": float(self.num_bytes),
            "compression": raw_bytes / max(self.num_bytes, 1),
            "ratio": self.num_learned / acted if self.num_acted_when_ready >= 0 and acted > 0 else 0.0,
        }

    def state_dict(self) -> State:
        """Returns everything but the chunks; those added since the last call become a new segment."""
        # A segment is written once and kept by later checkpoints, until all of its chunks are gone.
        if self._chunks.next_serial > self._cuts[-1]:
            self._cuts.append(self._chunks.next_serial)
        while len(self._cuts) > 1 and self._cuts[1] <= self._chunks.oldest:
            self._cuts.pop(0)
        serials = np.arange(self._chunks.oldest, self._chunks.next_serial)
        ring = serials % self._ring
        return {
            "cuts": np.array(self._cuts),
            "oldest": self._chunks.oldest,
            "next": self._next[ring],
            "is_trace": self._is_trace[ring],
            "is_fresh": self._is_fresh[ring],
            "weights": self._tree.weights(ring),
            "fresh": np.array(self._fresh, np.int64),
            "recent": self._recent.copy(),
            "position": self._position.copy(),
            "observations": {f"={name}": x.copy() for name, x in self._observations.items()},
            "columns": {name: x.copy() for name, x in self._columns.items()},
            "states": [x.copy() for x in self._states],
            "max_priority": self._max_priority,
            "counters": {name: getattr(self, name) for name in COUNTERS},
        }

    def segments(self) -> dict[str, Callable[[], State]]:
        """Returns makers of the segments that the last `state_dict` refers to; they never change."""
        borders = zip(self._cuts[:-1], self._cuts[1:], strict=True)
        return {_segment(first, last): partial(self._chunks.segment, first, last) for first, last in borders}

    def load_state_dict(self, state: State, segments: Mapping[str, State]) -> None:
        """Restores exactly, from a state and the segments it names."""
        self._clear()
        self._cuts = state["cuts"].tolist()
        self._chunks.oldest = self._chunks.next_serial = int(state["oldest"])
        for first, last in zip(self._cuts[:-1], self._cuts[1:], strict=True):
            if _segment(first, last) not in segments:
                raise ValueError(f"the replay's segment {_segment(first, last)} is missing")
            self._chunks.load_segment(segments[_segment(first, last)], self._chunks.oldest)
        ring = np.arange(self._chunks.oldest, self._chunks.next_serial) % self._ring
        self._next[ring] = state["next"]
        self._is_trace[ring] = state["is_trace"]
        self._is_fresh[ring] = state["is_fresh"]
        self._tree.set(ring, state["weights"])
        self._fresh.extend(state["fresh"].tolist())
        self._recent = np.array(state["recent"])
        self._position = np.array(state["position"])
        self._observations = {name[1:]: np.array(x) for name, x in state["observations"].items()}
        self._columns = {name: np.array(x) for name, x in state["columns"].items()}
        self._states = [np.array(x) for x in state["states"]]
        self._max_priority = float(state["max_priority"])
        for name in COUNTERS:
            setattr(self, name, int(state["counters"][name]))

    def _register(self, serials: Array) -> None:
        """Opens traces whose last row just arrived, at the largest priority seen."""
        serials = serials[serials >= self._chunks.oldest]
        ring = serials % self._ring
        self._is_trace[ring] = self._is_fresh[ring] = True
        self._fresh.extend(serials.tolist())
        self.num_traces += len(serials)
        self._set_priorities(serials, np.full(len(serials), self._max_priority))
        self._evict(0)

    def _close(self, envs: Array) -> None:
        """Moves full chunks into the store."""
        if len(envs) == 0:
            return
        self._evict(len(envs))
        serials = self._chunks.append(envs, self._observations, self._columns, self._states)
        # Environments share the numbering, so the next chunk of one is found by a link, not by number.
        before = self._recent[envs, -1]
        known = before >= self._chunks.oldest
        self._next[before[known] % self._ring] = serials[known]
        self._next[serials % self._ring] = -1
        self._is_trace[serials % self._ring] = False
        self._recent[envs] = np.concatenate((self._recent[envs, 1:], serials[:, None]), axis=1)
        self._position[envs] = 0
        self._evict(0)

    def _evict(self, num_coming: int) -> None:
        """Drops the oldest chunks until traces, bytes and slots are within their limits."""
        gone = []
        config, chunks = self.config, self._chunks
        while (
            self.num_traces > config.capacity
            or chunks.num_bytes > config.max_bytes
            or len(chunks) + num_coming > self._ring
        ):
            if chunks.num_bytes > config.max_bytes and (not self.ready() or self.num_traces == 0):
                raise ValueError(
                    f"max_bytes is {config.max_bytes}, which holds {self.num_traces} traces; "
                    f"learning needs {config.min_traces} (min_traces)"
                )
            serial = chunks.evict()
            gone.append(serial % self._ring)
            self.num_traces -= int(self._is_trace[serial % self._ring])
        # All at once: each change of the tree costs a path to its root.
        self._tree.set(gone, 0.0)

    def _set_priorities(self, serials: Array, priorities: Array) -> None:
        weights = np.maximum(priorities, PRIORITY_FLOOR) ** self.config.priority_exponent
        self._tree.set(serials % self._ring, weights)

    def _draw(self, batch_size: int, rng: np.random.Generator) -> Array:
        """Draws serials: some of the newest that were never sampled, the rest by priority."""
        newest: list[int] = []
        # Traces drawn by priority meanwhile, or evicted, are still in the list: they are passed over here.
        while self._fresh and len(newest) < min(self.config.newest, batch_size):
            serial = self._fresh.pop()
            if serial >= self._chunks.oldest and self._is_fresh[serial % self._ring]:
                newest.append(serial)
        leaves = self._tree.sample(batch_size - len(newest), rng) if batch_size > len(newest) else np.zeros(0)
        # The one living serial with this remainder.
        drawn = self._chunks.oldest + (leaves.astype(np.int64) - self._chunks.oldest) % self._ring
        return np.concatenate((np.array(newest, np.int64), drawn))

    def _read(self, ids: Array) -> Sequence:
        """Puts traces together from their chunks, time-major."""
        P, K = self.config.period, self._chunks_per_trace
        parts = [ids]
        for _ in range(K):
            parts.append(self._next[parts[-1] % self._ring])
        tail, serials = parts[-1], np.stack(parts[:-1], axis=1)  # [B], [B, K]
        envs, is_open = self._chunks.envs(ids), parts[-1] < 0  # the bootstrap row may lie in an open chunk

        observations = {}
        for number, (name, store) in enumerate(self._observations.items()):
            rows = np.empty((K * P + 1, len(ids), *store.shape[2:]), store.dtype)
            for k in range(K):
                self._chunks.rows(number, serials[:, k], rows[k * P : (k + 1) * P])
            last = store[envs, 0]  # right where the chunk is open; the others follow from the store
            stored = np.empty((int((~is_open).sum()), *store.shape[2:]), store.dtype)
            self._chunks.first_rows(number, tail[~is_open], stored)
            last[~is_open] = stored
            rows[-1] = last
            observations[name] = rows
        columns = {}
        for name, store in self._columns.items():
            rows = np.empty((K * P + 1, len(ids), *store.shape[2:]), store.dtype)
            inner = self._chunks.column(name, serials)  # [B, K, P, ...]
            rows[:-1] = np.moveaxis(inner.reshape(len(ids), K * P, *store.shape[2:]), 0, 1)
            rows[-1] = store[envs, 0]
            rows[-1, ~is_open] = self._chunks.column(name, tail[~is_open])[:, 0]
            columns[name] = rows
        state = iter(self._chunks.states(ids))
        return Sequence(
            step_of(observations, columns, self._observation_spec),
            map_arrays(lambda _: next(state), self._state_like),
        )


COUNTERS = ("num_traces", "num_acted", "num_learned", "num_acted_when_ready")


def _open(num_envs: int, period: int, spec: ArraySpec) -> Array:
    return np.zeros((num_envs, period, *spec.shape), spec.dtype)


def _segment(first: int, last: int) -> str:
    return f"{first}-{last}"
