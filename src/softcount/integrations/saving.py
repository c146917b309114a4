"""A drop-in bonus in a file, or pickled: built from its arguments, continued from its state."""

from __future__ import annotations

import os
from typing import Any, Self

from softcount import store
from softcount.types import State


class Saved:
    """What saves a bonus that has `state_dict` and `load_state_dict`."""

    recipe: Any
    num_envs: int
    inputs: Any
    _arguments: dict[str, Any]

    def state_dict(self) -> State:
        raise NotImplementedError

    def load_state_dict(self, state: State) -> None:
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self._arguments, self.state_dict())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the whole state to one file, atomically."""
        store.save(path, {"for": self._header(), "state": self.state_dict()}, kind="intrinsic-reward")

    def load(self, path: str | os.PathLike[str]) -> Self:
        """Reads a state back into an object built with the same arguments; returns it."""
        content = store.load(path, kind="intrinsic-reward")
        for key, value in self._header().items():
            if content["for"].get(key) != value:
                raise store.StoreError(
                    f"{path} was saved with {key} {content['for'].get(key)}; this one has {value}"
                )
        self.load_state_dict(content["state"])
        return self

    def _header(self) -> dict[str, str]:
        return {
            "name": self.recipe.name,
            "num_envs": str(self.num_envs),
            "observations": str(self.inputs.observation_spec),
            "actions": str(self.inputs.action_spec),
        }


def _rebuild(kind: type[Saved], arguments: dict[str, Any], state: State) -> Saved:
    """Unpickles: builds the same object, and continues where it was."""
    bonus: Saved = kind(**arguments)
    bonus.load_state_dict(state)
    return bonus
