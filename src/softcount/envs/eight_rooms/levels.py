"""The eight generators: each draws one level of a task in a size.

Everything is right by construction: what must be carried can be reached, what must be pushed can be pushed
from behind, and nothing is drawn until it succeeds. Marks are points that solvers and stages need; each
generator says which. Sizes are `tiny`, `small` and `full`; `assist` moves the start along the way: 1 with
the key in hand, 2 with the doors open, 3 in view of the apple (`assist.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from softcount.envs.eight_rooms import core
from softcount.envs.eight_rooms.assist import apply_assist
from softcount.envs.eight_rooms.level import Builder, Level, Rectangle

Variant = Literal["tiny", "small", "full"]
VARIANTS: tuple[Variant, ...] = ("tiny", "small", "full")
KEY = 1
"""The number that a key and its sensor share."""
PUSH_ONLY = core.PUSHABLE
HEAVY = 8.0


def generate(task: str, variant: Variant, rng: np.random.Generator, assist: int = 0) -> Level:
    """Draws a level."""
    builder = GENERATORS[task](rng, variant)
    apply_assist(builder, task, assist)
    return builder.finish(int(rng.integers(8)))


def _pick(variant: Variant, tiny: int, small: int, full: tuple[int, int], rng: np.random.Generator) -> int:
    """Draws a number of cells or things; only the full size varies."""
    if variant == "full":
        return int(rng.integers(full[0], full[1] + 1))
    return tiny if variant == "tiny" else small


def _two_rooms(
    builder_of: Callable[[int, int], Builder],
    rng: np.random.Generator,
    width: int,
    depth: int,
    apple_room: int,
) -> tuple[Builder, Rectangle, Rectangle, Rectangle]:
    """Draws a start room and, behind a door in its east wall, a room with the large apple."""
    rows = max(depth, apple_room)
    builder = builder_of(width + apple_room + 3, rows + 2)
    start = (1, 1 + (rows - depth) // 2, 1 + width, 1 + (rows - depth) // 2 + depth)
    first = 1 + (rows - apple_room) // 2
    apple = (2 + width, first, 2 + width + apple_room, first + apple_room)
    low, high = max(start[1], apple[1]), min(start[3], apple[3])
    row = int(rng.integers(low, high - 2))
    builder.draw_surfaces()
    builder.ground(start)
    builder.ground(apple)
    return builder, start, apple, (1 + width, row, 2 + width, row + 3)


def _plate_on_a_wall(builder: Builder, room: Rectangle, colour: str, walls: tuple[str, ...]) -> int:
    """Puts the latching plate of the key on one of the walls, not in a corner."""
    wall = walls[int(builder.rng.integers(len(walls)))]
    length = core.CELL * ((room[3] - room[1]) if wall in ("west", "east") else (room[2] - room[0]))
    along = float(builder.rng.uniform(0.8, length - 0.8))
    return builder.plate(room, wall, along, KEY, core.LATCH, colour)


def _spread_distractors(builder: Builder, room: Rectangle, num: int, colours: list[str]) -> None:
    for i in range(num):
        half = float(builder.rng.uniform(0.18, 0.28))
        add = builder.box if builder.rng.integers(2) else builder.ball
        add(builder.spot(room, margin=0.6, gap=1.0), half, builder.paint(colours[i]))


def wall_sensor(rng: np.random.Generator, variant: Variant) -> Builder:
    """Carry the key to the plate of its colour on a wall; the door opens for good."""
    width, depth = (_pick(variant, 8, 12, (14, 19), rng) for _ in range(2))
    b, room, apple, door = _two_rooms(
        lambda c, r: Builder(rng, c, r), rng, width, depth, _pick(variant, 6, 8, (10, 10), rng)
    )
    colour, *others = b.draw_colours(5)
    sensor = _plate_on_a_wall(b, room, colour, ("west", "north", "south"))
    b.door(door, [sensor])
    half = float(rng.uniform(0.18, 0.28))
    add = b.box if rng.integers(2) else b.ball
    add(b.spot(room, margin=0.6, gap=0.0), half, b.paint(colour), key=KEY)
    _spread_distractors(b, room, _pick(variant, 0, 1, (1, 4), rng), others)
    b.apple(b.spot(apple, margin=0.9, gap=0.0))
    b.start(b.spot(room, margin=0.5, gap=0.9))
    return b


def wall_sensor_stack(rng: np.random.Generator, variant: Variant) -> Builder:
    """Stack one cube on the other below a plate that must stay touched, then go. Mark 0: the plate's foot."""
    width, depth = (_pick(variant, 8, 12, (14, 19), rng) for _ in range(2))
    b, room, apple, door = _two_rooms(
        lambda c, r: Builder(rng, c, r), rng, width, depth, _pick(variant, 6, 8, (10, 10), rng)
    )
    colour, *others = b.draw_colours(2)
    along = float(rng.uniform(1.0, core.CELL * depth - 1.0))
    sensor = b.plate(room, "west", along, KEY, core.HOLD, colour, span=(0.75, 1.10))
    b.door(door, [sensor])
    foot = (core.CELL * room[0], core.CELL * room[1] + along)
    b.mark(0, foot)
    inner = (room[0] + 1, room[1], room[2], room[3])
    for _ in range(2):
        b.box(b.spot(inner, margin=0.75, gap=1.3), 0.3, b.paint(colour), key=KEY, mass=2.0)
    _spread_distractors(b, room, _pick(variant, 0, 1, (0, 1), rng), others)
    b.apple(b.spot(apple, margin=0.9, gap=0.0))
    b.start(b.spot(room, margin=0.5, gap=0.9))
    return b


