"""What a checkpoint shows that cannot be restored: its places and its atoms.

A run of another version, or whose networks need what is not installed here, cannot act any
more. Where it has been and what it remembers are plain arrays, and can still be read.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.checkpoint import Checkpoint
from softcount.envs.make import make, parse_tasks
from softcount.envs.worlds import World
from softcount.envs.worlds import describe_worlds as worlds_of
from softcount.measure.coverage import Coverage
from softcount.report.atoms import describe_memories
from softcount.report.world import describe_worlds
from softcount.types import State

OPTIONS = "env_options."


def describe_remains(saved: Checkpoint, fields: dict[str, Any]) -> dict[str, Any]:
    """Returns world and memory as far as a checkpoint of a foreign version has them as this one does."""
    shown = {}
    try:
        coverage = coverage_of(saved.parts["loop"]["coverage"])
        shown["worlds"] = describe_worlds(coverage, build_worlds(fields, coverage))
        memories = memories_of(saved.parts["memory"], fields)
        if any(len(state["atoms"]) > 0 for state in memories.values()):
            shown["memories"] = describe_memories(memories)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, MemoryError):
        pass  # it has them otherwise: the page says that the checkpoint cannot be restored, and why
    return shown


def coverage_of(state: State | None) -> Coverage | None:
    """Returns places from their state; None where a world has none."""
    if state is None:
        return None
    coverage = Coverage(state["num_places"])
    coverage.load_state_dict(state)
    return coverage


def memories_of(part: State, fields: dict[str, Any]) -> dict[str, State]:
    """Finds the states of RECODE's memories, one or one for each task."""
    if "tasks" not in part:
        return {"": part["memory"]} if "memory" in part else {}
    names = [task.text for task in parse_tasks(fields["env"])]
    return {name: task["memory"] for name, task in zip(names, part["tasks"], strict=True) if "memory" in task}


def build_worlds(fields: dict[str, Any], coverage: Coverage | None) -> list[World] | None:
    """Builds one copy of each task's world for its map; None where that cannot be done."""
    options = {name.removeprefix(OPTIONS): x for name, x in fields.items() if name.startswith(OPTIONS)}
    places = np.zeros(0, np.int64) if coverage is None else np.flatnonzero(coverage.visits)
    try:
        env = make(fields["env"], len(parse_tasks(fields["env"])), **options)
        try:
            return worlds_of(env, places)
        finally:
            env.close()
    except (ImportError, KeyError, OSError, RuntimeError, TypeError, ValueError, OverflowError, MemoryError):
        return None
