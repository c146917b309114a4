"""Looking at a run without changing it: play its policy, open its memory, draw."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from softcount.agents.meme.bandit import best_arm
from softcount.bonuses.recode import Recode
from softcount.envs.coverage import Mapped, draw_heat_map
from softcount.envs.disco_maze import PALETTE
from softcount.launch import checkpoint
from softcount.launch.build import build_evaluator, seeds_of
from softcount.launch.local import LocalLoop
from softcount.launch.run import CHECKPOINTS, read_config, restore
from softcount.memory import inspect as memory_inspect
from softcount.types import Array


def open_run(folder: Path) -> LocalLoop:
    """Restores the last checkpoint of a run."""
    return restore(read_config(folder), checkpoint.read(folder / CHECKPOINTS))


def evaluate_run(folder: Path, episodes: int, gif: Path | None) -> str:
    """Plays episodes with the best mixture; returns what to print."""
    config = replace(read_config(folder), evaluation_episodes=episodes)
    loop = restore(config, checkpoint.read(folder / CHECKPOINTS))
    roles = loop.roles
    arm = best_arm(roles.actor.statistics())
    evaluation = build_evaluator(config, roles.inference)(
        arm, roles.memory.scorer(), seed=seeds_of(config.seed).evaluation, keep_frames=gif is not None
    )
    lines = [
        f"{config.agent} on {config.env} after {loop.num_steps:,} steps, mixture {arm}, {episodes} episodes",
        f"  return   {evaluation.mean_return:.3f} (success in {evaluation.success_rate:.0%})",
        f"  length   {np.mean([e.length for e in evaluation.episodes]):.1f}",
    ]
    if gif is not None:
        write_gif(gif, evaluation.frames)
        lines.append(f"  animation {gif}")
    return "\n".join(lines)


def inspect_run(folder: Path, pictures: Path) -> str:
    """Describes the memory and what was visited, and draws both; returns what to print."""
    loop = open_run(folder)
    pictures.mkdir(parents=True, exist_ok=True)
    lines = [f"{folder.name}: {loop.num_steps:,} steps, {loop.num_updates:,} updates"]
    env = loop.roles.actor.env
    if loop.coverage is not None:
        known = f" of {loop.coverage.num_places}" if loop.coverage.num_places else ""
        lines.append(f"  places visited  {loop.coverage.num_visited}{known}")
        if hasattr(env, "cell_of"):
            draw_heat_map(pictures / "coverage.png", loop.coverage, cast(Mapped, env), title=folder.name)
            lines.append(f"  picture         {pictures / 'coverage.png'}")
    bonus = loop.roles.memory.bonus
    if isinstance(bonus, Recode):
        lines += [f"  {name:15s} {value:.4g}" for name, value in memory_inspect.summary(bonus.memory).items()]
        memory_inspect.draw_memory(bonus.memory).savefig(pictures / "memory.png", dpi=100)
        lines.append(f"  picture         {pictures / 'memory.png'}")
    return "\n".join(lines)


def write_gif(path: Path, frames: list[Any], *, side: int = 336) -> None:
    """Writes what an environment showed as an animation, enlarged without blurring."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError("animations need pillow; pip install 'softcount[plots]'") from error
    images = [_as_image(frame) for frame in frames]
    height, width = images[0].shape[:2]
    scale = max(1, side // max(height, width))
    drawn = [
        Image.fromarray(image).resize((width * scale, height * scale), Image.Resampling.NEAREST)
        for image in images
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn[0].save(path, save_all=True, append_images=drawn[1:], duration=80, loop=0)


def _as_image(frame: Any) -> Array:
    """Finds the picture in an observation: RGB, grey, or a maze's palette indices."""
    if isinstance(frame, dict):
        frame = next(x for x in frame.values() if x.ndim in (2, 3) and x.dtype == np.uint8)
    if frame.ndim not in (2, 3) or frame.dtype != np.uint8:
        raise ValueError(f"observations of shape {frame.shape} and dtype {frame.dtype} cannot be drawn")
    if frame.ndim == 2 and frame.max() < len(PALETTE):
        return np.asarray(PALETTE[frame])
    return np.asarray(frame[..., 0] if frame.ndim == 3 and frame.shape[-1] == 1 else frame)
