"""Atari 2600 with the paper's protocol (App. "Experimental setup"), on ale-py alone.

    observation    grey 210 × 160, maximum over the last two frames
    action         one of all 18, repeated for 4 frames, never sticky
    episode        1-30 no-op frames, then until game over (not loss of a life)
                   or 27,000 actions = 108,000 frames
    reward         the change of the score, not clipped

Every line is an option, so that the modern protocol (sticky actions, 84 × 84, …) is a
matter of arguments. So is what small machines need: a few actions, a stack of small frames,
lives as episodes, deaths skipped. State is exact: the emulator's, and all counters around it.
"""

from __future__ import annotations

import difflib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from softcount.envs.atari_places import PLACES, Places
from softcount.hints import install
from softcount.types import Array, State, load_rng, rng_state
from softcount.validation import at_least, between, check_fields

LONGEST_DEATH = 1000
"""Frames after which a death that does not end is no longer waited for."""


@dataclass(frozen=True, kw_only=True)
class AtariConfig:
    """The protocol; the defaults are the paper's."""

    game: str = "montezuma_revenge"
    """Name of the ROM, as ale-py spells it."""
    action_repeat: int = 4
    """Frames for which an action is held."""
    max_pool: bool = True
    """Observe the pixel-wise maximum over the last two frames (sprites flicker)."""
    max_noops: int = 30
    """An episode starts with 1 to this many no-op frames; 0 for none."""
    sticky_probability: float = 0.0
    """Chance per frame that the console repeats the previous action; 0.25 is the modern protocol."""
    full_actions: bool = True
    """All 18 actions instead of the game's minimal set."""
    actions: tuple[str, ...] = ()
    """Only these, by their names at the console, such as ("NOOP", "LEFT", "RIGHTFIRE"); empty for all."""
    max_steps: int = 27_000
    """Actions after which an episode is cut."""
    limit_is_terminal: bool = True
    """Whether that cut counts as an end for good (Decision 25)."""
    life_loss_is_terminal: bool = False
    """Whether losing a life ends the episode (the game itself goes on from there)."""
    skip_deaths: bool = False
    """Whether the frames between a death and the next life pass unseen; for games whose RAM tells."""
    clip_rewards: bool = False
    """Whether rewards are reduced to their sign."""
    colour: bool = False
    """RGB instead of grey."""
    size: tuple[int, int] | None = None
    """Height and width to resize to (by area), e.g. (84, 84); None keeps 210 × 160."""
    stack: int = 1
    """Observations shown at once, side by side as channels, the newest last."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            action_repeat=at_least(1),
            max_noops=at_least(0),
            sticky_probability=between(0, 1, "[)"),
            max_steps=at_least(1),
            stack=at_least(1),
        )
        if self.size is not None and not _is_size(self.size):
            raise ValueError(f"size is {self.size!r}; expected a height and a width, such as 84,84")
        if isinstance(self.actions, str) or not all(isinstance(name, str) for name in self.actions):
            raise ValueError(f"actions is {self.actions!r}; expected names, such as NOOP,LEFT,RIGHT")


def _is_size(size: object) -> bool:
    return isinstance(size, tuple) and len(size) == 2 and all(isinstance(x, int) and x >= 1 for x in size)


class Atari(gymnasium.Env[Array, Any]):
    """One game; `info["place"]` is where the agent is, for games whose RAM is understood.

    `num_frames` are all that the emulator ever played, no-ops and skipped deaths included; `points` says
    how often the score changed by how much, before any clipping.

    >>> env = Atari(AtariConfig(game="montezuma_revenge"))
    >>> observation, info = env.reset(seed=0)
    >>> observation.shape, env.action_space
    ((210, 160, 1), Discrete(18))
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012

    def __init__(self, config: AtariConfig | None = None, render_mode: str | None = None) -> None:
        self.config = config or AtariConfig()
        self.render_mode = render_mode
        self.ale = _new_console(self.config)
        cfg = self.config
        self._noop = self.ale.getLegalActionSet()[0]
        self.actions = _chosen_actions(self.ale, cfg)
        self.action_space = gymnasium.spaces.Discrete(len(self.actions))
        screen = (*self.ale.getScreenDims(), 3 if cfg.colour else 1)
        height, width = cfg.size or screen[:2]
        shape = (height, width, cfg.stack * screen[2])
        self.observation_space = gymnasium.spaces.Box(0, 255, shape, np.uint8)
        self._frames = np.zeros((2, *screen), np.uint8)  # the last two that were looked at, newest first
        self._stack = np.zeros(shape, np.uint8)  # what was observed last
        self.places = _places_of(cfg)
        if self.places:
            self.num_places = self.places.num_places
            self.map_shape = self.places.map_shape
            self.cell_of = self.places.cell_of
        self.num_frames = 0
        self.points: Counter[int] = Counter()
        self._elapsed = 0
        self._lives = 0
        self._is_over = True

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Array, dict[str, Any]]:
        """Starts a game (or goes on in it after the loss of a life), with random no-ops."""
        super().reset(seed=seed)
        if seed is not None and self.config.sticky_probability > 0:
            self.ale.setInt(
                "random_seed", seed % 2**31
            )  # read on loading; all else in the console is deterministic
            self.ale.loadROM(_rom_path(self.config.game))
        goes_on = self.config.life_loss_is_terminal and self._lives > 0 and seed is None
        if self.ale.game_over() or not goes_on:
            self.ale.reset_game()
        if self.config.skip_deaths:
            self._skip_death()
        self._play_noops()
        self._elapsed = 0
        self._lives = self.ale.lives()
        self._is_over = False
        return self._observe(is_first=True), self._info()

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Holds an action for `action_repeat` frames."""
        if self._is_over:
            raise RuntimeError("no episode is running; call reset before step")
        if not self.action_space.contains(action):
            raise ValueError(f"action {action!r} is illegal; expected 0 to {len(self.actions) - 1}")
        cfg = self.config
        reward = 0.0
        for i in range(cfg.action_repeat):
            reward += self._act(self.actions[action])
            is_over = self.ale.game_over()
            if i >= cfg.action_repeat - 2 or is_over:
                self._look()
            if is_over:
                break
        if 0 < i < cfg.action_repeat - 1:
            self._frames[1] = self._frames[0]  # Decision 26: the frame before the end was not looked at
        self._elapsed += 1
        lives = self.ale.lives()
        if cfg.skip_deaths and not (cfg.life_loss_is_terminal and lives < self._lives):
            reward += self._skip_death()
            lives, is_over = self.ale.lives(), self.ale.game_over()
        is_terminal = is_over or (cfg.life_loss_is_terminal and lives < self._lives)
        is_cut = self._elapsed >= cfg.max_steps and not is_terminal
        self._lives = lives
        self._is_over = is_terminal or is_cut
        if cfg.clip_rewards:
            reward = float(np.sign(reward))
        is_terminal = is_terminal or (is_cut and cfg.limit_is_terminal)
        return self._observe(), reward, is_terminal, is_cut and not is_terminal, self._info()

    def render(self) -> Array | None:  # type: ignore[override]
        """Returns the screen in colour."""
        return np.asarray(self.ale.getScreenRGB()) if self.render_mode else None

    def get_state(self) -> State:
        """Returns the emulator's bytes, its generator and every counter around it."""
        console = self.ale.cloneState(include_rng=True).serialize()
        return {
            "game": self.config.game,
            "console": np.frombuffer(console, np.uint8).copy(),
            "frames": self._frames.copy(),
            "stack": self._stack.copy(),
            "num_frames": self.num_frames,
            "points": [list(item) for item in self.points.items()],
            "elapsed": self._elapsed,
            "lives": self._lives,
            "is_over": self._is_over,
            "rng": rng_state(self.np_random),
        }

    def set_state(self, state: State) -> None:
        """Continues exactly where `get_state` was called."""
        import ale_py

        if state["game"] != self.config.game:
            raise ValueError(f"the state is of {state['game']!r}; expected {self.config.game!r}")
        self.ale.reset_game()
        self.ale.act(self._noop)  # Decision 27: a console that never ran restores Q*bert wrongly
        self.ale.restoreState(ale_py.ALEState(np.asarray(state["console"], np.uint8).tobytes()))
        self._frames = np.array(state["frames"])
        self._stack = np.array(state["stack"])
        self.num_frames = int(state["num_frames"])
        self.points = Counter({int(points): int(num) for points, num in state["points"]})
        self._elapsed = int(state["elapsed"])
        self._lives = int(state["lives"])
        self._is_over = bool(state["is_over"])
        load_rng(self.np_random, state["rng"])

    def _play_noops(self) -> None:
        """Lets 1 to `max_noops` frames pass; a game that ends meanwhile starts again."""
        num_noops = int(self.np_random.integers(1, self.config.max_noops + 1)) if self.config.max_noops else 0
        self._look()
        self._frames[1] = self._frames[0]
        for _ in range(num_noops):
            self._act(self._noop)
            if self.ale.game_over():
                self.ale.reset_game()
            self._look()

    def _skip_death(self) -> float:
        """Lets frames pass until the next life or the end of the game; returns what they paid."""
        assert self.places is not None
        reward, before = 0.0, self.num_frames
        while not self.ale.game_over() and self.places.is_dying(self.ale.getRAM()):
            reward += self._act(self._noop)
            if self.num_frames == before + LONGEST_DEATH:
                break
        if self.num_frames > before:
            self._look()
            self._frames[1] = self._frames[0]
        return reward

    def _act(self, action: Any) -> float:
        """Plays one frame."""
        points = self.ale.act(action)
        self.num_frames += 1
        if points:
            self.points[int(points)] += 1
        return float(points)

    def _look(self) -> None:
        """Shifts the screen into the two frames kept."""
        self._frames[1] = self._frames[0]
        if self.config.colour:
            self.ale.getScreenRGB(self._frames[0])
        else:
            self.ale.getScreenGrayscale(self._frames[0, :, :, 0])

    def _observe(self, *, is_first: bool = False) -> Array:
        """Returns the newest picture and those before it; an episode starts with its first one throughout."""
        image, num = self._picture(), self.config.stack
        if is_first:
            self._stack = np.tile(image, num)
        else:
            self._stack = np.concatenate((self._stack[..., image.shape[-1] :], image), -1)
        return self._stack.copy()

    def _picture(self) -> Array:
        image: Array = self._frames.max(axis=0) if self.config.max_pool else self._frames[0]
        if self.config.size is None:
            return image
        import cv2

        height, width = self.config.size
        small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)
        return np.asarray(small).reshape(height, width, -1)

    def _info(self) -> dict[str, Any]:
        info = {"lives": self._lives, "frames": self.ale.getEpisodeFrameNumber()}
        if self.places:
            ram = self.ale.getRAM()
            info["place"] = -1 if self.places.is_dying(ram) else self.places.place(ram)
        return info