def baseball(rng: np.random.Generator, variant: Variant) -> Builder:
    """Knock the ball off its plinth with the stick, then use it as a key. Mark 0: the plinth.

    Body 0: the ball, 1: the stick.
    """
    width, depth = (_pick(variant, 8, 12, (14, 19), rng) for _ in range(2))
    b, room, apple, door = _two_rooms(
        lambda c, r: Builder(rng, c, r, cap=4.5), rng, width, depth, _pick(variant, 6, 8, (10, 10), rng)
    )
    colour, wood, *others = b.draw_colours(4)
    sensor = _plate_on_a_wall(b, room, colour, ("west", "north", "south"))
    b.door(door, [sensor])
    column = int(rng.integers(room[0] + 3, room[2] - 3))
    row = int(rng.integers(room[1] + 3, room[3] - 3))
    b.ground((column, row, column + 1, row + 1), 3.6)
    plinth = (core.CELL * (column + 0.5), core.CELL * (row + 0.5))
    b.mark(0, plinth)
    b.ball(plinth, 0.2, b.paint(colour), floor=3.6, key=KEY)
    stick = b.spot(room, margin=0.7, gap=1.0)
    b.body(core.STICK, stick, (0.6, 0.05, 0.05), b.paint(wood), yaw=float(rng.uniform(-np.pi, np.pi)))
    _spread_distractors(b, room, _pick(variant, 0, 1, (0, 2), rng), others)
    b.apple(b.spot(apple, margin=0.9, gap=0.0))
    b.start(b.spot(room, margin=0.5, gap=0.9))
    return b


def push_blocks(rng: np.random.Generator, variant: Variant) -> Builder:
    """Push the block of the sensor's colour into the recess, and no other. Mark 0: the recess.

    Body 0: the right block.
    """
    width, depth = (_pick(variant, 14, 16, (18, 23), rng) for _ in range(2))
    b, room, apple, door = _two_rooms(
        lambda c, r: Builder(rng, c, r), rng, width, depth, _pick(variant, 6, 8, (10, 10), rng)
    )
    num = _pick(variant, 2, 3, (3, 5), rng)
    colours = b.draw_colours(num)
    column = int(rng.integers(room[0] + 4, room[2] - 7 + 1))
    row = int(rng.integers(room[1] + 4, room[3] - 7 + 1))
    b.ground((column, row, column + 3, row + 3), -0.3, top=b.paint(colours[0]))
    recess = (core.CELL * (column + 1.5), core.CELL * (row + 1.5))
    b.mark(0, recess)
    sensor = b.sensor((*recess, -0.29), (0.7, 0.7, 0.01), KEY, core.LATCH, b.paint(colours[0]))
    b.door(door, [sensor])
    b.keep_clear(recess)
    far = {"tiny": 1.75, "small": 2.5, "full": 3.5}[variant]  # the right block is not bumped in by chance
    for i in range(num):
        at = b.spot(room, margin=1.25, gap=far if i == 0 else 1.75)
        key = KEY if i == 0 else 0
        b.box(at, 0.4, b.paint(colours[i]), key=key, mass=HEAVY, flags=PUSH_ONLY)
    b.apple(b.spot(apple, margin=0.9, gap=0.0))
    b.start(b.spot(room, margin=0.5, gap=1.2))
    return b


