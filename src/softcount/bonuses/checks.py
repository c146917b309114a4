"""What every bonus checks of a batch before it changes anything."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from softcount.types import Array, Features


class Batch(NamedTuple):
    """The rows of one call; arrays of length B."""

    env_ids: Array  # int64
    is_first: Array  # bool


def check_batch(num_rows: int, env_ids: Array, is_first: Array) -> Batch:
    """Returns ids and flags as plain arrays, or says which does not fit the rows."""
    ids, first = np.asarray(env_ids), np.asarray(is_first)
    if ids.shape != (num_rows,) or ids.dtype.kind not in "iu" or (num_rows > 0 and ids.min() < 0):
        raise ValueError(
            f"env_ids are {ids.dtype} of shape {ids.shape}; expected {num_rows} whole numbers of at least 0, "
            "one per row of features"
        )
    if first.shape != (num_rows,) or first.dtype != np.bool_:
        raise ValueError(f"is_first is {first.dtype} of shape {first.shape}; expected {num_rows} booleans")
    return Batch(ids.astype(np.int64), first)


def take_embedding(features: Features, bonus: str) -> Array:
    """Returns the embedding, or says which representation gives none."""
    if features.embedding is None:
        raise ValueError(f"{bonus} needs features.embedding, which is None; use a representation that embeds")
    return np.asarray(features.embedding)


def take_surprise(features: Features, bonus: str) -> Array:
    """Returns the surprise as float64 `[B]`, or says what is wrong with it."""
    if features.surprise is None:
        raise ValueError(
            f"{bonus} needs features.surprise, which is None; expected one; RND gives none before "
            "its first update"
        )
    surprise = np.asarray(features.surprise, np.float64)
    if surprise.ndim != 1:
        raise ValueError(f"features.surprise has shape {surprise.shape}; expected (B,)")
    if not np.isfinite(surprise).all():
        row = int((~np.isfinite(surprise)).argmax())
        raise ValueError(f"features.surprise[{row}] is {surprise[row]}; the bonus is unchanged")
    return surprise
