"""A step as named arrays and back: how a replay takes records apart to store them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from softcount.types import Array, ObservationSpec, Step


def named_observation(observation: Any) -> dict[str, Array]:
    """Names the arrays of an observation; one that is a single array has no name."""
    return dict(observation) if isinstance(observation, Mapping) else {"": observation}


def columns_of(step: Step) -> dict[str, Array]:
    """Names everything of a step but the observation."""
    plain = {
        name: np.asarray(x) for name, x in step._asdict().items() if name not in ("observation", "extras")
    }
    return plain | {f"extras.{name}": np.asarray(x) for name, x in step.extras.items()}


def step_of(observations: dict[str, Array], columns: dict[str, Array], spec: ObservationSpec) -> Step:
    """Puts a step together again from what `named_observation` and `columns_of` gave."""
    extras = {name.removeprefix("extras."): x for name, x in columns.items() if name.startswith("extras.")}
    plain = {name: x for name, x in columns.items() if not name.startswith("extras.")}
    observation = observations if isinstance(spec, Mapping) else observations[""]
    return Step(observation=observation, extras=extras, **plain)