def remember_sensor(rng: np.random.Generator, variant: Variant) -> Builder:
    """See a plate's colour, walk the hall over two strips that cost, bring back the block of that colour.

    The start room has the apple room to its east and the hall to its south; the plate hangs on the south
    wall, so that nobody sees it from the hall. In larger levels the hall has two bends. Body 0: the right
    block.
    """
    length = _pick(variant, 8, 18, (28, 35), rng)
    num = _pick(variant, 2, 3, (4, 6), rng)
    start_side, block_side, apple_side = 8, _pick(variant, 8, 10, (12, 12), rng), 6
    bend = 0 if variant == "tiny" else 6
    upper = length if bend == 0 else (length - bend) // 2
    lower = length - upper - bend
    down = upper + (lower + 3 if bend else 0)  # rows from the start room to the block room
    rows = 1 + start_side + down + block_side + 1
    b = Builder(rng, 1 + start_side + 1 + apple_side + 1, rows)
    b.draw_surfaces(is_grey=True)
    room = (1, 1, 1 + start_side, 1 + start_side)
    apple = (2 + start_side, 2, 2 + start_side + apple_side, 2 + apple_side)
    b.ground(room)
    b.ground(apple)
    top, first = 1 + start_side, 6  # the hall opens at the east end of the south wall
    b.ground((first, top, first + 3, top + upper))
    last = first
    if bend:
        last = first - 5 + 2
        b.ground((last, top + upper, first + 3, top + upper + 3))
        b.ground((last, top + upper + 3, last + 3, top + down))
    blocks = (
        last - 2 if bend else 1,
        top + down,
        (last - 2 if bend else 1) + block_side,
        top + down + block_side,
    )
    b.ground(blocks)
    for row in (top + 1, top + down - 2):
        column = first if row == top + 1 else last
        b.strip((column * 0.5, row * 0.5, (column + 3) * 0.5, row * 0.5 + 0.5), -0.1)
    colours = b.draw_colours(num)
    sensor = b.plate(room, "south", float(rng.uniform(0.8, 1.6)), KEY, core.LATCH, colours[0])
    row = int(rng.integers(apple[1], apple[3] - 2))
    b.door((1 + start_side, row, 2 + start_side, row + 3), [sensor])
    for i in range(num):
        key = KEY if i == 0 else 0
        b.box(b.spot(blocks, margin=0.6, gap=1.1), 0.22, b.paint(colours[i]), key=key)
    b.apple(b.spot(apple, margin=0.9, gap=0.0))
    b.start(b.spot(room, margin=0.5, gap=0.0))
    return b