@cache
def games() -> list[str]:
    """Lists every game that the installed ale-py brings and can play (a few have no reward defined)."""
    from ale_py import ALEInterface, roms

    paths = {game: Path(roms.get_rom_path(game) or "") for game in roms.get_all_rom_ids()}
    return sorted(game for game, path in paths.items() if ALEInterface.isSupportedROM(path))


def _new_console(config: AtariConfig) -> Any:
    """Opens an emulator with the game in it."""
    try:
        import ale_py
    except ImportError as error:
        raise ImportError(f"Atari games need ale-py: {install('atari')}") from error
    ale = ale_py.ALEInterface()
    ale.setLoggerMode(ale_py.LoggerMode.Error)
    ale.setFloat("repeat_action_probability", config.sticky_probability)
    ale.setInt("max_num_frames_per_episode", 0)  # the limit is counted here, in actions
    ale.loadROM(_rom_path(config.game))
    return ale


def _rom_path(game: str) -> Any:
    from ale_py import roms

    known = games()
    if game not in known:
        near = difflib.get_close_matches(game, known, 1)
        hint = f"; did you mean {near[0]!r}?" if near else f" ({len(known)} games are there)"
        raise ValueError(f"no Atari game is called {game!r}{hint}")
    return roms.get_rom_path(game)


def _chosen_actions(ale: Any, config: AtariConfig) -> list[Any]:
    """Returns the actions that are offered, in their order."""
    legal = {action.name: action for action in ale.getLegalActionSet()}
    for name in config.actions:
        if name not in legal:
            near = difflib.get_close_matches(name, legal, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f" (they are {', '.join(legal)})"
            raise ValueError(f"no action is called {name!r}{hint}")
    if config.actions:
        return [legal[name] for name in config.actions]
    return list(ale.getLegalActionSet() if config.full_actions else ale.getMinimalActionSet())


def _places_of(config: AtariConfig) -> Places | None:
    places: Places | None = PLACES[config.game]() if config.game in PLACES else None
    if config.skip_deaths and (places is None or not places.tells_deaths):
        known = [game for game in PLACES if PLACES[game]().tells_deaths]
        raise ValueError(
            f"skip_deaths is on, but how {config.game} shows a death is not known; "
            f"expected {' or '.join(known)}, or skip_deaths=false"
        )
    return places
