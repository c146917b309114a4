"""Where the agent is in an Atari game, read from the console's 128 bytes of RAM.

Montezuma's Revenge keeps the room in byte 3 and the position in bytes 42 (x) and 43 (y,
upwards); a place is a room and a cell of 8 × 8 pixels. Its 24 rooms form a pyramid of
four floors. Pitfall! keeps the room in byte 1: its 255 rooms are the states of an 8-bit
shift register, so that the next room to the right of s is (s << 1) | (s₃ ⊕ s₄ ⊕ s₅ ⊕ s₇).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from softcount.types import Array

CELL_PIXELS = 8


class Places(Protocol):
    """Maps RAM to places, and places to a map."""

    num_places: int | None
    map_shape: tuple[int, int]

    def place(self, ram: Array) -> int: ...
    def is_dying(self, ram: Array) -> bool: ...  # between a death and the next life
    def cell_of(self, place: int) -> tuple[int, int]: ...


class MontezumaPlaces:
    """Room and cell of the room; how many of the cells can be reached is not known.

    >>> MontezumaPlaces().cell_of(1 * 280)  # top left of room 1, the start, in the middle of the top floor
    (0, 80)
    """

    num_places: int | None = None
    rows, columns = 14, 20  # y is 148-255 in play, x 0-159
    floor_starts = (0, 3, 8, 15)  # rooms 0-2, 3-7, 8-14, 15-23
    map_shape: tuple[int, int] = (4 * rows, 9 * columns)

    def place(self, ram: Array) -> int:
        """Numbers rooms times cells, cells from the top left."""
        room, x, y = int(ram[3]), int(ram[42]), int(ram[43])
        row = min((255 - y) // CELL_PIXELS, self.rows - 1)
        column = min(x // CELL_PIXELS, self.columns - 1)
        return (room * self.rows + row) * self.columns + column

    def is_dying(self, ram: Array) -> bool:
        """Byte 55 counts the death down; byte 54 plays its tune until the next life stands."""
        return bool(ram[55] != 0 or ram[54] == 6)

    def cell_of(self, place: int) -> tuple[int, int]:
        """Lays the rooms out as the pyramid they are."""
        rest, column = divmod(place, self.columns)
        room, row = divmod(rest, self.rows)
        floor = max(i for i, start in enumerate(self.floor_starts) if room >= start)
        along = min(room - self.floor_starts[floor] + 3 - floor, 8)
        return floor * self.rows + row, along * self.columns + column


class PitfallPlaces:
    """The room, numbered along the ring from the start to the right; the map has 17 rooms to a line.

    >>> places = PitfallPlaces()
    >>> [places.place({1: room}) for room in (196, 137, 18, 226)]  # start, two to the right, one to the left
    [0, 1, 2, 254]
    """

    num_places: int | None = 255
    map_shape: tuple[int, int] = (15, 17)

    def __init__(self) -> None:
        self._order, room = {}, 196
        for i in range(255):
            self._order[room] = i
            room = (room << 1 & 255) | ((room >> 3 ^ room >> 4 ^ room >> 5 ^ room >> 7) & 1)

    def place(self, ram: Array | Mapping[int, int]) -> int:
        """Counts rooms to the right of the start; room 0 does not exist."""
        return self._order.get(int(ram[1]), -1)

    def is_dying(self, ram: Array) -> bool:
        return False

    def cell_of(self, place: int) -> tuple[int, int]:
        """Breaks the ring into lines."""
        return divmod(place, self.map_shape[1])


PLACES: dict[str, type[Places]] = {"montezuma_revenge": MontezumaPlaces, "pitfall": PitfallPlaces}
