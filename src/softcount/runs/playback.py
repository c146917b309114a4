"""Looking at a run without changing it: play its policy, open its memory, draw."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from softcount import checkpoint, store
from softcount.config import RunConfig
from softcount.envs.disco_maze import PALETTE
from softcount.envs.worlds import World
from softcount.hints import install
from softcount.launch.build import build_evaluator, seeds_of
from softcount.launch.local import LocalLoop
from softcount.measure.coverage import Coverage, draw_heat_map
from softcount.memory import inspect as memory_inspect
from softcount.roles.evaluator import Evaluation
from softcount.runs.folder import CHECKPOINTS
from softcount.runs.run import read_config, restore
from softcount.types import Array, TimeStep, VectorEnv


@dataclass(frozen=True)
class Played:
    """Episodes played for looking at, and row by row what the first of them met."""

    behaviour: str  # how was played, such as "mixture 3"
    evaluation: Evaluation
    rewards: list[float]  # r^e of arriving at each frame
    intrinsics: list[float]  # r^i likewise, as the run would be paid
    places: list[int]  # -1 where the world has none


def open_run(folder: Path) -> LocalLoop:
    """Restores the last checkpoint of a run."""
    return restore(read_config(folder), checkpoint.read(folder / CHECKPOINTS))


def play(config: RunConfig, loop: LocalLoop, episodes: int, *, keep_frames: bool = False) -> Played:
    """Plays episodes as an evaluator does; the loop stays as it is, the same loop plays the same.

    Every task is played equally often, so there may be a few more.
    """
    roles = loop.roles
    num_tasks = len(roles.actor.task_names())
    episodes = num_tasks * -(-episodes // num_tasks)
    evaluator = build_evaluator(replace(config, evaluation_episodes=episodes), roles.inference)
    watched = _Watched(evaluator.env)
    evaluator.env = watched
    behaviour = roles.actor.for_evaluation(episodes)
    try:
        seed = seeds_of(config.seed).evaluation
        evaluation = evaluator(behaviour, roles.memory, seed=seed, keep_frames=keep_frames)
    finally:
        watched.close()
    intrinsics = evaluation.intrinsics
    if watched.is_terminal and config.terminal_observations != "paid":
        intrinsics[-1] = 0.0  # as in training
    return Played(behaviour.describe(), evaluation, watched.rewards, intrinsics, watched.places)


class _Watched:
    """An environment that notes what its first copy met, up to the end of its first episode."""

    def __init__(self, env: VectorEnv) -> None:
        self.env, self.num_envs, self.num_places = env, env.num_envs, env.num_places
        self.observation_spec, self.action_spec = env.observation_spec, env.action_spec
        self.task_ids, self.task_names = env.task_ids, env.task_names
        self.get_state, self.set_state, self.close = env.get_state, env.set_state, env.close
        self.rewards: list[float] = []
        self.places: list[int] = []
        self.is_terminal = False
        self._is_over = False

    def reset(self, seed: int | None = None) -> TimeStep:
        return self._note(self.env.reset(seed))

    def step(self, actions: Array) -> TimeStep:
        return self._note(self.env.step(actions))

    def _note(self, timestep: TimeStep) -> TimeStep:
        if not self._is_over:
            self.rewards.append(float(timestep.reward[0]))
            self.places.append(-1 if timestep.place is None else int(timestep.place[0]))
            self._is_over = bool(timestep.is_last[0])
            self.is_terminal = bool(timestep.is_terminal[0])
        return timestep


def evaluate_run(folder: Path, episodes: int, gif: Path | None) -> str:
    """Plays episodes with what the run has learned; returns what to print."""
    config, loop = read_config(folder), open_run(folder)
    played = play(config, loop, episodes, keep_frames=gif is not None)
    evaluation, how = played.evaluation, played.behaviour
    num = len(evaluation.episodes)
    lines = [f"{config.agent} on {config.env} after {loop.num_steps:,} steps, {how}, {num} episodes"]
    names = loop.roles.actor.task_names()
    for task, name in enumerate(names):
        lines += [f"  {name}"] if len(names) > 1 else []
        own = evaluation.of_task(task)
        lines += [
            f"  return   {own.mean_return:.3f} (success in {own.success_rate:.0%})",
            f"  length   {np.mean([e.length for e in own.episodes]):.1f}",
        ]
    if gif is not None:
        write_gif(gif, evaluation.frames)
        lines.append(f"  animation {gif}")
    return "\n".join(lines)


def inspect_run(folder: Path, pictures: Path) -> str:
    """Describes the memory and what was visited, and draws both; returns what to print."""
    loop = open_run(folder)
    lines = [f"{folder.name}: {loop.num_steps:,} steps, {loop.num_updates:,} updates"]
    if loop.coverage is not None:
        lines.append(f"  places visited  {_visited(loop.coverage)}")
        worlds = loop.roles.actor.worlds(np.flatnonzero(loop.coverage.visits))
        for world in worlds:
            lines += _inspect_world(world, loop.coverage, folder, pictures, world.task * (len(worlds) > 1))
    for task, state in loop.roles.memory.memories().items():
        memory = memory_inspect.memory_of(state)
        lines += [f"  {task}"] if task else []
        lines += [f"  {name:15s} {value:.4g}" for name, value in memory_inspect.summary(memory).items()]
        drawn, path = io.BytesIO(), pictures / _picture_file("memory", task)
        memory_inspect.draw_memory(memory).savefig(drawn, dpi=100)
        store.write_atomically(path, drawn.getvalue())
        lines.append(f"  picture         {path}")
    return "\n".join(lines)


def _inspect_world(world: World, coverage: Coverage, folder: Path, pictures: Path, task: str) -> list[str]:
    """Draws what was visited of one world; `task` is its name where there are several."""
    part, lines = coverage.part(world.num_places, world.numbers, world.places), []
    if task:
        lines += [f"  {task}", f"  places visited  {_visited(part)}"]
    if world.chart is not None:
        drawn, path = io.BytesIO(), pictures / _picture_file("coverage", task)
        draw_heat_map(drawn, part, world.chart, title=f"{folder.name}: ")
        store.write_atomically(path, drawn.getvalue())
        lines.append(f"  picture         {path}")
    return lines


def _visited(coverage: Coverage) -> str:
    known = f" of {coverage.num_places}" if coverage.num_places else ""
    return f"{coverage.num_visited}{known}"


def _picture_file(what: str, task: str) -> str:
    return f"{what}{'-' * bool(task)}{task.replace('/', '-')}.png"


def write_gif(path: Path, frames: list[Any], *, side: int = 336) -> None:
    """Writes what an environment showed as an animation, enlarged without blurring."""
    image_class = require_pillow()
    images = [as_image(frame) for frame in frames]
    height, width = images[0].shape[:2]
    scale = max(1, side // max(height, width))
    nearest = image_class.Resampling.NEAREST
    drawn = [image_class.fromarray(i).resize((width * scale, height * scale), nearest) for i in images]
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn[0].save(path, save_all=True, append_images=drawn[1:], duration=80, loop=0)


def require_pillow() -> Any:
    """Returns Pillow's image module, or says what to install."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(f"animations need pillow: {install('plots')}") from error
    return Image


def as_image(frame: Any) -> Array:
    """Finds the picture in an observation: RGB, grey, or a maze's palette indices."""
    if isinstance(frame, dict):
        frame = next(x for x in frame.values() if x.ndim in (2, 3) and x.dtype == np.uint8)
    if frame.ndim not in (2, 3) or frame.dtype != np.uint8:
        raise ValueError(f"observations of shape {frame.shape} and dtype {frame.dtype} cannot be drawn")
    if frame.ndim == 2 and frame.max() < len(PALETTE):
        return np.asarray(PALETTE[frame])
    return np.asarray(frame[..., 0] if frame.ndim == 3 and frame.shape[-1] == 1 else frame)
