"""What a bonus costs per step, in time and in memory (what the paper lacks).

CPU time per embedding of one thread, 64 embeddings at a time, dimension 32, embeddings of walkers in a
4-dimensional world; and bytes held. RECODE's memory is full; an episodic memory holds an episode of the
given length for each of 64 actors. Embedding the observation comes on top, see `representations.md`.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments.drawing import BONUS_COLOURS, WIDTH, bonus_of, legend_beside, new_figure
from experiments.figure import Figure
from experiments.jobs import RESULTS, SEEDS, Job, Row
from experiments.memory.streams import filled_state, make_stream
from softcount.memory import RecodeConfig, RecodeMemory
from softcount.memory.episodic import EpisodicConfig, EpisodicMemory

NUM_ENVS = 64
SIZES = (400, 5_000, 50_000, 200_000)
LENGTHS = (100, 1_000, 5_000)


def measure_recode(size: int, seed: int, seconds: float = 1.0) -> dict[str, Any]:
    """Times a full RECODE memory."""
    config = RecodeConfig(size=size)
    stream = make_stream("walk4", config.dim, num_walkers=NUM_ENVS, seed=seed)
    memory = RecodeMemory(config, seed=seed)
    memory.load_state_dict(filled_state(config, stream, seed=seed))
    memory.observe(next(iter(stream)))  # indices are built on first use
    spent: list[float] = []
    while sum(spent) < seconds * 1e6:
        spent += _times(memory.observe, stream, 10)
    return {"microseconds": round(float(np.mean(spent)) / NUM_ENVS, 2), "bytes": memory.bytes}


def measure_episodic(length: int, seed: int, seconds: float = 1.0) -> dict[str, Any]:
    """Times NGU's episodic memory at this length of the episode (up to a tenth longer while timed)."""
    memory = EpisodicMemory(EpisodicConfig(dim=32), num_envs=NUM_ENVS)
    stream = make_stream("walk4", 32, num_walkers=NUM_ENVS, seed=seed)
    rng = np.random.default_rng(seed)
    state = memory.state_dict()
    state["rows"] = [stream.sample(length, rng) for _ in range(NUM_ENVS)]
    state["num_stored"] = np.full(NUM_ENVS, length)
    ids, never = np.arange(NUM_ENVS), np.zeros(NUM_ENVS, bool)
    spent: list[float] = []
    while sum(spent) < seconds * 1e6:
        memory.load_state_dict(state)
        num_bytes = memory.bytes
        spent += _times(lambda rows: memory.observe(rows, ids, never), stream, min(length // 10, 20))
    return {"microseconds": round(float(np.mean(spent)) / NUM_ENVS, 2), "bytes": num_bytes}


def _times(call: Any, stream: Any, num: int) -> list[float]:
    """Returns the CPU microseconds of each of `num` calls with a batch."""
    spent = []
    for rows in itertools.islice(stream, num):
        started = time.process_time()
        call(rows)
        spent.append(1e6 * (time.process_time() - started))
    return spent


def jobs() -> list[Job]:
    found = []
    for seed in SEEDS:
        for size in SIZES:
            found.append(_job("recode", size, seed, partial(measure_recode, size, seed)))
        for length in LENGTHS:
            found.append(_job("episodic", length, seed, partial(measure_episodic, length, seed)))
    return found


def _job(bonus: str, size: int, seed: int, measure: Any) -> Job:
    settings = {"bonus": bonus, "size": size}
    return Job(key=f"{bonus}-{size}-seed{seed}", seed=seed, settings=settings, measure=measure)


def plot(rows: Sequence[Row]) -> Any:
    """Time and bytes against atoms, or length of the episode; one dot per seed."""
    figure = new_figure(WIDTH, 3.8)
    left, right = figure.subplots(1, 2)
    labels = {"recode": "RECODE (x: |M|)", "episodic": "episodic memory, EMM (x: steps of the episode)"}
    for bonus, label in labels.items():
        colour = BONUS_COLOURS[str(bonus_of(label))]
        group = [row for row in rows if row["bonus"] == bonus]
        sizes = [row["size"] for row in group]
        left.plot(sizes, [row["microseconds"] for row in group], "o", color=colour, label=label)
        right.plot(sizes, [row["bytes"] / 2**20 for row in group], "o", color=colour, label=label)
    left.set(xscale="log", yscale="log", xlabel="embeddings held", ylabel="CPU µs per embedding")
    right.set(xscale="log", yscale="log", xlabel="embeddings held", ylabel="MiB held")
    legend_beside(figure)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    lines = []
    for bonus, size in dict.fromkeys((row["bonus"], row["size"]) for row in rows):
        group = [row for row in rows if (row["bonus"], row["size"]) == (bonus, size)]
        times = " / ".join(f"{row['microseconds']:.1f}" for row in group)
        lines.append(f"{bonus} {size:,}: {times} µs per embedding, {group[0]['bytes'] / 2**20:.1f} MiB")
    return lines


FIGURE = Figure(
    name="cost",
    paper="not in the paper",
    claim="RECODE's memory costs little per step, also at the paper's sizes.",
    laptop_cost="21 timings, about 1 CPU-minute in all",
    paper_cost="the same",
    folder=RESULTS / "cost",
    jobs=jobs,
    plot=plot,
    describe=describe,
)
