"""A level from above, and film strips: pictures for people, never for agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softcount.envs.eight_rooms import core
from softcount.types import Array

BLUE, RED, BROWN = (40, 90, 250), (220, 30, 40), (120, 95, 70)


def map_image(state: Any, *, scale: int = 16, trail: Sequence[tuple[float, float]] = ()) -> Array:
    """Draws the map `[rows · scale, columns · scale, 3]` uint8.

    Walls are grey, the void is black, floors are the paler the higher. Doors and bridges are outlined, and
    filled while they are closed. Sensors and bodies have their colours, a held body has a white edge.
    Apples and strips are red; the agent is a blue triangle and its trail a blue line.
    """
    rows, columns = int(state["rows"]), int(state["columns"])
    heights = np.asarray(state["heights"])[:rows, :columns]
    shade = np.clip(190 + 45 * heights, 60, 240)
    cells = np.where(heights >= core.WALL, 105, np.where(heights <= -5, 12, shade)).astype(np.uint8)
    image = np.stack([cells] * 3, -1).repeat(scale, 0).repeat(scale, 1)
    canvas = _Canvas(image, scale / core.CELL)
    for strip in state["strips"][: int(state["num_strips"])]:
        canvas.box(*_middle_of(strip), BROWN if strip["reward"] > 0 else RED)
    for mover in state["movers"][: int(state["num_movers"])]:
        where = [scale * int(mover[name]) for name in ("row0", "row1", "column0", "column1")]
        part = image[where[0] : where[1], where[2] : where[3]]
        inner = part[2:-2, 2:-2].copy()
        part[:] = BROWN
        if mover["height"] != mover["closed"]:
            part[2:-2, 2:-2] = 200 if mover["height"] == mover["open"] else inner
    for sensor in state["sensors"][: int(state["num_sensors"])]:
        colour = _colour(state, sensor)
        half = max(float(sensor["hx"]), 0.06), max(float(sensor["hy"]), 0.06)
        bleached = tuple(int(0.3 * part + 178) for part in colour)
        canvas.box(
            float(sensor["x"]), float(sensor["y"]), *half, 0.0, bleached if sensor["is_on"] else colour
        )
    bodies = state["bodies"][: int(state["num_bodies"])]
    for i in np.argsort(bodies["z"]):
        _draw_body(canvas, state, int(i))
    for apple in state["apples"][: int(state["num_apples"])]:
        if not apple["is_eaten"]:
            canvas.disc(float(apple["x"]), float(apple["y"]), float(apple["radius"]), RED)
    for x, y in trail:
        canvas.disc(x, y, 0.05, BLUE)
    agent = state["agent"]
    canvas.triangle(float(agent["x"]), float(agent["y"]), float(agent["yaw"]), BLUE)
    return image


def film_strip(frames: Sequence[Array], columns: int = 6, scale: int = 2) -> Array:
    """Lays frames of equal size out in rows, each pixel `scale` wide, with a thin line between."""
    height, width = frames[0].shape[:2]
    num_rows = -(-len(frames) // columns)
    sheet = np.full((num_rows * (height * scale + 2), columns * (width * scale + 2), 3), 255, np.uint8)
    for i, frame in enumerate(frames):
        top, left = (i // columns) * (height * scale + 2), (i % columns) * (width * scale + 2)
        sheet[top : top + height * scale, left : left + width * scale] = frame.repeat(scale, 0).repeat(
            scale, 1
        )
    return sheet


def walkable(state: Any) -> Array:
    """Which cells of one metre have ground that is no wall and no void `[32, 32]`.

    The background of heat maps.
    """
    heights = np.asarray(state["heights"])
    ground = (heights < core.WALL) & (heights > core.VOID)
    return np.asarray(ground.reshape(32, 2, 32, 2).any((1, 3)))


def _draw_body(canvas: _Canvas, state: Any, index: int) -> None:
    body = state["bodies"][index]
    if not body["flags"] & core.ALIVE:
        return
    x, y, colour = float(body["x"]), float(body["y"]), _colour(state, body)
    edge = (255, 255, 255) if index == state["agent"]["held"] else (20, 20, 20)
    if body["kind"] == core.BALL:
        canvas.disc(x, y, float(body["hx"]) + 0.04, edge)
        canvas.disc(x, y, float(body["hx"]), colour)
    else:
        half = float(body["hx"]) * float(np.cos(body["pitch"])), float(body["hy"])
        canvas.box(x, y, half[0] + 0.04, half[1] + 0.04, float(body["yaw"]), edge)
        canvas.box(x, y, *half, float(body["yaw"]), colour)


def _middle_of(strip: Any) -> tuple[float, float, float, float, float]:
    x0, y0, x1, y1 = (float(strip[name]) for name in ("x0", "y0", "x1", "y1"))
    return 0.5 * (x0 + x1), 0.5 * (y0 + y1), 0.5 * (x1 - x0), 0.5 * (y1 - y0), 0.0


def _colour(state: Any, thing: Any) -> tuple[int, int, int]:
    material = state["materials"][int(thing["material"])]
    return int(255 * material["red"]), int(255 * material["green"]), int(255 * material["blue"])


class _Canvas:
    """Filled shapes in metres on an image."""

    def __init__(self, image: Array, pixels_per_metre: float) -> None:
        self.image = image
        self.x = (np.arange(image.shape[1]) + 0.5) / pixels_per_metre
        self.y = ((np.arange(image.shape[0]) + 0.5) / pixels_per_metre)[:, None]

    def disc(self, x: float, y: float, radius: float, colour: tuple[int, ...]) -> None:
        self.image[(self.x - x) ** 2 + (self.y - y) ** 2 <= radius**2] = colour

    def box(self, x: float, y: float, hx: float, hy: float, yaw: float, colour: tuple[int, ...]) -> None:
        c, s = np.cos(yaw), np.sin(yaw)
        u = (self.x - x) * c + (self.y - y) * s
        v = (self.y - y) * c - (self.x - x) * s
        self.image[(np.abs(u) <= hx) & (np.abs(v) <= hy)] = colour

    def triangle(self, x: float, y: float, yaw: float, colour: tuple[int, ...]) -> None:
        c, s = np.cos(yaw), np.sin(yaw)
        u = (self.x - x) * c + (self.y - y) * s
        v = (self.y - y) * c - (self.x - x) * s
        self.image[(u >= -0.3) & (np.abs(v) <= 0.25 * (0.45 - u))] = colour
