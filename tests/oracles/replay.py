"""A replay that keeps every row for ever in lists, and says which traces there should be."""

import bisect
import itertools


class Replay:
    """Rows per environment; traces in the order their last row arrived; eviction by chunk order."""

    def __init__(self, length, period, capacity, num_envs):
        self.length, self.period, self.capacity = length, period, capacity
        self.rows = [[] for _ in range(num_envs)]
        self.states = [[] for _ in range(num_envs)]
        self.chunks = []  # (env, first row) in the order chunks were completed
        self.evicted = 0  # chunks gone
        self.traces = set()  # serials

    def add(self, rows, states, envs):
        opened = []
        for env, row, state in zip(envs, rows, states, strict=True):
            self.rows[env].append(row)
            self.states[env].append(state)
            start = len(self.rows[env]) - 1 - self.length
            if start >= 0 and start % self.period == 0:
                serial = self.chunks.index((env, start))
                if serial >= self.evicted:
                    opened.append(serial)
        for serial in opened:
            self.traces.add(serial)
        while len(self.traces) > self.capacity:
            self.traces.discard(self.evicted)
            self.evicted += 1
        for env in envs:
            if len(self.rows[env]) % self.period == 0:
                self.chunks.append((env, len(self.rows[env]) - self.period))

    def trace(self, serial):
        env, start = self.chunks[serial]
        return self.rows[env][start : start + self.length + 1], self.states[env][start]


def find(weights, prefix):
    """The leaf where the running sum passes the prefix."""
    return bisect.bisect_right(list(itertools.accumulate(weights)), prefix)
