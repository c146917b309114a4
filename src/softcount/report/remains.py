"""What a checkpoint shows that cannot be restored: its places and its atoms.

A run of another version, or whose networks need what is not installed here, cannot act any
more. Where it has been and what it remembers are plain arrays, and can still be read.
"""

from __future__ import annotations

from typing import Any

from softcount.envs.coverage import Coverage
from softcount.envs.make import make
from softcount.launch.checkpoint import Checkpoint
from softcount.memory import RecodeConfig, RecodeMemory
from softcount.report.atoms import describe_atoms
from softcount.report.world import describe_world
from softcount.types import VectorEnv

OPTIONS = "env_options."


def describe_remains(saved: Checkpoint, fields: dict[str, Any]) -> dict[str, Any]:
    """Returns world and memory as far as a checkpoint of a foreign version has them as this one does."""
    shown = {}
    try:
        shown["world"] = describe_world(_coverage(saved), _build_world(fields))
        if "memory" in saved.parts["memory"] and len(saved.parts["memory"]["memory"]["atoms"]) > 0:
            shown["memory"] = describe_atoms(_memory(saved))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, MemoryError):
        pass  # it has them otherwise: the page says that the checkpoint cannot be restored, and why
    return shown


def _coverage(saved: Checkpoint) -> Coverage | None:
    state = saved.parts["loop"]["coverage"]
    if state is None:
        return None
    coverage = Coverage(state["num_places"])
    coverage.load_state_dict(state)
    return coverage


def _memory(saved: Checkpoint) -> RecodeMemory:
    state = saved.parts["memory"]["memory"]
    memory = RecodeMemory(RecodeConfig(size=state["size"], dim=state["dim"]), engine="numpy")
    memory.load_state_dict(state)
    return memory


def _build_world(fields: dict[str, Any]) -> VectorEnv | None:
    """Builds one copy of the world for its map; None where that cannot be done."""
    options = {name.removeprefix(OPTIONS): x for name, x in fields.items() if name.startswith(OPTIONS)}
    try:
        return make(fields["env"], **options)
    except (ImportError, KeyError, OSError, RuntimeError, TypeError, ValueError, OverflowError, MemoryError):
        return None
