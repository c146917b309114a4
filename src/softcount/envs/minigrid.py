"""MiniGrid's exploration tasks: MultiRoom, KeyCorridor, ObstructedMaze and the rest.

Observed is MiniGrid's own 7 × 7 × 3 egocentric symbol grid (`view="grid"`), the whole
grid as symbols (`"full"`), or the egocentric view as pixels (`"rgb"`). The mission text is
left out: in these tasks it says nothing that the image does not show. A place is the cell
of the grid; mazes are new in every episode. MiniGrid's `MultiRoom-N4-S5-v0` has six rooms,
whatever its name says; `-v1` has four.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Any, Literal

import gymnasium

from softcount.envs.replayed import Replayed
from softcount.hints import install


@dataclass(frozen=True, kw_only=True)
class MiniGridConfig:
    """Which task, and how it is seen."""

    task: str = "MultiRoom-N4-S5-v1"
    """MiniGrid's id without the leading `MiniGrid-`."""
    view: Literal["grid", "full", "rgb"] = "grid"
    """Egocentric symbols, the whole grid as symbols, or egocentric pixels."""
    max_steps: int | None = None
    """Steps after which an episode is cut; None leaves it to the task."""

    def __post_init__(self) -> None:
        if self.view not in _VIEWS:
            raise ValueError(f"view is {self.view!r}; expected one of {', '.join(_VIEWS)}")


class _GridPlaces(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Reports the agent's cell in `info["place"]`."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        inner: Any = self.unwrapped
        self.num_places: int | None = None
        self.map_shape: tuple[int, int] = (inner.height, inner.width)

    def cell_of(self, place: int) -> tuple[int, int]:
        """Returns row and column of a place."""
        return divmod(place, self.map_shape[1])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, {**info, "place": self._place()}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r} is illegal; expected 0 to {self.action_space.n - 1}")  # type: ignore[attr-defined]
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward), bool(terminated), bool(truncated), {**info, "place": self._place()}

    def _place(self) -> int:
        inner: Any = self.unwrapped
        x, y = inner.agent_pos
        return int(y) * self.map_shape[1] + int(x)


def make_minigrid(config: MiniGridConfig | None = None, render_mode: str | None = None) -> Replayed:
    """Builds one task, with places and exact state.

    >>> env = make_minigrid(MiniGridConfig(task="MultiRoom-N2-S4-v0"))
    >>> observation, info = env.reset(seed=0)
    >>> observation.shape, divmod(info["place"], env.unwrapped.width) == tuple(env.unwrapped.agent_pos)[::-1]
    ((7, 7, 3), True)
    """
    config = config or MiniGridConfig()
    try:
        from minigrid import wrappers
    except ImportError as error:
        raise ImportError(f"MiniGrid needs minigrid: {install('minigrid')}") from error

    known = tasks()
    if config.task not in known:
        near = difflib.get_close_matches(config.task, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"no MiniGrid task is called {config.task!r}{hint}")
    limit = {} if config.max_steps is None else {"max_steps": config.max_steps}
    name = f"MiniGrid-{config.task}"
    # The task has its own time limit; Gymnasium's checks around it would only cost time.
    env = gymnasium.make(name, render_mode=render_mode, disable_env_checker=True, **limit).unwrapped
    env.spec = None  # it would describe the task without what is wrapped around it here
    for wrapper in _VIEWS[config.view]:
        env = getattr(wrappers, wrapper)(env)
    return Replayed(_GridPlaces(env))


def tasks() -> list[str]:
    """Lists every task that the installed minigrid brings."""
    import minigrid  # noqa: F401  # registers its tasks

    prefix = "MiniGrid-"
    return sorted(name.removeprefix(prefix) for name in gymnasium.registry if name.startswith(prefix))


_VIEWS = {
    "grid": ("ImgObsWrapper",),
    "full": ("FullyObsWrapper", "ImgObsWrapper"),
    "rgb": ("RGBImgPartialObsWrapper", "ImgObsWrapper"),
}
