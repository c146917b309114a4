"""Streams of embeddings without an environment: the paper's toys and the benchmark's.

The toys are the two 2-D distributions of the appendix on non-stationarity, 64 points a
time step, uniform in a square whose corner stays at the origin while its side grows:

    removal    side min(100, t),  t = 1, 2, …      (figure on removal strategies)
    discount   side 1 + √t,       t = 0 … 100      (figure on density estimation)

The benchmark streams look like what actors send. Walkers move in a latent space, and a
random network draws it into R^D. With x reflected at the walls of [0, 1]^P:

    x ← x + 0.02 ξ        y = tanh(x W₁ + b) W₂ + noise        ξ ~ N(0, I)

`walkP` is that; `rooms` puts 48 copies of a small walk in different places; `drift` lets
the map turn slowly, as a representation in training does; `gauss` is structureless noise,
the worst case. A stream is an endless iterator of `[num_walkers, dim]` float32 batches.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Protocol

import numpy as np

from softcount.memory import RecodeConfig
from softcount.types import Array, State, rng_state

EPISODE = 1000  # steps between restarts of a walker
CHUNK = 65_536  # rows drawn at once when filling a memory


def removal_toy(seed: int = 0, num_points: int = 64) -> Iterator[Array]:
    """Yields the paper's removal toy: uniform in the square of side min(100, t), from t = 1, without end.

    >>> next(removal_toy()).shape
    (64, 2)
    """
    rng = np.random.default_rng(seed)
    t = 0
    while True:
        t += 1
        yield _square(rng, num_points, min(100.0, t))


def discount_toy(seed: int = 0, num_points: int = 64) -> Iterator[Array]:
    """Yields the paper's discount toy: uniform in the square of side 1 + √t, t = 0 … 100."""
    rng = np.random.default_rng(seed)
    for t in range(101):
        yield _square(rng, num_points, 1.0 + math.sqrt(t))


def _square(rng: np.random.Generator, num_points: int, side: float) -> Array:
    return (side * rng.random((num_points, 2))).astype(np.float32)


class Stream(Protocol):
    """An endless iterator of batches which can also be sampled at large."""

    def __iter__(self) -> Iterator[Array]: ...
    def __next__(self) -> Array: ...
    def sample(self, num: int, rng: np.random.Generator) -> Array: ...


class Walk:
    """Walkers in [0, 1]^P seen through a random network: the stream `walkP`.

    Two streams with the same `map_seed` live in the same world, whatever their `seed`.
    """

    def __init__(
        self,
        latents: int,
        dim: int = 32,
        *,
        num_walkers: int = 64,
        seed: int = 0,
        map_seed: int = 0,
        noise: float = 0.01,
    ) -> None:
        world = np.random.default_rng(map_seed)
        self.into = 3.0 * world.standard_normal((latents, 64))
        self.bias = 1.5 * world.standard_normal(64)
        self.out = world.standard_normal((64, dim)) / 8.0
        self.noise = noise
        self.rng = np.random.default_rng(seed)
        self.positions = self.rng.random((num_walkers, latents))
        self.clocks = np.arange(num_walkers) * EPISODE // num_walkers  # restarts are staggered

    def __iter__(self) -> Iterator[Array]:
        return self

    def __next__(self) -> Array:
        self._move()
        return self._see(self.positions, self.rng)

    def sample(self, num: int, rng: np.random.Generator) -> Array:
        """Draws from the stationary distribution: `num` walkers, one embedding each."""
        return self._see(rng.random((num, len(self.into))), rng)

    def _move(self) -> Array:
        """Takes a step, reflects at the walls, restarts whose episode is over; returns who restarted."""
        x = self.positions + 0.02 * self.rng.standard_normal(self.positions.shape)
        x = 1.0 - np.abs(1.0 - np.abs(x))
        self.clocks += 1
        is_over = self.clocks >= EPISODE
        self.clocks[is_over] = 0
        x[is_over] = self.rng.random((int(is_over.sum()), x.shape[1]))
        self.positions = x
        return is_over

    def _see(self, x: Array, rng: np.random.Generator) -> Array:
        return _blur(np.tanh(x @ self.into + self.bias) @ self.out, self.noise, rng)


class Rooms:
    """Walkers in 48 rooms, each with a 3-D position inside: y = ½ walk₃(x) + offset of the room."""

    num_rooms = 48

    def __init__(
        self, dim: int = 32, *, num_walkers: int = 64, seed: int = 0, map_seed: int = 0, noise: float = 0.02
    ) -> None:
        self.walk = Walk(3, dim, num_walkers=num_walkers, seed=seed, map_seed=map_seed, noise=0.0)
        self.offsets = np.random.default_rng([map_seed, 1]).standard_normal((self.num_rooms, dim))
        self.noise = noise
        self.rng = np.random.default_rng([seed, 1])
        self.rooms = self.rng.integers(self.num_rooms, size=num_walkers)

    def __iter__(self) -> Iterator[Array]:
        return self

    def __next__(self) -> Array:
        is_over = self.walk._move()
        num = len(self.rooms)
        through_door = self.rng.random(num) < 0.005  # the rooms form a ring
        self.rooms = (self.rooms + through_door * self.rng.choice([-1, 1], num)) % self.num_rooms
        self.rooms[is_over] = self.rng.integers(self.num_rooms, size=int(is_over.sum()))
        return self._see(self.walk.positions, self.rooms, self.rng)

    def sample(self, num: int, rng: np.random.Generator) -> Array:
        """Draws from the stationary distribution: `num` walkers, one embedding each."""
        return self._see(rng.random((num, 3)), rng.integers(self.num_rooms, size=num), rng)

    def _see(self, x: Array, rooms: Array, rng: np.random.Generator) -> Array:
        return _blur(0.5 * self.walk._see(x, rng) + self.offsets[rooms], self.noise, rng)


