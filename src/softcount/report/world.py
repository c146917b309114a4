"""The worlds as the run knows them: where their places lie and when each was first seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from softcount.envs.worlds import World
from softcount.measure.coverage import Coverage, Mapped, heat_map
from softcount.types import Array


def describe_worlds(coverage: Coverage | None, worlds: list[World] | None) -> list[dict[str, Any]]:
    """Returns a map with first visits for each task, or what there is where there is no map."""
    if coverage is None:
        return [{"missing": "This world does not say where the agent is, so there is nothing to map."}]
    if worlds is None:
        missing = "This world cannot be built here, so its map is not known."
        return [{**_numbers(coverage), "missing": missing}]
    return [
        {
            "task": world.task if len(worlds) > 1 else None,
            **_describe(coverage.part(world.num_places, world.numbers, world.places), world),
        }
        for world in worlds
    ]


def _describe(coverage: Coverage, world: World) -> dict[str, Any]:
    chart = world.chart
    if chart is None:
        return {**_numbers(coverage), "missing": "This world counts places but has no map of them."}
    visits, first = heat_map(coverage, chart), first_seen_map(coverage, chart)
    is_seen = ~np.isnan(visits)
    rows, columns = np.nonzero(is_seen)
    return {
        **_numbers(coverage),
        "shape": list(chart.map_shape),
        "cells": np.stack([rows, columns], axis=1).tolist(),
        "first_seen": first[is_seen].astype(int).tolist(),
        "visits": visits[is_seen].astype(int).tolist(),
        # all cells that can be visited; nobody knows where nobody knows how many there are
        "floor": None if coverage.num_places is None else chart.cells.tolist(),
        "goal": None if world.goal is None else list(world.goal),
    }


def _numbers(coverage: Coverage) -> dict[str, Any]:
    return {"visited": coverage.num_visited, "places": coverage.num_places, "steps": coverage.steps}


def first_seen_map(coverage: Coverage, chart: Mapped) -> Array:
    """Lays first visits out on the map: the earliest of all places that share a cell, NaN for never."""
    image = np.full(chart.map_shape, np.inf)
    for place in np.flatnonzero(coverage.visits):
        cell = chart.cell_of(int(place))
        image[cell] = min(image[cell], coverage.first_seen[place])
    return np.where(np.isinf(image), np.nan, image)


def cells_of(world: World, numbers: list[int]) -> list[list[int] | None]:
    """Returns where on a world's map places lie that it was asked for; None for nowhere."""
    if world.chart is None:
        return [None] * len(numbers)
    places = dict(zip(world.numbers.tolist(), world.places.tolist(), strict=True))
    return [list(world.chart.cell_of(places[number])) if number in places else None for number in numbers]
