"""How fast V-MPO trains beside Stable-Baselines3's PPO, and what the bonus costs.

    python -m benchmarks.vmpo_speed                  # writes results/vmpo_speed/speed.json

All have the same layers (a shared one of 64 units, then 64 for the policy and 64 for the value), 32 copies
of the same Gymnasium environment, unrolls of 20 steps and batches of 80 rows, on one thread. They take
turns in one process. What is taken is CPU time: it depends less than the clock on what else the machine does.
PPO learns from each row ten times by default and V-MPO once, so PPO is measured with one epoch as well. The
bonus is measured a second time with a representation that learns from every fourth batch.

With layers so small, most of the time goes into calls. So the bonus is measured in two worlds of pictures as
well, without PPO: a maze that the preset's grid layers read, and Atari's frames of 84 x 84 with DQN's.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import DummyVecEnv
from torch import Tensor, nn

from softcount.config import RunConfig
from softcount.envs.make import make_env
from softcount.measure.machine import machine
from softcount.presets import VMPO_LAPTOP
from softcount.runs.run import make_loop
from softcount.torsos import MlpConfig

ENVS = ("gym/CartPole-v1", "gym/MountainCarContinuous-v0")
VMPO = replace(
    VMPO_LAPTOP,
    vmpo=replace(
        VMPO_LAPTOP.vmpo, network=replace(VMPO_LAPTOP.vmpo.network, torso=MlpConfig(hidden_sizes=(64,)))
    ),
    env_options={},
    overlap=False,
)
FRAMES = replace(
    VMPO,
    env="atari/montezuma_revenge",
    env_options={"size": (84, 84), "stack": 4},
    vmpo=replace(VMPO.vmpo, network=replace(VMPO.vmpo.network, torso="dqn")),
    representation=replace(
        VMPO.representation, embedding=replace(VMPO.representation.embedding, torso="dqn")
    ),
)
PICTURES = {
    "disco-maze, 9 x 9": replace(
        VMPO_LAPTOP,
        env_options={"size": 9, "layout": 1, "lethal": False, "observation": "palette"},
        overlap=False,
    ),
    "Montezuma's Revenge, 84 x 84": FRAMES,
}
UNROLL, BATCH = VMPO.vmpo.unroll_length, VMPO.vmpo.batch_size
NUM_ENVS = VMPO.num_envs

Turn = Callable[[int], int]
"""Trains for about so many steps; returns how many it were."""


class OneLayer(BaseFeaturesExtractor):
    """The layer that policy and value share."""

    def __init__(self, observation_space: gymnasium.spaces.Box, num: int = 64) -> None:
        super().__init__(observation_space, num)
        self.layer = nn.Sequential(nn.Linear(int(np.prod(observation_space.shape)), num), nn.ReLU())

    def forward(self, observations: Tensor) -> Tensor:
        features: Tensor = self.layer(observations)
        return features


def vmpo(config: RunConfig) -> Turn:
    """V-MPO in the local loop."""
    loop = make_loop(config)

    def turn(steps: int) -> int:
        before = loop.num_steps
        while loop.num_steps < before + steps:
            loop.step()
        return loop.num_steps - before

    return turn


def ppo(env: str, epochs: int) -> Turn:
    """PPO with the same sizes."""
    model = PPO(
        "MlpPolicy",
        DummyVecEnv([lambda: make_env(env)] * NUM_ENVS),
        n_steps=UNROLL,
        batch_size=UNROLL * BATCH,
        n_epochs=epochs,
        device="cpu",
        seed=0,
        policy_kwargs={
            "features_extractor_class": OneLayer,
            "net_arch": {"pi": [64], "vf": [64]},
            "activation_fn": nn.ReLU,
        },
    )

    def turn(steps: int) -> int:
        before = model.num_timesteps
        model.learn(steps, reset_num_timesteps=False)
        return model.num_timesteps - before

    return turn


def with_and_without(config: RunConfig) -> dict[str, Turn]:
    """V-MPO in a world: alone, with the bonus, and with a representation that learns more rarely."""
    every, fourth = (replace(config.trainer, update_every=num) for num in (1, 4))
    return {
        "VMPO": vmpo(replace(config, agent="VMPO")),
        "VMPO-RECODE-AP": vmpo(replace(config, trainer=every)),
        "VMPO-RECODE-AP, every fourth": vmpo(replace(config, trainer=fourth)),
    }


def beside_ppo(env: str) -> dict[str, Turn]:
    """The same and PPO, in a Gymnasium environment."""
    return {
        **with_and_without(replace(VMPO, env=env)),
        "PPO": ppo(env, 10),
        "PPO, one epoch": ppo(env, 1),
    }


def compare(world: str, turns: dict[str, Turn], rounds: int, steps: int) -> dict[str, Any]:
    """CPU microseconds per step of each, turn by turn after a first one that is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in turns}
    for number in range(rounds + 1):
        for name, turn in turns.items():
            started = time.process_time()
            num = turn(steps)
            if number > 0:
                taken[name].append(round(1e6 * (time.process_time() - started) / num, 2))
    medians = {name: float(np.median(times)) for name, times in taken.items()}
    found = {
        "cpu_microseconds_per_step": taken,
        "median": medians,
        **{f"{name} over VMPO": _ratio(taken, name, "VMPO") for name in turns if name != "VMPO"},
    }
    print(
        world,
        json.dumps({name: found[name] for name in found if name != "cpu_microseconds_per_step"}),
        flush=True,
    )
    return found


def _ratio(taken: dict[str, list[float]], one: str, other: str) -> dict[str, Any]:
    ratios = np.array(taken[one]) / np.array(taken[other])
    quarter, median, three_quarters = np.percentile(ratios, (25, 50, 75)).round(3).tolist()
    return {"median": median, "quartiles": [quarter, three_quarters]}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--steps", type=int, default=6_400, help="steps of one turn")
    parser.add_argument("--out", type=Path, default=Path("results/vmpo_speed/speed.json"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    started = time.monotonic()
    found: dict[str, Any] = {
        "machine": machine(),
        "load_average_at_the_start": list(os.getloadavg()),
        "rounds": arguments.rounds,
        "steps": arguments.steps,
        "envs": {env: compare(env, beside_ppo(env), arguments.rounds, arguments.steps) for env in ENVS},
        "pictures": {
            name: compare(name, with_and_without(config), arguments.rounds, arguments.steps // 2)
            for name, config in PICTURES.items()
        },
        "wall_seconds": round(time.monotonic() - started),
    }
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
