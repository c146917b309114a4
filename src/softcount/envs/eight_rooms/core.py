"""The compiled world of Eight Rooms, seen from NumPy.

A world is one record of type `STATE`, whose fields are those of `State` in `native/rooms.h`; the compiled
module itself says where each lies. Arrays of such records are all the state there is: saving is copying.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.types import Array

try:
    import softcount.envs.eight_rooms._rooms as _rooms
except ImportError:  # installed without a C++ compiler
    _rooms = None

WHY_NOT = "it was installed without a C++ compiler; install one, then softcount again"
BOX, BALL, STICK = range(3)
LIFTABLE, PUSHABLE, ALIVE, ASLEEP = 1, 2, 4, 8
LATCH, HOLD, CONSUME, DESTROY = range(4)
CELL = 0.5
"""Metres."""
SIDE = 64
"""Cells along a side of the largest map."""
WALL, VOID = 30.0, -6.0
"""Heights of cells that nothing passes, and of those that keep nothing."""
SUBSTEPS_PER_SECOND, TICKS_PER_SECOND = 60, 30


def version() -> int:
    """Changes whenever a constant, a rule, a generator or a texture does.

    Results and saved states name it.
    """
    return int(_rooms.VERSION)


def kernel_names() -> list[str]:
    """Lists the instruction sets that can run here, best first."""
    return list(_rooms.kernel_names())


def _dtype(name: str, layout: dict[str, Any]) -> np.dtype[Any]:
    entry = layout[name]
    formats: list[Any] = []
    for _, kind, _, shape in entry["fields"]:
        part: Any = _dtype(kind, layout) if kind in layout else kind
        formats.append((part, shape) if shape is not None else part)
    fields: Any = {
        "names": [field[0] for field in entry["fields"]],
        "formats": formats,
        "offsets": [field[2] for field in entry["fields"]],
        "itemsize": entry["size"],
    }
    made: np.dtype[Any] = np.dtype(fields)
    return made


STATE: np.dtype[Any] = _dtype("State", _rooms.layout()) if _rooms is not None else np.dtype([])
"""One world; empty where nothing was compiled."""


class Batch:
    """Worlds advanced and drawn together: `states` is an array of records that may be read and written.

    After writing to the ground or the movers of a slot, `load(slot)` has to be called.
    """

    def __init__(self, num: int, width: int, height: int, *, threads: int = 1, rank: int = 0) -> None:
        if _rooms is None:
            raise ImportError(f"Eight Rooms is not available: {WHY_NOT}")
        self._batch = _rooms.Batch(num, width, height, threads=threads, rank=rank)
        self.states: Array = np.zeros(num, STATE)
        self._bytes = self.states.view(np.uint8).reshape(num, STATE.itemsize)
        self._shape = (num, height, width, 3)

    def load(self, slot: int, state: Array | None = None) -> None:
        """Puts a world into a slot, or takes notice of what was written there."""
        if state is not None:
            self.states[slot] = state
        self._batch.load(self._bytes, slot)

    def step(self, actions: Array, repeats: Array) -> Array:
        """Advances each world by `repeats` ticks with actions `[B, 9]`; returns images `[B, H, W, 3]`."""
        images = np.empty(self._shape, np.uint8)
        self._batch.step(self._bytes, actions, repeats, images)
        return images

    def step_blindly(self, actions: Array, repeats: Array) -> None:
        """Does the same without drawing."""
        self._batch.step(self._bytes, actions, repeats, None)
