"""Agents that people have, trained and watched: `examples/ppo_recode.py`, and Stable-Baselines3's.

Both leave the same: a curve of steps, returns and places, when the goal was first met, and *success*, the
share of episodes with a reward over the last fifth of the steps.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from experiments.drop_in.counts import CountingVectorEnv
from softcount.integrations.stagger import Staggered

ROOT = Path(__file__).parents[2]
LATE = 0.8
"""The share of the steps after which episodes tell whether a goal is kept."""
NUM_ENVS = {"sb3-ppo": 32, "sb3-dqn": 8, "sb3-sac": 8}


def load_example() -> ModuleType:
    """Imports `examples/ppo_recode.py` of this checkout."""
    path = ROOT / "examples" / "ppo_recode.py"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing; run this from a checkout of the repository")
    spec = importlib.util.spec_from_file_location("ppo_recode", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["ppo_recode"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def run_example(**arguments: Any) -> dict[str, Any]:
    """Trains `ppo_recode.py` once; the bonus `COUNT` is that of true counts."""
    example: Any = load_example()
    args = example.Args(**arguments)
    if args.bonus == "COUNT":
        example.IntrinsicRewardWrapper = lambda envs, name, **options: CountingVectorEnv(envs)
    record = example.train(args)
    curve = [{key: row[key] for key in ("step", "episodic_return", "places")} for row in record["curve"]]
    return {
        "settings": record["args"],
        "curve": curve,
        "first_success": record["first_success"],
        "success": record["success"],
    }


def run_sb3(
    agent: str, env: Any, settings: dict[str, Any], *, steps: int, seed: int, callbacks: Sequence[Any] = ()
) -> dict[str, Any]:
    """Trains one algorithm of Stable-Baselines3 once, on environments that report episodes and places."""
    import stable_baselines3 as sb3

    torch.set_num_threads(1)
    kind: Any = {"sb3-ppo": sb3.PPO, "sb3-dqn": sb3.DQN, "sb3-sac": sb3.SAC}[agent]
    watch = watcher(steps)
    kind("MlpPolicy", env, seed=seed, device="cpu", **settings).learn(steps, callback=[*callbacks, watch])
    return {
        "curve": watch.curve,
        "first_success": watch.first_success,
        "success": float(np.mean(watch.late)) if watch.late else 0.0,
    }


def monitored(make: Callable[[], Any], agent: str, seed: int, stagger: int = 0) -> Any:
    """As many environments as an agent of Stable-Baselines3 gets, whose returns are the game's own."""
    from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

    num = NUM_ENVS[agent]
    cuts = [index * stagger // num for index in range(num)]
    env: Any = VecMonitor(DummyVecEnv([partial(_staggered, make, cut) for cut in cuts]))
    env.seed(seed)
    return env


def _staggered(make: Callable[[], Any], cut: int) -> Any:
    return Staggered(make(), cut)


def watcher(steps: int) -> Any:
    """A callback that follows coverage and success."""
    from stable_baselines3.common.callbacks import BaseCallback

    class Watcher(BaseCallback):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.curve: list[dict[str, float]] = []
            self.first_success: int | None = None
            self.places: set[int] = set()
            self.returns: list[float] = []
            self.late: list[bool] = []

        def _on_step(self) -> bool:
            for info in self.locals["infos"]:
                if info["place"] >= 0:  # below: dead, in a wall
                    self.places.add(int(info["place"]))
                if "episode" in info:
                    self._end(float(info["episode"]["r"]))
            if self.num_timesteps // (steps // 20) > len(self.curve):
                self.curve.append(
                    {
                        "step": self.num_timesteps,
                        "episodic_return": float(np.mean(self.returns[-100:])) if self.returns else 0.0,
                        "places": len(self.places),
                    }
                )
            return True

        def _end(self, episodic_return: float) -> None:
            self.returns.append(episodic_return)
            if self.num_timesteps > LATE * steps:
                self.late.append(episodic_return > 0)
            if self.first_success is None and episodic_return > 0:
                self.first_success = int(self.num_timesteps)

    return Watcher()
