"""The world as the run knows it: where its places lie and when each was first seen."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from softcount.envs.coverage import Coverage, Mapped, heat_map
from softcount.types import Array, VectorEnv


def describe_world(coverage: Coverage | None, env: VectorEnv | None) -> dict[str, Any]:
    """Returns the map with first visits, or what there is where there is no map."""
    if coverage is None:
        return {"missing": "This world does not say where the agent is, so there is nothing to map."}
    numbers = {"visited": coverage.num_visited, "places": coverage.num_places, "steps": coverage.steps}
    if env is None:
        return {**numbers, "missing": "This world cannot be built here, so its map is not known."}
    if getattr(env, "map_shape", None) is None:
        return {**numbers, "missing": "This world counts places but has no map of them."}
    mapped = cast(Mapped, env)
    visits, first = heat_map(coverage, mapped), first_seen_map(coverage, mapped)
    is_seen = ~np.isnan(visits)
    rows, columns = np.nonzero(is_seen)
    return {
        **numbers,
        "shape": list(mapped.map_shape),
        "cells": np.stack([rows, columns], axis=1).tolist(),
        "first_seen": first[is_seen].astype(int).tolist(),
        "visits": visits[is_seen].astype(int).tolist(),
        "floor": _floor(coverage, mapped),
        "goal": _goal(env),
    }


def first_seen_map(coverage: Coverage, env: Mapped) -> Array:
    """Lays first visits out on the map: the earliest of all places that share a cell, NaN for never."""
    image = np.full(env.map_shape, np.inf)
    for place in np.flatnonzero(coverage.visits):
        cell = env.cell_of(int(place))
        image[cell] = min(image[cell], coverage.first_seen[place])
    return np.where(np.isinf(image), np.nan, image)


def cells_of(env: VectorEnv, places: list[int]) -> list[list[int] | None]:
    """Returns where on the map places lie; None for nowhere."""
    if getattr(env, "map_shape", None) is None:
        return [None] * len(places)
    mapped = cast(Mapped, env)
    return [list(mapped.cell_of(place)) if place >= 0 else None for place in places]


def _floor(coverage: Coverage, env: Mapped) -> list[list[int]] | None:
    """Returns all cells that can be visited; None where nobody knows how many there are."""
    if coverage.num_places is None:
        return None
    return [list(env.cell_of(place)) for place in range(coverage.num_places)]


def _goal(env: Any) -> list[int] | None:
    """Returns the cell of the goal of a maze that stays the same."""
    goal = getattr(env, "goal", None) if env.num_places is not None else None
    return None if goal is None else [int(x) for x in goal]
