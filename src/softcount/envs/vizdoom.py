"""ViZDoom's MyWayHome: find the vest in a building of nine rooms, seen from within.

Three degrees of sparsity, as in the curiosity literature: `dense` starts anywhere,
`sparse` in the room at the end of the left wing, `very-sparse` in the dead end of the
lower one. ViZDoom brings only the first; the others put the player there by a console
command, so no map is edited (Decision 28). The only reward is 1 for the vest, less the
scenario's 0.0001 per tic; an episode is cut after 2,100 tics.

A place is a cell of 32 × 32 map units. Episodes are deterministic given their seed, so
state is exact by replay. The engine's files go to a folder of its own, removed on close.
"""

from __future__ import annotations

import os
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from softcount.envs.replayed import Replayed
from softcount.hints import install
from softcount.types import Array

STARTS: dict[str, tuple[int, int] | None] = {"dense": None, "sparse": (240, -176), "very-sparse": (544, -672)}
"""Where the player is put, in map units; the vest is at (1040, -352)."""
BUTTONS = ("TURN_LEFT", "TURN_RIGHT", "MOVE_FORWARD", "MOVE_LEFT", "MOVE_RIGHT")
LEFT, TOP, CELL_UNITS = 160, 128, 32
_folder_lock = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class MyWayHomeConfig:
    """Where the player starts and how it sees."""

    start: str = "dense"
    """`dense`, `sparse` or `very-sparse`."""
    width: int = 160
    """Pixels across; a 4:3 size that ViZDoom offers: 160, 320 or 640."""
    action_repeat: int = 4
    """Tics for which an action is held."""
    max_tics: int = 2100
    """Tics after which an episode is cut."""
    limit_is_terminal: bool = False
    """Whether that cut counts as an end for good."""

    def __post_init__(self) -> None:
        if self.start not in STARTS:
            raise ValueError(f"start is {self.start!r}; expected one of {', '.join(STARTS)}")
        if self.width not in (160, 320, 640):
            raise ValueError(f"width is {self.width}; expected 160, 320 or 640")
        if self.action_repeat < 1 or self.max_tics < 1:
            raise ValueError(
                f"action_repeat {self.action_repeat} and max_tics {self.max_tics} must be at least 1"
            )


class MyWayHome(gymnasium.Env[Array, Any]):
    """One game; actions are: do nothing, or press one of `BUTTONS`.

    >>> env = MyWayHome(MyWayHomeConfig(start="very-sparse"))
    >>> observation, info = env.reset(seed=0)
    >>> observation.shape, env.cell_of(info["place"])
    ((120, 160, 3), (25, 12))
    >>> env.close()
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 35}  # noqa: RUF012

    def __init__(self, config: MyWayHomeConfig | None = None, render_mode: str | None = None) -> None:
        self.config = config or MyWayHomeConfig()
        self.render_mode = render_mode
        self.game, self._folder = _start_engine(self.config)
        height, width = self.config.width * 3 // 4, self.config.width
        self.observation_space = gymnasium.spaces.Box(0, 255, (height, width, 3), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(1 + len(BUTTONS))
        self._presses = np.eye(1 + len(BUTTONS), dtype=int)[:, 1:].tolist()
        self.num_places: int | None = None
        self.map_shape = (26, 30)
        self._image = np.zeros((height, width, 3), np.uint8)
        self._place = -1
        self._tics = 0
        self._is_over = True

    def cell_of(self, place: int) -> tuple[int, int]:
        """Returns row (from the top of the map) and column of a place."""
        return divmod(place, self.map_shape[1])

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
        """Starts an episode with a seed drawn from the generator."""
        super().reset(seed=seed)
        self.game.set_seed(int(self.np_random.integers(2**31)))
        self.game.new_episode()
        start = STARTS[self.config.start]
        if start is not None:
            self.game.advance_action(4)  # the console ignores a warp before the first tics
            self.game.send_game_command(f"warp {start[0]} {start[1]}")
            self.game.advance_action(1)
        self._tics = 0
        self._is_over = False
        self._look()
        return self._image, {"place": self._place}

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Holds a button for `action_repeat` tics.

        The engine shows nothing once the vest is taken: the last observation is then the one before.
        """
        if self._is_over:
            raise RuntimeError("no episode is running; call reset before step")
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r} is illegal; expected 0 to {len(BUTTONS)}")
        reward = float(self.game.make_action(self._presses[int(action)], self.config.action_repeat))
        self._tics += self.config.action_repeat
        is_found = self.game.is_episode_finished()
        if not is_found:
            self._look()
        is_cut = self._tics >= self.config.max_tics and not is_found
        is_terminal = is_found or (is_cut and self.config.limit_is_terminal)
        self._is_over = is_found or is_cut
        return self._image, reward, is_terminal, is_cut and not is_terminal, {"place": self._place}

    def render(self) -> Array | None:  # type: ignore[override]
        """Returns the last image."""
        return self._image if self.render_mode else None

    def close(self) -> None:
        """Ends the engine and removes its files."""
        self.game.close()
        self._folder.cleanup()

    def _look(self) -> None:
        state = self.game.get_state()
        self._image = np.array(state.screen_buffer)
        x, y = state.game_variables[:2]
        row, column = int((TOP - y) // CELL_UNITS), int((x - LEFT) // CELL_UNITS)
        self._place = row * self.map_shape[1] + column


def make_my_way_home(config: MyWayHomeConfig | None = None, render_mode: str | None = None) -> Replayed:
    """Builds one game with exact state."""
    return Replayed(MyWayHome(config, render_mode))


def _start_engine(config: MyWayHomeConfig) -> tuple[Any, tempfile.TemporaryDirectory[str]]:
    """Starts ViZDoom in a folder of its own; it writes `_vizdoom` where it is started."""
    try:
        import vizdoom
    except ImportError as error:
        raise ImportError(f"MyWayHome needs vizdoom: {install('vizdoom')}") from error
    folder = tempfile.TemporaryDirectory(prefix="softcount-vizdoom-", ignore_cleanup_errors=True)
    game = vizdoom.DoomGame()
    game.load_config(str(Path(vizdoom.scenarios_path) / "my_way_home.cfg"))
    game.set_window_visible(False)
    game.set_screen_format(vizdoom.ScreenFormat.RGB24)
    game.set_screen_resolution(
        getattr(vizdoom.ScreenResolution, f"RES_{config.width}X{config.width * 3 // 4}")
    )
    game.set_available_buttons([getattr(vizdoom.Button, name) for name in BUTTONS])
    variables = [vizdoom.GameVariable.POSITION_X, vizdoom.GameVariable.POSITION_Y]
    game.set_available_game_variables(variables)
    game.set_episode_timeout(0)  # counted here, so that the last observation of a cut episode is true
    game.set_doom_config_path(str(Path(folder.name) / "vizdoom.ini"))
    game.add_game_args("+sv_cheats 1")
    with _folder_lock:
        here = Path.cwd()
        os.chdir(folder.name)
        try:
            game.init()
        finally:
            os.chdir(here)
    return game, folder