def throw_across(rng: np.random.Generator, variant: Variant) -> Builder:
    """Throw one of two keys over the void, open the first door with the other, go round, use the first.

    Behind the first door a veil destroys every key and the floor drops by 0.6 m: nothing is carried
    through, and nobody comes back. Marks: 0 and 1, two points from the near leg to the far one (the line
    between is the middle of the void); 2 and 3, before and behind the ledge. Bodies 0 and 1: the keys.
    """
    width = _pick(variant, 6, 6, (6, 8), rng)
    length = _pick(variant, 8, 12, (14, 19), rng)
    gap = _pick(variant, 4, 5, (5, 8), rng)
    apple_side = 6
    far = 1 + width + gap  # first column of the far leg
    b = Builder(rng, far + width + 1 + apple_side + 1, 1 + length + 1 + 4 + 1)
    b.draw_surfaces()
    near_leg = (1, 1, 1 + width, 1 + length)
    far_leg = (far, 1, far + width, 1 + length)
    bottom = (1, 2 + length, far + width, 6 + length)
    low = -0.6
    b.ground(near_leg)
    b.ground((1 + width, 1, far, 1 + length), core.VOID)
    b.ground(far_leg, low)
    b.ground((far, 1, far + 1, 1 + length), low + 0.25)  # a kerb
    b.ground(bottom, low)
    b.ground((far + 1, 1 + length, far + width, 2 + length), low)  # the far leg is open towards the bottom
    apple = (far + width + 1, 1, far + width + 1 + apple_side, 1 + apple_side)
    b.ground(apple, low)
    colour = b.draw_colours(1)[0]
    along = float(rng.uniform(0.9, core.CELL * length - 0.9))
    first = b.plate(near_leg, "west", along, KEY, core.CONSUME, colour)
    column = int(rng.integers(1, 1 + width - 3))
    door = (column, 1 + length, column + 3, 2 + length)
    b.door(door, [first])
    edge = core.CELL * (2 + length)
    veil = (core.CELL * (column + 1.5), edge + 0.03, 5.7)  # up to 12 m: nobody throws over it
    b.sensor(veil, (0.75, 0.01, 6.3), KEY, core.DESTROY, b.paint(colour))
    # The plate of the second lock is on the north wall, away from where keys are thrown along the leg.
    along = float(rng.uniform(1.0, core.CELL * width - 0.8))
    second = b.plate(far_leg, "north", along, KEY, core.CONSUME, colour, floor=low)
    row = int(rng.integers(apple[1], min(apple[3], far_leg[3]) - 2))
    b.door((far + width, row, far + width + 1, row + 3), [second], floor=low)
    half = float(rng.uniform(0.18, 0.24))
    middle_x = core.CELL * (1 + width + 0.5 * gap)
    b.mark(0, (middle_x, 2.0))
    b.mark(1, (middle_x + 1.0, 2.0))
    b.mark(2, (core.CELL * (column + 1.5), edge))
    b.mark(3, (core.CELL * (column + 1.5), edge + 1.0))
    for _ in range(2):
        b.box(b.spot(near_leg, margin=0.6, gap=1.0), half, b.paint(colour), key=KEY)
    b.apple(b.spot(apple, margin=0.9, gap=0.0), floor=low)
    b.start(b.spot(near_leg, margin=0.5, gap=0.9))
    return b


