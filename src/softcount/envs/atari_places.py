"""Where the agent is in an Atari game, read from the console's 128 bytes of RAM.

    game                 a place is                      rooms from            x, y from
    Montezuma's Revenge  a room and a cell of 8 × 8      byte 3                42, 43 (upwards)
    Pitfall!             a room, one of 255 in a ring    byte 1
    H.E.R.O.             a level, a room and a cell      bytes 117, 28         27, 31 (upwards)
    Private Eye          a street and a cell             byte 92               63, 86 (upwards)
    Venture              a room and a cell, level apart  byte 90 (8: outside)  85, 26
    Q*bert               one of 21 cubes                                       43, 67
    Gravitar             a screen and a cell of 8 × 8    bytes 1, 2            30, 32
    Solaris              one of a quadrant's 48 sectors  byte 8

Cells are 8 pixels wide. Each was looked at in pictures (`docs/atari.md`). A place that cannot be told is −1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol

from softcount.types import Array

CELL_PIXELS = 8


class Places(Protocol):
    """Maps RAM to places, and places to a map."""

    num_places: int | None
    map_shape: tuple[int, int]
    tells_deaths: bool

    def place(self, ram: Any) -> int: ...
    def is_dying(self, ram: Array) -> bool: ...  # between a death and the next life
    def cell_of(self, place: int) -> tuple[int, int]: ...


class WithoutDeaths:
    """Places of games where nobody looked for what a death is."""

    tells_deaths = False

    def is_dying(self, ram: Array) -> bool:
        return False


class MontezumaPlaces:
    """Room and cell of the room; how many of the cells can be reached is not known.

    The 24 rooms of a level form a pyramid of four floors.

    >>> MontezumaPlaces().cell_of(1 * 280)  # top left of room 1, the start, in the middle of the top floor
    (0, 80)
    """

    num_places: int | None = None
    tells_deaths = True
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


class PitfallPlaces(WithoutDeaths):
    """The room, numbered along the ring from the start to the right; the map has 17 rooms to a line.

    The 255 rooms are the states of an 8-bit shift register: the next room to the right of s is
    (s << 1) | (s₃ ⊕ s₄ ⊕ s₅ ⊕ s₇).

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

    def cell_of(self, place: int) -> tuple[int, int]:
        """Breaks the ring into lines."""
        return divmod(place, self.map_shape[1])