class Drift:
    """A `walkP` whose output layer turns: W₂ ← cos φ W₂ + sin φ W₂′ with φ = 2π t / period.

    W₂ and W₂′ are independent, so that scale and shape stay while every embedding moves. One
    period is `period` embeddings (not batches).
    """

    def __init__(
        self,
        latents: int = 4,
        dim: int = 32,
        *,
        num_walkers: int = 64,
        seed: int = 0,
        map_seed: int = 0,
        period: float = 4e6,
    ) -> None:
        self.walk = Walk(latents, dim, num_walkers=num_walkers, seed=seed, map_seed=map_seed)
        self.ends = self.walk.out, np.random.default_rng([map_seed, 2]).standard_normal((64, dim)) / 8.0
        self.period = period
        self.num_yielded = 0

    def __iter__(self) -> Iterator[Array]:
        return self

    def __next__(self) -> Array:
        self._turn()
        batch = next(self.walk)
        self.num_yielded += len(batch)
        return batch

    def sample(self, num: int, rng: np.random.Generator) -> Array:
        """Draws from the distribution of this moment."""
        self._turn()
        return self.walk.sample(num, rng)

    def _turn(self) -> None:
        angle = 2.0 * math.pi * self.num_yielded / self.period
        self.walk.out = math.cos(angle) * self.ends[0] + math.sin(angle) * self.ends[1]


class Gauss:
    """Independent N(0, I): nothing to exploit."""

    def __init__(self, dim: int = 32, *, num_walkers: int = 64, seed: int = 0) -> None:
        self.dim = dim
        self.num_walkers = num_walkers
        self.rng = np.random.default_rng(seed)

    def __iter__(self) -> Iterator[Array]:
        return self

    def __next__(self) -> Array:
        return self.sample(self.num_walkers, self.rng)

    def sample(self, num: int, rng: np.random.Generator) -> Array:
        return rng.standard_normal((num, self.dim), np.float32)


def make_stream(
    name: str, dim: int = 32, *, num_walkers: int = 64, seed: int = 0, map_seed: int = 0
) -> Stream:
    """Builds a benchmark stream by name: `walk4` (any number), `rooms`, `drift` or `gauss`."""
    if walk := re.fullmatch(r"walk([1-9]\d*)", name):
        return Walk(int(walk[1]), dim, num_walkers=num_walkers, seed=seed, map_seed=map_seed)
    if name == "rooms":
        return Rooms(dim, num_walkers=num_walkers, seed=seed, map_seed=map_seed)
    if name == "drift":
        return Drift(4, dim, num_walkers=num_walkers, seed=seed, map_seed=map_seed)
    if name == "gauss":
        return Gauss(dim, num_walkers=num_walkers, seed=seed)
    raise ValueError(f"stream is {name!r}; expected 'walk<P>', 'rooms', 'drift' or 'gauss'")


def filled_state(config: RecodeConfig, stream: Stream, *, seed: int = 0) -> State:
    """Returns a full memory as a state to load, without observing it into being.

    Atoms are drawn from the stream at large. Counts are what a steady state leaves: each
    embedding visits one of |M| atoms, so the time since the last visit is exponential with mean
    |M|, and c = g^time. The bandwidth is measured on 64 further draws.

    >>> from softcount import RecodeMemory
    >>> config = RecodeConfig(size=1000, dim=8)
    >>> memory = RecodeMemory(config, engine="numpy")
    >>> memory.load_state_dict(filled_state(config, make_stream("walk4", dim=8)))
    >>> len(memory)
    1000
    """
    rng = np.random.default_rng([seed, 3])
    n = config.size
    atoms = np.concatenate([stream.sample(min(CHUNK, n - start), rng) for start in range(0, n, CHUNK)])
    idle = rng.exponential(n, n)
    num_observed = 20 * n
    return {
        "version": 1,
        "size": n,
        "dim": config.dim,
        "atoms": atoms,
        "log_counts": idle * math.log(config.embedding_discount),
        "births": rng.integers(num_observed, size=n),
        "num_observed": num_observed,
        "log_scale": 0.0,
        "d2_biased": _bandwidth(atoms, stream.sample(64, rng), min(config.neighbours, n)),
        "d2_weight": 1.0,
        "generator": rng_state(np.random.default_rng(seed)),
    }


def _bandwidth(atoms: Array, queries: Array, k: int) -> float:
    """Measures the mean squared distance of queries to their k nearest atoms."""
    nearest = np.full((len(queries), k), np.inf, np.float32)
    for start in range(0, len(atoms), CHUNK):
        part = atoms[start : start + CHUNK]
        d2 = (part**2).sum(1) - 2.0 * queries @ part.T + (queries**2).sum(1, keepdims=True)
        nearest = np.partition(np.concatenate([nearest, d2], axis=1), k - 1, axis=1)[:, :k]
    return max(float(nearest.mean()), 0.0)


def _blur(y: Array, noise: float, rng: np.random.Generator) -> Array:
    y = y.astype(np.float32)
    if noise:
        y += np.float32(noise) * rng.standard_normal(y.shape, np.float32)
    return y
