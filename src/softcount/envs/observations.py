"""What Gymnasium environments show, made plain: arrays that every torso can read.

    Box, 1-D                       numbers as float32
    Box, images                    channels last: `(84, 84, 4)`, `(4, 84, 84)`, stacks `(4, 84, 84, 3)`
    Discrete, MultiDiscrete        one-hot; grids of categories `(H, W)` become `(H, W, categories)`
    MultiBinary                    numbers as float32, flat
    Dict, Tuple, also nested       one array per part, under its name (`inner/part`) or its place (`0`)

The rest (text, graphs, lists of any length) is refused when the environment is made. Observations come
and go in batches `[B, ...]`; `read` converts them, and says which part has the wrong shape or values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from softcount.types import Array, ArraySpec, ObservationSpec

MOST_CATEGORIES = 10_000
"""One-hot vectors longer than this fill a replay and teach a network little."""


class Part(NamedTuple):
    """One array of an observation: as it comes, and as networks get it."""

    path: tuple[Any, ...]  # keys that lead to it
    shape: tuple[int, ...]  # as it comes, without the batch axis
    spec: ArraySpec  # as it is given on
    convert: Callable[[Array], Array]  # of a batch

    @property
    def name(self) -> str:
        """What it is called; networks forbid dots in names."""
        return "/".join(str(key).replace(".", "_") for key in self.path)


class ObservationReader:
    """Reads batches of observations of one space.

    >>> from gymnasium import spaces
    >>> eye = spaces.Box(0, 255, (1, 8, 8), "uint8")
    >>> reader = ObservationReader(spaces.Dict(at=spaces.Discrete(3), eye=eye))
    >>> reader.spec["eye"].shape, reader.read({"at": [2], "eye": np.zeros((1, 1, 8, 8))})["at"].tolist()
    ((8, 8, 1), [[0.0, 0.0, 1.0]])
    """

    def __init__(self, space: Any) -> None:
        self.parts = list(_parts(space, ()))
        if not self.parts:
            raise TypeError(f"cannot observe {space}: it is empty")
        names = [part.name for part in self.parts]
        if len(set(names)) < len(names):
            raise TypeError(f"cannot observe {space}: two of its parts would be called {_repeated(names)!r}")

    @property
    def spec(self) -> ObservationSpec:
        """What `read` returns: one array, or one per name."""
        if not self.parts[0].path:
            return self.parts[0].spec
        return {part.name: part.spec for part in self.parts}

    def read(self, observation: Any, name: str = "the observation", num: int | None = None) -> Any:
        """Converts a batch, of `num` rows where that is known."""
        if not self.parts[0].path:
            return _read(self.parts[0], observation, name, num)
        arrays = {}
        for part in self.parts:
            value = observation
            for key in part.path:
                value = _part(value, key, part, name)
            arrays[part.name] = _read(part, value, f"{name}[{part.name!r}]", num)
        return arrays

    def stack(self, observations: list[Any]) -> Any:
        """Converts observations that come one by one, as a batch."""
        arrays = {}
        for part in self.parts:
            values = observations
            for key in part.path:
                values = [value[key] for value in values]
            arrays[part.name] = part.convert(np.stack([np.asarray(value) for value in values]))
        return arrays if self.parts[0].path else arrays[""]


def to_numpy(value: Any) -> Array:
    """Takes arrays of any library; torch tensors from any device, without their graph."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    if not hasattr(value, "__array__") and hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def is_channels_first(shape: tuple[int, ...]) -> bool:
    """Whether a shape is an image with its channels in front: first axis the smallest of three."""
    return len(shape) == 3 and shape[0] < min(shape[1:])


def _part(value: Any, key: Any, part: Part, name: str) -> Any:
    try:
        return value[key]
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"{name} is {type(value).__name__} and lacks {part.name!r}") from error


def _read(part: Part, value: Any, name: str, num: int | None) -> Array:
    array = to_numpy(value)
    batch = num if num is not None else (array.shape[0] if array.ndim else 0)
    if part.shape == () and array.shape == (batch, 1):  # as many libraries keep single numbers
        array = array[:, 0]
    if array.shape != (batch, *part.shape):
        wanted = f"({', '.join(map(str, (num if num is not None else 'B', *part.shape)))})"
        raise ValueError(f"{name} has shape {array.shape}; expected {wanted}, as num_envs and the space say")
    if array.dtype.kind not in "iufb":
        raise ValueError(f"{name} has dtype {array.dtype}; expected numbers")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} holds NaN or infinity")
    try:
        return part.convert(array)
    except ValueError as error:
        raise ValueError(f"{name} {error}") from error


