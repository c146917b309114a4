"""An Eight Rooms task as a Gymnasium environment: one copy of `vector.EightRooms`."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from softcount.envs.eight_rooms.vector import EightRooms, EightRoomsConfig
from softcount.envs.nine_actions import ACTIONS, IMAGE
from softcount.types import Array, State, TimeStep


class EightRoomsEnv(gymnasium.Env[Any, Any]):
    """One world; `info` has the place, the score so far and whether the level is lost, none of which is seen.

    >>> env = EightRoomsEnv(EightRoomsConfig(task="baseball", variant="tiny"))
    >>> observation, info = env.reset(seed=0)
    >>> observation.shape, info
    ((72, 96, 3), {'place': 0, 'score': 0.0, 'is_lost': False})
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 8}  # noqa: RUF012

    def __init__(self, config: EightRoomsConfig | None = None, render_mode: str | None = None) -> None:
        self.core = EightRooms(config)
        cfg = self.core.config
        image = gymnasium.spaces.Box(0, 255, (cfg.height, cfg.width, 3), np.uint8)
        unit = gymnasium.spaces.Box(0, 1, (), np.float32)
        self.observation_space: gymnasium.Space[Any] = image
        if cfg.observation == "all":
            senses = {"HAND_FORCE": unit, "HAND_IS_HOLDING": unit, "HAND_DISTANCE": unit}
            acceleration = gymnasium.spaces.Box(-1000, 1000, (3,), np.float32)
            spaces: dict[str, gymnasium.Space[Any]] = {IMAGE: image, "ACCELERATION": acceleration, **senses}
            self.observation_space = gymnasium.spaces.Dict(spaces)
        if cfg.actions == "discrete":
            self.action_space: gymnasium.Space[Any] = gymnasium.spaces.Discrete(len(cfg.table))
        else:
            low, high = (np.array(bound, np.float32) for bound in zip(*ACTIONS.values(), strict=True))
            self.action_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self.render_mode = render_mode
        self.num_places, self.map_shape = self.core.num_places, self.core.map_shape
        self._image: Array | None = None
        self._is_seeded = False

    def cell_of(self, place: int) -> tuple[int, int]:
        """Returns where on the map a place lies."""
        return self.core.cell_of(place)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; a seed starts the sequence of levels anew."""
        super().reset(seed=seed)
        if seed is None and not self._is_seeded:
            seed = int(self.np_random.integers(2**31))
        self._is_seeded = True
        return self._see(self.core.reset(seed))

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Acts for one agent step."""
        if self._image is None:
            raise RuntimeError("step was called before reset")
        if self.core.is_over[0]:
            raise RuntimeError("the episode is over; call reset before the next step")
        step = self.core.step(np.asarray(action)[None])
        is_terminal, is_last = bool(step.is_terminal[0]), bool(step.is_last[0])
        observation, info = self._see(step)
        return observation, float(step.reward[0]), is_terminal, is_last and not is_terminal, info

    def render(self) -> Array | None:  # type: ignore[override]
        """Returns the last image."""
        return self._image if self.render_mode else None

    def get_state(self) -> State:
        """Returns all that the future depends on."""
        return self.core.get_state()

    def set_state(self, state: State) -> None:
        """Continues exactly where `get_state` was called."""
        self.core.set_state(state)
        self._is_seeded = True
        cfg = self.core.config
        self._image = np.zeros((cfg.height, cfg.width, 3), np.uint8)

    def _see(self, step: TimeStep) -> tuple[Any, dict[str, Any]]:
        seen = step.observation
        if self.core.config.observation == "all":
            seen = {name: value[0] for name, value in seen.items()}
            self._image = seen[IMAGE]
        else:
            seen = self._image = seen[0]
        assert step.place is not None
        score = float(self.core.batch.states["score"][0])
        return seen, {"place": int(step.place[0]), "score": score, "is_lost": bool(self.core.is_lost[0])}
