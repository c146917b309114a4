"""RECODE's memory on the page: its atoms in two dimensions, their counts and their ages."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

import numpy as np

from softcount.memory import RecodeMemory, inspect
from softcount.types import Array, State

MAX_ATOMS = 2500
NUM_BINS = 30


def describe_memories(
    states: Mapping[str, State], axes: MutableMapping[str, Array] | None = None
) -> list[dict[str, Any]]:
    """Returns map, histograms and numbers of the memory of each task, or why there is none.

    `axes` keeps those of each task for the next time, so that a page that is drawn again does not turn.
    """
    if not states:
        return [{"missing": "This agent keeps no memory of atoms."}]
    return [{"task": task or None, **_describe(task, state, axes)} for task, state in states.items()]


def _describe(task: str, state: State, axes: MutableMapping[str, Array] | None) -> dict[str, Any]:
    if len(state["atoms"]) == 0:
        return {"missing": "The memory is still empty."}
    memory = inspect.memory_of(state)
    if axes is None:
        return describe_atoms(memory)
    axes[task] = inspect.principal_axes(memory.atoms, like=axes.get(task))
    return describe_atoms(memory, axes=axes[task])


def describe_atoms(memory: RecodeMemory, limit: int = MAX_ATOMS, axes: Array | None = None) -> dict[str, Any]:
    """Projects atoms on their two main axes, or on given ones; of many, some of every age are drawn."""
    atoms, log_counts, ages = memory.atoms, memory.log_counts, memory.ages
    flat = inspect.project_2d(atoms, axes=axes)
    oldest_first = np.argsort(-ages, kind="stable")
    shown = oldest_first[np.linspace(0, len(atoms) - 1, min(limit, len(atoms))).round().astype(int)]
    spread = float(np.var(atoms.astype(np.float64), axis=0).sum())
    numbers, edges = inspect.count_histogram(memory, NUM_BINS)
    return {
        "summary": inspect.summary(memory),
        "size": memory.config.size,
        "x": _short(flat[shown, 0]),
        "y": _short(flat[shown, 1]),
        "log10_counts": _short(log_counts[shown] / np.log(10.0)),
        "ages": ages[shown].tolist(),
        "births": (memory.num_observed - ages[shown]).tolist(),  # tell atoms apart while they move
        "variance_shown": float(np.var(flat, axis=0).sum()) / spread if spread > 0 else 1.0,
        "count_bins": {"numbers": numbers.tolist(), "edges": _short(edges)},
        "age_bins": _histogram(ages),
    }


def _histogram(ages: Array) -> dict[str, Any]:
    numbers, edges = np.histogram(ages, bins=NUM_BINS, range=(0, max(1, int(ages.max()))))
    return {"numbers": numbers.tolist(), "edges": _short(edges)}


def _short(values: Array) -> list[float]:
    return [float(f"{value:.5g}") for value in values.tolist()]
