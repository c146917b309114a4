"""What the agent does: an evaluation episode, frame by frame, with what it was paid.

The frames become one picture, side by side, from which the page's player cuts: smaller than
an animation, and a reader can stop at a frame. Long episodes show every n-th step.
"""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np

from softcount.config import RunConfig
from softcount.launch.local import LocalLoop
from softcount.report.world import cells_of
from softcount.runs.playback import Played, as_image, play, require_pillow
from softcount.types import Array

MAX_FRAMES = 600
MAX_SIDE = 168
NUM_SYMBOLS = 32
"""Observations whose numbers are all below this are taken for symbols, not for colours."""


def describe_clip(config: RunConfig, loop: LocalLoop, episodes: int) -> dict[str, Any]:
    """Plays episodes and returns the first as a film strip, or why it cannot be shown."""
    if episodes < 1:
        return {"missing": "No episode was played for this report."}
    tasks = loop.roles.actor.task_names()
    episodes = max(min(episodes, config.num_envs) // len(tasks), 1) * len(tasks)  # as many of each
    try:
        played = play(config, loop, episodes, keep_frames=True)
    except (ImportError, OSError, RuntimeError, ValueError) as error:
        return {"missing": f"No episode could be played: {error}."}
    first, *others = loop.roles.actor.worlds(np.array([x for x in played.places if x >= 0], np.int64))
    return {
        **_describe_play(played, episodes),
        "task": first.task if others else None,
        "cells": cells_of(first, played.places),
        **_film(played),
    }


def _describe_play(played: Played, episodes: int) -> dict[str, Any]:
    evaluation = played.evaluation
    return {
        "behaviour": played.behaviour,
        "episodes": episodes,
        "mean_return": evaluation.mean_return,
        "success_rate": evaluation.success_rate,
        "mean_length": float(np.mean([episode.length for episode in evaluation.episodes])),
        "rewards": played.rewards,
        "intrinsics": [float(f"{reward:.5g}") for reward in played.intrinsics],
    }


def _film(played: Played) -> dict[str, Any]:
    frames = played.evaluation.frames
    stride = -(-len(frames) // MAX_FRAMES)
    try:
        images = brighten([_shrink(_as_rgb(as_image(frame))) for frame in frames[::stride]])
        strip, columns = film_strip(images)
        return {
            "image": _as_data_uri(strip),
            "num_frames": len(images),
            "columns": columns,
            "width": images[0].shape[1],
            "height": images[0].shape[0],
            "stride": stride,
        }
    except (ImportError, ValueError, StopIteration) as error:
        return {"missing": f"The observations cannot be shown as pictures: {error}."}


def film_strip(images: list[Array]) -> tuple[Array, int]:
    """Lays frames `[H, W, 3]` out in lines; returns the picture and how many there are to a line.

    >>> strip, columns = film_strip([np.full((2, 2, 3), i, np.uint8) for i in range(3)])
    >>> strip[..., 0].tolist(), columns
    ([[0, 0, 1, 1], [0, 0, 1, 1], [2, 2, 0, 0], [2, 2, 0, 0]], 2)
    """
    height, width, channels = images[0].shape
    columns = int(np.ceil(np.sqrt(len(images) * height / width)))
    lines = -(-len(images) // columns)
    strip = np.zeros((lines, columns, height, width, channels), np.uint8)
    for i, image in enumerate(images):
        strip[divmod(i, columns)] = image
    return strip.transpose(0, 2, 1, 3, 4).reshape(lines * height, columns * width, channels), columns


def brighten(images: list[Array]) -> list[Array]:
    """Stretches symbols, such as MiniGrid's numbers of objects, over the colours that a screen can show."""
    top = max(int(image.max()) for image in images)
    if not 0 < top < NUM_SYMBOLS:
        return images
    return [(image.astype(np.int64) * 255 // top).astype(np.uint8) for image in images]


def _as_rgb(image: Array) -> Array:
    if image.ndim == 2:
        return np.repeat(image[..., None], 3, axis=-1)
    if image.shape[-1] < 3:
        raise ValueError(f"an image of {image.shape[-1]} channels")
    return image[..., :3]


def _shrink(image: Array) -> Array:
    """Leaves out lines and columns of frames that are larger than a page needs."""
    every = -(-max(image.shape[:2]) // MAX_SIDE)
    return image[::every, ::every]


def _as_data_uri(image: Array) -> str:
    buffer = io.BytesIO()
    picture = require_pillow().fromarray(image)
    if len(picture.getcolors(256) or ()) > 0:
        picture = picture.quantize(256, dither=0)  # exact: it has no more colours than that
    picture.save(buffer, "PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