def _parts(space: Any, path: tuple[Any, ...]) -> Iterator[Part]:
    from gymnasium import spaces

    if isinstance(space, spaces.Dict):
        for key, inner in space.spaces.items():
            yield from _parts(inner, (*path, key))
    elif isinstance(space, spaces.Tuple):
        for index, inner in enumerate(space.spaces):
            yield from _parts(inner, (*path, index))
    elif isinstance(space, spaces.Discrete):
        yield _categories(path, np.array(space.n), np.array(space.start))
    elif isinstance(space, spaces.MultiDiscrete):
        yield _categories(path, space.nvec, space.start)
    elif isinstance(space, spaces.MultiBinary):
        spec = ArraySpec((math.prod(space.shape),), "float32")
        yield Part(path, tuple(space.shape), spec, _flat)
    elif isinstance(space, spaces.Box):
        yield _box(path, space)
    else:
        where = f" under {'/'.join(map(str, path))!r}" if path else ""
        raise TypeError(
            f"cannot observe {space}{where}; expected Box, Discrete, MultiDiscrete, MultiBinary, or a Dict "
            "or Tuple of these: an observation wrapper can turn it into one"
        )


def _categories(path: tuple[Any, ...], nums: Array, start: Array) -> Part:
    """Whole numbers that mean nothing but themselves: one-hot, side by side."""
    most, total = int(nums.max()), int(nums.sum())
    is_grid = nums.ndim == 2 and bool((nums == most).all())
    if total > MOST_CATEGORIES:
        raise TypeError(
            f"cannot observe {total:,} categories as one-hot vectors (at most {MOST_CATEGORIES:,}); "
            "give the numbers behind them, or a Box"
        )
    spec = ArraySpec((*nums.shape, most) if is_grid else (total,), "float32")
    offsets = np.concatenate(([0], np.cumsum(nums.ravel())[:-1]))

    def convert(batch: Array) -> Array:
        index = batch.astype(np.int64).reshape(len(batch), -1) - start.ravel()
        if (index < 0).any() or (index >= nums.ravel()).any() or (batch % 1 != 0).any():
            raise ValueError(
                f"holds a category out of range; expected {nums.tolist()} of them, from {start.tolist()} on"
            )
        hot = np.zeros((len(batch), total), np.float32)
        hot[np.arange(len(batch))[:, None], index + offsets] = 1
        return hot.reshape(len(batch), *spec.shape)

    return Part(path, tuple(nums.shape), spec, convert)


def _box(path: tuple[Any, ...], space: Any) -> Part:
    """Numbers: vectors as they are, images with channels last."""
    shape = tuple(space.shape)
    is_bytes = space.dtype == np.uint8 or (
        len(shape) > 1
        and np.dtype(space.dtype).kind in "iu"
        and space.low.min() >= 0
        and space.high.max() < 256
    )
    kind = "uint8" if is_bytes else "float32"
    if len(shape) > 4:
        raise TypeError(f"cannot observe an array of shape {shape}; expected at most four axes")
    # Where the axes go, batch axis first, and what shape they then have.
    order, turned = tuple(range(len(shape) + 1)), shape or (1,)
    if len(shape) == 4:  # a stack of images: its frames become channels, oldest first
        order = (0, 3, 4, 1, 2) if is_channels_first(shape[1:]) else (0, 2, 3, 1, 4)
        height, width, frames, channels = (shape[axis - 1] for axis in order[1:])
        turned = (height, width, frames * channels)
    elif is_channels_first(shape):
        order, turned = (0, 2, 3, 1), (*shape[1:], shape[0])
    elif len(shape) == 2 and kind == "float32":  # bytes without channels are greys, or rows of a palette
        turned = (*shape, 1)

    def convert(batch: Array) -> Array:
        return batch.astype(kind, copy=False).transpose(order).reshape(len(batch), *turned)

    return Part(path, shape, ArraySpec(turned, kind), convert)


def _flat(batch: Array) -> Array:
    return batch.astype(np.float32).reshape(len(batch), -1)


def _repeated(names: list[str]) -> str:
    return next(name for name in names if names.count(name) > 1)
