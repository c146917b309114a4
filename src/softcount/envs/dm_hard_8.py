"""DM-HARD-8 (paper §4.3): an adapter from its published interface to Gymnasium.

The eight tasks are a Unity program behind dm_env_rpc, published by its authors as a
Docker image. This file speaks that interface: nine continuous actions that are sticky
on the server (so all nine are sent at every step) and six observations, of which
`Score`, the sum of past rewards, is kept from the agent and given in `info` only.

It connects to a running server, or wraps any `dm_env.Environment` with these specs. The
original binaries have NOT been run with it: it is tested against a server on the
loopback that speaks the real protocol with the published specs.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import gymnasium
import numpy as np

from softcount.envs.nine_actions import ACTIONS, IMAGE, SCORE, SENSES, action_table
from softcount.hints import install
from softcount.types import Array

LEVELS = {
    "baseball": "use_object_knock_down",
    "drawbridge": "drawbridge_max3fork_safe_randomwall",
    "navigate_cubes": "ball_room_navigation_cubes",
    "push_blocks": "slot_colored_block",
    "remember_sensor": "sensorhidden_color_novary_greywall",
    "throw_across": "throw_across",
    "wall_sensor": "reach_wall",
    "wall_sensor_stack": "reach_wall_require_stack",
}
"""The paper's task names and the names by which the server knows the levels."""


@dataclass(frozen=True, kw_only=True)
class DmHard8Config:
    """Which task, where its server is, and how the agent acts and sees."""

    level: str = "baseball"
    """One of the paper's names (`LEVELS`), or a level name of the server."""
    host: str = "127.0.0.1"
    """Where the server runs."""
    port: int = 10000
    """Its port; with several copies, copy i uses the server at `port` + i."""
    seed: int = 0
    """Seed of the world until `reset` is given another."""
    width: int = 96
    """Pixels across."""
    height: int = 72
    """Pixels down; the levels are made for 4:3."""
    action_repeat: int = 1
    """How many times an action is sent before the agent sees again; rewards add up."""
    actions: Literal["discrete", "continuous"] = "discrete"
    """An index into `table`, or all nine values."""
    table: tuple[Mapping[str, float], ...] = field(default_factory=action_table)
    """The discrete actions; what an entry leaves out is 0."""
    signs: Mapping[str, float] = field(default_factory=dict)
    """Actions to turn round (-1): the published documents disagree on which way is positive."""
    observation: Literal["image", "all"] = "image"
    """The image alone, or a dict of it and the four senses."""
    timeout: float = 30.0
    """Seconds after which a server that does not answer is given up."""
    tls: bool | str = False
    """Encrypt the connection: True trusts the usual authorities, a file name the certificates in it."""

    def __post_init__(self) -> None:
        for entry in (*self.table, self.signs):
            for name in entry:
                if name not in ACTIONS:
                    raise ValueError(f"no action is called {name!r}{_nearest(name, ACTIONS)}")
        for name, sign in self.signs.items():
            if sign not in (-1, 1) or (sign == -1 and ACTIONS[name][0] != -ACTIONS[name][1]):
                raise ValueError(f"the sign of {name} is {sign}; expected 1, or -1 where the bounds allow it")
        for name in ("width", "height", "action_repeat", "timeout"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} is {getattr(self, name)}; expected more than 0")
        if self.actions not in ("discrete", "continuous") or self.observation not in ("image", "all"):
            raise ValueError(
                f"actions {self.actions!r} must be 'discrete' or 'continuous', "
                f"observation {self.observation!r} 'image' or 'all'"
            )


