"""One name, one vector environment: `make("disco-maze", num_envs=64, seed=0, size=11)`.

Options are the fields of the family's config (`DiscoMazeConfig`, ...); an unknown name
or option gives an error that suggests the nearest known one.
"""

from __future__ import annotations

import difflib
from dataclasses import fields
from typing import Any

from softcount.envs.disco_maze import DiscoMaze, DiscoMazeConfig
from softcount.types import VectorEnv


def make(name: str, num_envs: int = 1, seed: int = 0, **options: Any) -> VectorEnv:
    """Builds `num_envs` copies of an environment behind the project's vector interface.

    >>> make("disco-maze", num_envs=3, size=7).reset().observation.shape
    (3, 7, 7, 3)
    """
    if name != "disco-maze":
        raise ValueError(f"no environment is called {name!r}")
    return DiscoMaze(_configure(DiscoMazeConfig, options), num_envs=num_envs, seed=seed)


def _configure(config: Any, options: dict[str, Any]) -> Any:
    """Makes a config from options, and says which option was meant where one is unknown."""
    known = [field.name for field in fields(config)]
    for option in options:
        if option not in known:
            near = difflib.get_close_matches(option, known, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"{config.__name__} has no option {option!r}{hint} (options: {', '.join(known)})"
            )
    return config(**options)