def drawbridge(rng: np.random.Generator, variant: Variant) -> Builder:
    """Choose one of several bridges on every platform; each key opens one, and some lead past a small apple.

    Walkways lead from all side platforms to the next main one, 0.4 m lower, so that nobody comes back. Body
    i of each fork: its key first, then its posts. Marks 1 to 3: the middles of the main platforms after
    each fork.
    """
    forks = _pick(variant, 1, 2, (2, 3), rng)
    num = _pick(variant, 2, 2, (3, 3), rng)
    main, span, side, walk, pitch = 6, 4, 5, 3, 7
    stride = main + span + side + walk
    rows = pitch * num - 1
    columns = forks * stride + main + 2
    b = Builder(rng, columns, rows + 2, cap=2.5)
    b.draw_surfaces()
    b.ground((1, 1, columns - 1, rows + 1), core.VOID)
    colours = b.draw_colours(forks)
    for fork in range(forks):
        height, left = -0.4 * fork, 1 + fork * stride
        b.ground((left, 1, left + main, rows + 1), height)
        paint, key = b.paint(colours[fork]), KEY + fork
        b.mark(fork + 1, (0.5 * (left + stride + 0.5 * main), 0.5 * (1 + 0.5 * rows)))
        at = b.spot((left, 1, left + main - 2, rows + 1), margin=0.6, gap=0.8)
        b.box(at, 0.2, paint, key=key, floor=height)
        lucky = int(rng.integers(num))
        for i in range(num):
            top = 1 + pitch * i  # a side platform has rows top … top + 6, its bridge the middle three
            edge = left + main
            post = (core.CELL * edge - 0.25, core.CELL * (top + 1) - 0.1)
            b.body(core.BOX, post, (0.15, 0.15, 0.6), paint, floor=height, mass=100.0, flags=0)
            sensor = b.sensor((*post, height + 0.6), (0.155, 0.155, 0.605), key, core.CONSUME, paint)
            b.bridge((edge, top + 1, edge + span, top + 4), [sensor], height=height)
            first = edge + span
            b.ground((first, top, first + side, top + 6), height)
            if variant == "full" and rng.uniform() < 0.7:
                b.ground((first + 2, top + 2, first + 3, top + 4), height + 2.2, top=b.wall)
            b.ground((first + side, top + 1, first + side + walk, top + 4), height)
            if i == lucky:
                b.apple((core.CELL * (first + 4.0), core.CELL * (top + 3.0)), floor=height, is_large=False)
    height, left = -0.4 * forks, 1 + forks * stride
    b.ground((left, 1, left + main, rows + 1), height)
    b.apple(b.spot((left + 1, 1, left + main, rows + 1), margin=0.9, gap=0.0), floor=height)
    b.start(b.spot((1, 1, 1 + main - 2, rows + 1), margin=0.5, gap=0.9))
    return b


def navigate_cubes(rng: np.random.Generator, variant: Variant) -> Builder:
    """Get through a wall of cubes and up the stairs.

    Marks 0 and 1: behind the wall, and one metre further.
    """
    width = _pick(variant, 8, 13, (18, 18), rng)
    length = _pick(variant, 26, 30, (34, 34), rng)
    deep = 3  # lines of cubes: with two, random pushing gets through once in seventy tiny episodes
    high = _pick(variant, 1, 1, (2, 2), rng)
    stairs = _pick(variant, 2, 3, (5, 5), rng)
    b = Builder(rng, width + 2, length + 2)
    b.draw_surfaces()
    b.ground((1, 1, 1 + width, 1 + length))
    across = int(width * core.CELL / 0.8)
    pitch = width * core.CELL / across
    surfaces = [b.paint(colour) for colour in b.draw_colours(3)]
    middle = core.CELL * (1 + length // 2 - 2)
    for layer in range(high):
        for line in range(deep):
            for i in range(across):
                at = (core.CELL + pitch * (i + 0.5), middle + 0.805 * line)
                surface = surfaces[int(rng.integers(len(surfaces)))]
                b.box(at, 0.4, surface, mass=HEAVY, floor=0.8 * layer)
    beyond = middle + 0.805 * (deep - 1) + 0.4
    b.mark(0, (core.CELL * (1 + 0.5 * width), beyond))
    b.mark(1, (core.CELL * (1 + 0.5 * width), beyond + 1.0))
    top = 0.25 * stairs
    left = int(rng.integers(1, 1 + width - 4 + 1))
    end = 1 + length
    b.ground((left, end - 4, left + 4, end), top)
    for step in range(1, stairs):
        b.ground((left, end - 4 - step, left + 4, end - 3 - step), 0.25 * (stairs - step))
    b.apple((core.CELL * (left + 2), core.CELL * (end - 2)), floor=top)
    b.mark(2, (core.CELL * (left + 2), core.CELL * (end - 4 - stairs)))
    b.start(b.spot((1, 1, 1 + width, int(2 * middle) - 3), margin=0.5, gap=0.9))
    return b


GENERATORS: dict[str, Callable[[np.random.Generator, Variant], Builder]] = {
    "baseball": baseball,
    "drawbridge": drawbridge,
    "navigate_cubes": navigate_cubes,
    "push_blocks": push_blocks,
    "remember_sensor": remember_sensor,
    "throw_across": throw_across,
    "wall_sensor": wall_sensor,
    "wall_sensor_stack": wall_sensor_stack,
}
