"""Which places a run has visited: ground truth beside the environment, for measurement only.

A place is an integer that an environment reports in `TimeStep.place` (maze cell, Atari
room and position, …; -1 is nowhere). No agent sees it, except the one that is paid by
true counts as the limit of what counting can give.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO, Protocol

import numpy as np

from softcount.hints import install
from softcount.types import Array, State, TimeStep


class Mapped(Protocol):
    """An environment that knows where its places lie."""

    @property
    def map_shape(self) -> tuple[int, int]: ...
    def cell_of(self, place: int) -> tuple[int, int]: ...


class Coverage:
    """Counts visits to places, and remembers when each was first seen.

    >>> coverage = Coverage(num_places=10)
    >>> for places in ([0, 0], [0, 3], [-1, 4]):
    ...     coverage.update_places(np.array(places))
    >>> coverage.num_visited, coverage.fraction, coverage.steps
    (3, 0.3, 6)
    >>> coverage.curve()
    (array([1, 4, 6]), array([1, 2, 3]))
    """

    def __init__(self, num_places: int | None = None) -> None:
        self.num_places = num_places
        self.steps = 0
        self.visits = np.zeros(num_places or 0, np.int64)  # grows where the number of places is unknown
        self.first_seen = np.zeros(num_places or 0, np.int64)  # step of the first visit, 0 if there was none

    @property
    def num_visited(self) -> int:
        """How many distinct places were visited."""
        return int(np.count_nonzero(self.visits))

    @property
    def fraction(self) -> float | None:
        """Which part of all places was visited; None where their number is unknown."""
        return self.num_visited / self.num_places if self.num_places else None

    def update(self, step: TimeStep) -> None:
        """Counts one row per copy."""
        if step.place is None:
            raise ValueError("this environment reports no places; expected TimeStep.place")
        self.update_places(step.place)

    def update_places(self, places: Array) -> None:
        """Counts places in the order in which they are given; each is one step."""
        top = int(places.max(initial=-1))
        if self.num_places is not None and top >= self.num_places:
            raise ValueError(f"place {top} was reported; expected less than {self.num_places}")
        if top >= len(self.visits):
            grown = max(2 * len(self.visits), top + 1)
            self.visits = np.pad(self.visits, (0, grown - len(self.visits)))
            self.first_seen = np.pad(self.first_seen, (0, grown - len(self.first_seen)))
        distinct, index, counts = np.unique(places, return_index=True, return_counts=True)
        is_somewhere = distinct >= 0
        distinct, index, counts = distinct[is_somewhere], index[is_somewhere], counts[is_somewhere]
        is_new = self.visits[distinct] == 0
        self.first_seen[distinct[is_new]] = self.steps + index[is_new] + 1
        self.visits[distinct] += counts
        self.steps += len(places)

    def curve(self) -> tuple[Array, Array]:
        """Returns the steps at which a new place was seen and how many were known from then on."""
        steps = np.sort(self.first_seen[self.first_seen > 0])
        return steps, np.arange(1, len(steps) + 1)

    def state_dict(self) -> State:
        """Returns the visited places only."""
        places = np.flatnonzero(self.visits)
        return {
            "num_places": self.num_places,
            "steps": self.steps,
            "places": places,
            "visits": self.visits[places],
            "first_seen": self.first_seen[places],
        }

    def load_state_dict(self, state: State) -> None:
        """Continues a count."""
        if state["num_places"] != self.num_places:
            raise ValueError(f"the state has {state['num_places']} places; expected {self.num_places}")
        size = self.num_places or int(state["places"].max(initial=-1)) + 1
        self.steps = state["steps"]
        self.visits, self.first_seen = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.visits[state["places"]] = state["visits"]
        self.first_seen[state["places"]] = state["first_seen"]

    def part(self, num_places: int | None, numbers: Array, places: Array) -> Coverage:
        """Returns the visits to some places, counted under names of their own: those of one task."""
        part = Coverage(num_places)
        part.load_state_dict(
            {
                "num_places": num_places,
                "steps": self.steps,
                "places": places,
                "visits": self.visits[numbers],
                "first_seen": self.first_seen[numbers],
            }
        )
        return part


def heat_map(coverage: Coverage, env: Mapped) -> Array:
    """Lays the visits out on the environment's map: float64 `map_shape`, NaN where never visited.

    Places that share a cell of the map are added up.
    """
    image = np.zeros(env.map_shape)
    for place in np.flatnonzero(coverage.visits):
        image[env.cell_of(int(place))] += coverage.visits[place]
    return np.where(image > 0, image, np.nan)


def draw_heat_map(
    path: str | os.PathLike[str] | BinaryIO,
    coverage: Coverage,
    env: Mapped,
    *,
    title: str = "",
    background: Any = None,
) -> None:
    """Writes the map as a picture (see `plot_heat_map`)."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(f"drawing needs matplotlib: {install('plots')}") from error

    rows, columns = env.map_shape
    figure = Figure(figsize=(6, min(8, 6 * rows / columns) + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    plot_heat_map(figure.subplots(), coverage, env, title=title, background=background)
    figure.savefig(path, dpi=100)


def plot_heat_map(
    axes: Any, coverage: Coverage, env: Mapped, *, title: str = "", background: Any = None
) -> None:
    """Draws the map on matplotlib axes: brighter is visited more often, on a logarithmic scale.

    `background` is a boolean map of where places can be (a maze's floor), drawn in light grey.
    """
    from matplotlib.colors import LogNorm

    image = heat_map(coverage, env)
    axes.set_facecolor("0.15")
    if background is not None:
        axes.imshow(np.where(background, 0.85, np.nan), cmap="gray", vmin=0, vmax=1)
    norm = LogNorm(vmin=1, vmax=max(2.0, float(np.nanmax(image, initial=1))))
    drawn = axes.imshow(image, cmap="inferno", norm=norm, interpolation="nearest")
    axes.figure.colorbar(drawn, ax=axes, label="visits", shrink=0.8)
    known = f" of {coverage.num_places}" if coverage.num_places else ""
    axes.set_title(f"{title}{coverage.num_visited}{known} places in {coverage.steps:,} steps", fontsize=10)
    axes.set_xticks([])
    axes.set_yticks([])