@dataclass(frozen=True, kw_only=True)
class RoomPlaces(WithoutDeaths):
    """A room and a cell in it, for games that keep all of these in bytes of their own.

    >>> hero = PLACES["hero"]()
    >>> hero.place({117: 0, 28: 0, 27: 32, 31: 138}), hero.cell_of(4)  # level 0, room 0, top floor
    (4, (0, 4))
    """

    room_bytes: tuple[int, ...]
    """Bytes of the room, the most significant first."""
    rooms: tuple[int, ...]
    """How many values each of them has."""
    x_byte: int
    y_byte: int
    y_range: tuple[int, int]
    """Values of y at the top and at the bottom; the first is the larger where y counts upwards."""
    cell_height: int
    """Steps of y in a cell."""
    rooms_per_line: int
    """Rooms beside each other on the map."""
    num_places: int | None = None

    columns = 160 // CELL_PIXELS

    @property
    def rows(self) -> int:
        return abs(self.y_range[0] - self.y_range[1]) // self.cell_height + 1

    @property
    def map_shape(self) -> tuple[int, int]:  # type: ignore[override]
        num_rooms = 1
        for num in self.rooms:
            num_rooms *= num
        lines = -(-num_rooms // self.rooms_per_line)
        return lines * self.rows, self.rooms_per_line * self.columns

    def place(self, ram: Any) -> int:
        """Numbers rooms times cells, cells from the top left."""
        room = 0
        for byte, num in zip(self.room_bytes, self.rooms, strict=True):
            room = room * num + min(int(ram[byte]), num - 1)
        depth = abs(self.y_range[0] - int(ram[self.y_byte])) // self.cell_height
        column = min(int(ram[self.x_byte]) // CELL_PIXELS, self.columns - 1)
        return (room * self.rows + min(depth, self.rows - 1)) * self.columns + column

    def cell_of(self, place: int) -> tuple[int, int]:
        """Lays the rooms out in lines, as they are numbered."""
        rest, column = divmod(place, self.columns)
        room, row = divmod(rest, self.rows)
        line, along = divmod(room, self.rooms_per_line)
        return line * self.rows + row, along * self.columns + column


class QbertPlaces(WithoutDeaths):
    """The cube that Q*bert stands on, from the top, line by line; nowhere while he jumps or falls.

    >>> places = QbertPlaces()
    >>> [places.place({43: x, 67: y}) for x, y in ((77, 25), (65, 53), (93, 53), (105, 81), (65, 25))]
    [0, 1, 2, 5, -1]
    """

    num_places: int | None = 21
    map_shape: tuple[int, int] = (6, 11)
    top, line_height, half_width = (77, 25), 28, 13  # in pixels; x is off by up to two

    def place(self, ram: Any) -> int:
        """Finds the line from y, and the cube from x, which moves half a cube to the left with each line."""
        line, between = divmod(int(ram[67]) - self.top[1], self.line_height)
        doubled = (int(ram[43]) - self.top[0]) / self.half_width + line
        cube = round(doubled / 2)
        if between or not 0 <= cube <= line <= 5 or abs(doubled - 2 * cube) > 0.4:
            return -1
        return line * (line + 1) // 2 + cube

    def cell_of(self, place: int) -> tuple[int, int]:
        """Draws the pyramid."""
        line = next(line for line in range(6) if place < (line + 1) * (line + 2) // 2)
        return line, 5 - line + 2 * (place - line * (line + 1) // 2)


class GravitarPlaces(WithoutDeaths):
    """The screen and a cell of it: the map of planets, saucers in space, the reactor, then each planet.

    >>> places = GravitarPlaces()
    >>> [places.place({1: kind, 2: 0, 30: 9, 32: 20}) for kind in (2, 5, 4, 3)]
    [41, 441, 841, 1241]
    """

    num_places: int | None = None
    rows, columns = 20, 20  # x is 3-152 in flight, y 5-156
    map_kind, planet_kind = 2, 3
    screens: ClassVar[Mapping[int, int]] = {
        map_kind: 0,
        5: 1,
        4: 2,
        planet_kind: 3,
    }  # byte 1: number of the screen
    screens_per_line, num_planets = 4, 5
    map_shape: tuple[int, int] = (2 * rows, screens_per_line * columns)

    def place(self, ram: Any) -> int:
        """Numbers screens times cells; other values of byte 1 are no flight."""
        kind = int(ram[1])
        if kind not in self.screens:
            return -1
        screen = self.screens[kind]
        if kind == self.planet_kind:
            screen += min(int(ram[2]), self.num_planets - 1)
        row, column = (min(int(ram[byte]) // CELL_PIXELS, self.rows - 1) for byte in (32, 30))
        return (screen * self.rows + row) * self.columns + column

    def cell_of(self, place: int) -> tuple[int, int]:
        """Lays the screens out in two lines."""
        rest, column = divmod(place, self.columns)
        screen, row = divmod(rest, self.rows)
        line, along = divmod(screen, self.screens_per_line)
        return line * self.rows + row, along * self.columns + column


class SolarisPlaces(WithoutDeaths):
    """The sector that the ship is in or flies to, as the scanner shows it; quadrants are not told apart.

    >>> SolarisPlaces().place({8: 21}), SolarisPlaces().cell_of(26)  # where a game starts
    (26, (4, 2))
    """

    num_places: int | None = 48
    map_shape: tuple[int, int] = (8, 6)

    def place(self, ram: Any) -> int:
        """Counts from the top left; the console does from the bottom right."""
        return 47 - int(ram[8]) if int(ram[8]) < 48 else -1

    def cell_of(self, place: int) -> tuple[int, int]:
        return divmod(place, self.map_shape[1])


PLACES: dict[str, Any] = {
    "montezuma_revenge": MontezumaPlaces,
    "pitfall": PitfallPlaces,
    "hero": partial(
        RoomPlaces,
        room_bytes=(117, 28),
        rooms=(20, 16),
        x_byte=27,
        y_byte=31,
        y_range=(140, 0),
        cell_height=8,
        rooms_per_line=16,
    ),
    "private_eye": partial(
        RoomPlaces,
        room_bytes=(92,),
        rooms=(32,),
        x_byte=63,
        y_byte=86,
        y_range=(47, 0),
        cell_height=8,
        rooms_per_line=8,
    ),
    "venture": partial(
        RoomPlaces,
        room_bytes=(90,),
        rooms=(9,),
        x_byte=85,
        y_byte=26,
        y_range=(0, 79),
        cell_height=4,
        rooms_per_line=3,
    ),
    "qbert": QbertPlaces,
    "gravitar": GravitarPlaces,
    "solaris": SolarisPlaces,
}
"""Makers of places by game."""
