"""How fast the agent trains, and where the time goes: environment steps per second, share of each role.

    python -m benchmarks.agent                       # writes results/meme/benchmark.json

On the 11x11 and 21x21 Disco Maze (laptop presets) and on Montezuma's Revenge (the paper's protocol, a
small DQN torso, a memory for 50,000 atoms: as RECODE fills it there, and full of noise, which is the worst
case for its index). `one_core` are 21x21 runs without the learner's thread, as the maze experiments are
run; `plain_layer` is the same with PyTorch's dense layer over looked-up colours in place of the fused one,
taking turns with it. `operations` are the PyTorch operations that take most of a 21x21 run on one
thread, as shares of the wall clock under PyTorch's profiler, which takes time itself.
Stable-Baselines3's PPO without any bonus, with layers of the same sizes on the same environment, stands
beside it as a familiar yardstick.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.agent.montezuma import SMALL_ATARI
from softcount.config import RunConfig
from softcount.launch.local import LocalLoop
from softcount.measure.machine import machine
from softcount.presets import LAPTOP, LAPTOP_21
from softcount.runs.run import make_loop
from softcount.torsos import palette

MAZE, MAZE_21, ATARI = LAPTOP, LAPTOP_21, SMALL_ATARI


def measure(config: RunConfig, warm_up: int, steps: int, *, fill: bool = False) -> dict[str, Any]:
    """Runs the loop; returns steps per second and each role's share of the wall clock."""
    loop = make_loop(config)
    while loop.num_steps < warm_up:
        loop.step()
    if fill:
        fill_memory(loop)
    before, num_before, updates = dict(loop.seconds), loop.num_steps, loop.num_updates
    learned = loop.learner_seconds
    started = time.perf_counter()
    while loop.num_steps < num_before + steps:
        loop.step()
    if loop.pending is not None:
        loop.pending.result()
    elapsed = time.perf_counter() - started
    shares = {role: (seconds - before[role]) / elapsed for role, seconds in loop.seconds.items()}
    return {
        "steps_per_second": (loop.num_steps - num_before) / elapsed,
        "updates": loop.num_updates - updates,
        "learner_thread_busy": (loop.learner_seconds - learned) / elapsed,
        "share_of_acting_thread": shares,
        "atoms": loop.roles.memory.metrics()["atoms"],
    }


def measure_layers(config: RunConfig, warm_up: int, steps: int, rounds: int = 3) -> dict[str, Any]:
    """Returns steps per second on one core with the fused layer over colours and without, taking turns."""
    config, native = replace(config, overlap=False), palette._palette
    speeds: dict[str, list[float]] = {"one_core": [], "plain_layer": []}
    try:
        for _ in range(rounds):
            for name, kernels in (("one_core", native), ("plain_layer", None)):
                palette._palette = kernels
                speeds[name].append(measure(config, warm_up, steps)["steps_per_second"])
    finally:
        palette._palette = native
    return {**speeds, "ratio": np.median(speeds["one_core"]) / np.median(speeds["plain_layer"])}


def measure_operations(config: RunConfig, warm_up: int, steps: int, num: int = 8) -> dict[str, float]:
    """Returns the shares of the wall clock of the costliest PyTorch operations, and of all together."""
    loop = make_loop(replace(config, overlap=False))
    while loop.num_steps < warm_up:
        loop.step()
    end = loop.num_steps + steps
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        started = time.perf_counter()
        while loop.num_steps < end:
            loop.step()
        elapsed = time.perf_counter() - started
    costs = {event.key: event.self_cpu_time_total / 1e6 / elapsed for event in profiler.key_averages()}
    top = sorted(costs, key=costs.__getitem__, reverse=True)[:num]
    return {name: round(costs[name], 4) for name in top} | {"all": round(sum(costs.values()), 4)}


def fill_memory(loop: LocalLoop) -> None:
    """Fills the memory with noise around the atoms it has, as wide as its bandwidth: nothing to prune."""
    memory = loop.roles.memory.bonus.memory  # type: ignore[union-attr]
    state = memory.state_dict()
    rng = np.random.default_rng(0)
    config = memory.config
    missing = config.size - len(memory)
    rows = state["atoms"][rng.integers(len(memory), size=missing)]
    scale = float(np.sqrt(memory.d2_ema / config.dim))
    state["atoms"] = np.concatenate(
        [state["atoms"], rows + scale * rng.normal(size=rows.shape).astype(np.float32)]
    )
    state["log_counts"] = np.concatenate([state["log_counts"], np.zeros(missing)])
    state["births"] = np.concatenate([state["births"], np.zeros(missing, np.int64)])
    state["num_observed"] = max(state["num_observed"], config.size)
    memory.load_state_dict(state)


def measure_ppo(env: str, steps: int) -> dict[str, Any]:
    """Trains Stable-Baselines3's PPO without bonus on the same environment; returns steps per second."""
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    if env == "maze":
        from softcount.envs.disco_maze import DiscoMazeConfig
        from softcount.envs.disco_maze_gym import DiscoMazeEnv

        venv = make_vec_env(lambda: DiscoMazeEnv(DiscoMazeConfig(size=11)), n_envs=64)
        policy, kwargs = "MlpPolicy", {"net_arch": [128, 128]}
    else:
        from softcount.envs.atari import Atari, AtariConfig

        venv = make_vec_env(lambda: Atari(AtariConfig(game="montezuma_revenge")), n_envs=16)
        policy, kwargs = "CnnPolicy", {"net_arch": [128]}
    model = PPO(policy, venv, n_steps=32, batch_size=256, n_epochs=4, policy_kwargs=kwargs, device="cpu")
    model.learn(32 * venv.num_envs)
    started = time.perf_counter()
    model.learn(steps, reset_num_timesteps=True)
    return {"steps_per_second": model.num_timesteps / (time.perf_counter() - started)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/meme/benchmark.json"))
    parser.add_argument("--maze-steps", type=int, default=40_000)
    parser.add_argument("--atari-steps", type=int, default=3_000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results: dict[str, Any] = {
        "machine": machine(),
        "maze": measure(MAZE, 20_000, arguments.maze_steps),
        "maze_21": measure(MAZE_21, 20_000, arguments.maze_steps),
        "maze_21_layers": measure_layers(MAZE_21, 20_000, arguments.maze_steps // 2),
        "operations": measure_operations(MAZE_21, 20_000, arguments.maze_steps // 4),
        "atari": measure(ATARI, 2_000, arguments.atari_steps),
        "atari_noise": measure(ATARI, 2_000, arguments.atari_steps, fill=True),
        "maze_ppo": measure_ppo("maze", arguments.maze_steps),
        "atari_ppo": measure_ppo("atari", arguments.atari_steps),
    }
    for name, result in results.items():
        print(name, json.dumps(result, indent=1))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