class DmHard8(gymnasium.Env[Any, Any]):
    """A DM-HARD-8 task in Gymnasium's terms.

    `world` is a `dm_env.Environment`, or a function that opens one for a seed; with the
    latter `reset(seed=…)` opens a new world. Without it, a server is connected to.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012

    def __init__(
        self,
        config: DmHard8Config | None = None,
        world: Any = None,
        render_mode: str | None = None,
    ) -> None:
        self.config = config or DmHard8Config()
        self.render_mode = render_mode
        opener: Any = partial(connect, self.config) if world is None else world
        self._open = opener if callable(opener) else None
        self.world: Any = opener(self.config.seed) if self._open else opener
        try:
            self._low, self._high = _check_actions(self.world.action_spec())
            spaces = _check_observations(self.world.observation_spec())
        except BaseException:
            self.world.close()
            raise
        self.observation_space = (
            spaces[IMAGE] if self.config.observation == "image" else gymnasium.spaces.Dict(spaces)
        )
        if self.config.actions == "discrete":
            self.action_space: gymnasium.Space[Any] = gymnasium.spaces.Discrete(len(self.config.table))
        else:
            self.action_space = gymnasium.spaces.Box(self._low, self._high, dtype=np.float32)
        self._signs = np.array([self.config.signs.get(name, 1.0) for name in ACTIONS])
        self._image: Array | None = None
        self._is_over = True

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        """Starts an episode; a seed opens a new world where that is possible."""
        super().reset(seed=seed)
        if seed is not None and self._open:
            self.world.close()
            self.world = self._open(seed)
        step = self.world.reset()
        self._is_over = False
        return self._observe(step), self._info(step)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Sends all nine actions, `action_repeat` times or until the episode ends."""
        if self._is_over:
            raise RuntimeError("no episode is running; call reset before step")
        sent = self.to_server(action)
        reward = 0.0
        for _ in range(self.config.action_repeat):
            step = self.world.step(sent)
            reward += float(step.reward or 0.0)
            if step.last():
                break
        self._is_over = bool(step.last())
        is_terminal = self._is_over and step.discount == 0
        return self._observe(step), reward, is_terminal, self._is_over and not is_terminal, self._info(step)

    def to_server(self, action: Any) -> dict[str, np.float64]:
        """Translates an action of the agent into the nine values that are sent."""
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r} is illegal; expected a member of {self.action_space}")
        if self.config.actions == "discrete":
            entry = self.config.table[int(action)]
            values = np.array([entry.get(name, 0.0) for name in ACTIONS])
        else:
            values = np.asarray(action, np.float64)
        values = np.clip(values * self._signs, self._low, self._high)
        return dict(zip(ACTIONS, values, strict=True))

    def render(self) -> Array | None:  # type: ignore[override]
        """Returns the last image."""
        return self._image if self.render_mode else None

    def close(self) -> None:
        """Leaves the world."""
        self.world.close()

    def _observe(self, step: Any) -> Any:
        self._image = np.asarray(step.observation[IMAGE], np.uint8)
        if self.config.observation == "image":
            return self._image
        senses = {name: np.asarray(step.observation[name], np.float32) for name in SENSES}
        return {IMAGE: self._image, **senses}

    def _info(self, step: Any) -> dict[str, Any]:
        return {"score": float(step.observation[SCORE])} if SCORE in step.observation else {}


def connect(config: DmHard8Config, seed: int) -> Any:
    """Opens a world on a running server, or raises `dm_rpc.ServerError` in bounded time."""
    try:
        from softcount.envs.dm_rpc import RpcWorld
    except ImportError as error:
        raise ImportError(f"DM-HARD-8 needs dm-env-rpc: {install('dm-hard-8')}") from error
    level = LEVELS.get(config.level, config.level)
    if level not in LEVELS.values():
        raise ValueError(f"no level is called {config.level!r}{_nearest(config.level, LEVELS)}")
    create = {"seed": np.int64(seed), "episodeId": np.int64(0), "levelName": level}
    join = {"width": np.int64(config.width), "height": np.int64(config.height)}
    return RpcWorld(f"{config.host}:{config.port}", create, join, timeout=config.timeout, tls=config.tls)


def _check_actions(spec: Any) -> tuple[Array, Array]:
    """Reads the bounds of the nine actions, or says what is wrong with the specs."""
    missing = [name for name in ACTIONS if not isinstance(spec, Mapping) or name not in spec]
    if missing:
        raise ValueError(f"the action specs lack {', '.join(missing)}")
    for name in ACTIONS:
        low, high = getattr(spec[name], "minimum", None), getattr(spec[name], "maximum", None)
        if tuple(spec[name].shape) != () or low is None or high is None or not float(low) < float(high):
            raise ValueError(f"the action {name} is {spec[name]}; expected a scalar with bounds")
    low = np.array([spec[name].minimum for name in ACTIONS], np.float32)
    high = np.array([spec[name].maximum for name in ACTIONS], np.float32)
    return low, high


def _check_observations(spec: Any) -> dict[str, gymnasium.Space[Any]]:
    """Makes spaces of the image and the senses, or says what is wrong with the specs."""
    missing = [name for name in (IMAGE, *SENSES) if not isinstance(spec, Mapping) or name not in spec]
    if missing:
        raise ValueError(f"the observation specs lack {', '.join(missing)}")
    image = spec[IMAGE]
    shape = tuple(int(side) for side in image.shape)
    if len(shape) != 3 or shape[2] != 3 or min(shape) < 1 or image.dtype != np.uint8:
        raise ValueError(f"the observation {IMAGE} is {image}; expected uint8 of height, width, 3")
    spaces: dict[str, gymnasium.Space[Any]] = {IMAGE: gymnasium.spaces.Box(0, 255, shape, np.uint8)}
    for name in SENSES:
        spaces[name] = gymnasium.spaces.Box(-np.inf, np.inf, tuple(spec[name].shape), np.float32)
    return spaces


def _nearest(name: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; expected one of {', '.join(known)}"
