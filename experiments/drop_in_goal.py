"""Is a goal that was found also kept? Agents that people have, with and without a bonus.

    python -m experiments.drop_in_goal --worlds key --agents sb3-ppo --seeds 0 1 2
    python -m experiments.drop_in_goal --plot

Worlds: the key and the door of `examples/key_and_door.py`, the Disco Maze whose walls only block, one
layout of MiniGrid's MultiRoom, and a point among walls with continuous actions. Agents: SB3's PPO with values
of the bonus's own, `examples/ppo_recode.py`, SB3's DQN and SAC with the replay that is scored by today's
memory. Bonuses: none, RND, RECODE-AP and true counts, the limit of what counting can give. Success is the
share of episodes with a reward over the last fifth of the steps. One file per run under
`results/drop_in_goal`; what is there is not run again.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.drop_in_counts import CountingVectorEnv, counting_callback, counting_replay
from experiments.drop_in_learning import load_example
from experiments.figures.jobs import new_figure, save_picture
from softcount.integrations import PLAIN_WORLD, SMALL_WORLD, IntrinsicRewardConfig
from softcount.measure.machine import machine
from softcount.store import write_atomically

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "drop_in_goal"
BONUSES = ("none", "RND", "RECODE-AP", "COUNT")


@dataclass(frozen=True, kw_only=True)
class World:
    """One task, how long agents may try, and how much the bonus weighs."""

    env_id: str
    options: dict[str, Any]
    agents: tuple[str, ...] = ("sb3-ppo", "ppo_recode", "sb3-dqn")
    steps: int = 102_400
    off_policy_steps: int = 60_000
    weight: float = 0.3
    replay_weight: float = 0.1
    is_plain: bool = True  # seen without noise

    def steps_of(self, agent: str) -> int:
        return self.steps if "ppo" in agent else self.off_policy_steps

    def config_of(self, bonus: str) -> IntrinsicRewardConfig:
        """The settings of a bonus, the same in every agent."""
        small = PLAIN_WORLD if self.is_plain else SMALL_WORLD
        return small if "RECODE" in bonus else IntrinsicRewardConfig()


WORLDS = {
    "key": World(env_id="key_and_door:KeyAndDoor-v0", options={"env_kwargs": {"size": 9}}),
    "maze": World(env_id="disco-maze", options={"maze_size": 15}, steps=122_880, is_plain=False),
    "multiroom": World(env_id="MiniGrid-MultiRoom-N4-S5-v1", options={"layout_seed": 1}),
    "point": World(env_id="point-maze/s", options={}, agents=("sb3-ppo", "sb3-sac")),
}

PPO: dict[str, Any] = {
    "n_steps": 16,
    "batch_size": 128,
    "n_epochs": 4,
    "learning_rate": 1e-3,
    "ent_coef": 0.02,
    "gamma": 0.99,
}
DQN: dict[str, Any] = {
    "learning_rate": 1e-3,
    "buffer_size": 50_000,
    "learning_starts": 1_000,
    "batch_size": 128,
    "train_freq": 2,
    "gradient_steps": 2,
    "target_update_interval": 500,
    "exploration_fraction": 0.1,
    "exploration_final_eps": 0.05,
    "gamma": 0.97,
}
SAC: dict[str, Any] = {
    "learning_rate": 1e-3,
    "buffer_size": 100_000,
    "learning_starts": 1_000,
    "batch_size": 128,
    "train_freq": 4,
    "gradient_steps": 4,
    "gamma": 0.98,
    "policy_kwargs": {"net_arch": [64, 64]},
}
SETTINGS = {"sb3-ppo": PPO, "sb3-dqn": DQN, "sb3-sac": SAC}


def run(agent: str, bonus: str, world: World, seed: int) -> dict[str, Any]:
    """Trains one agent once; returns its curve and what it was run with."""
    start, cpu = time.perf_counter(), time.process_time()
    torch.set_num_threads(1)
    train = _run_ppo_recode if agent == "ppo_recode" else _run_sb3
    result = train(agent, bonus, world, seed)
    has_config = bonus not in ("none", "COUNT")
    return {
        "agent": agent,
        "bonus": bonus,
        "bonus_config": repr(world.config_of(bonus)) if has_config else None,
        "world": asdict(world),
        "steps": world.steps_of(agent),
        "seed": seed,
        **result,
        "wall_seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
        "machine": f"{machine()}, one thread, shared with other work",
        "torch": torch.__version__,
    }


def _run_ppo_recode(agent: str, bonus: str, world: World, seed: int) -> dict[str, Any]:
    example: Any = load_example()
    args = example.Args(
        env_id=world.env_id,
        bonus=bonus,
        seed=seed,
        total_timesteps=world.steps_of(agent),
        plain_world=world.is_plain,
        **world.options,
    )
    if bonus == "COUNT":
        example.IntrinsicRewardWrapper = lambda envs, name, **options: CountingVectorEnv(envs)
    record = example.train(args)
    keys = ("step", "episodic_return", "places", "intrinsic")
    curve = [{key: row[key] for key in keys} for row in record["curve"]]
    return {
        "settings": record["args"],
        "curve": curve,
        "first_success": record["first_success"],
        "success": record["success"],
    }


def _run_sb3(agent: str, bonus: str, world: World, seed: int) -> dict[str, Any]:
    import stable_baselines3 as sb3
    from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

    kinds = {"sb3-ppo": sb3.PPO, "sb3-dqn": sb3.DQN, "sb3-sac": sb3.SAC}
    num_envs = 32 if agent == "sb3-ppo" else 8
    env: Any = VecMonitor(DummyVecEnv([maker(world)] * num_envs))
    env.seed(seed)
    weight = world.weight if agent == "sb3-ppo" else world.replay_weight
    options = {"seed": seed, "weight": weight, "config": world.config_of(bonus)}
    callbacks, kwargs = [], {}
    if bonus != "none" and agent == "sb3-ppo":
        callbacks = [_callback(bonus, options)]
    elif bonus != "none":
        kwargs = _replay(bonus, options)
    settings = SETTINGS[agent]
    model: Any = kinds[agent]("MlpPolicy", env, seed=seed, device="cpu", **kwargs, **settings)
    steps = world.steps_of(agent)
    watch = watcher(steps)
    model.learn(steps, callback=[*callbacks, watch])
    return {
        "settings": {**settings, "num_envs": num_envs, "weight": None if bonus == "none" else weight},
        "curve": watch.curve,
        "first_success": watch.first_success,
        "success": float(np.mean(watch.late)) if watch.late else 0.0,
    }


def _callback(bonus: str, options: dict[str, Any]) -> Any:
    from softcount.integrations.sb3 import IntrinsicRewardCallback

    return counting_callback(options) if bonus == "COUNT" else IntrinsicRewardCallback(bonus, **options)


def _replay(bonus: str, options: dict[str, Any]) -> dict[str, Any]:
    from softcount.integrations.sb3 import IntrinsicReplayBuffer

    counts = bonus == "COUNT"
    return {
        "replay_buffer_class": counting_replay() if counts else IntrinsicReplayBuffer,
        "replay_buffer_kwargs": {"bonus": "RND" if counts else bonus, "bonus_options": options},
    }


def maker(world: World) -> Callable[[], Any]:
    """Makes one environment of a world, as agents see it."""
    if world.env_id.startswith("point-maze"):
        from softcount.envs.make import make_env

        return lambda: make_env(world.env_id)
    example = load_example()
    args = example.Args(env_id=world.env_id, **world.options)
    return lambda: example.make_env(args)


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
                self.places.add(int(info["place"]))
                if "episode" not in info:
                    continue
                self.returns.append(float(info["episode"]["r"]))
                if self.num_timesteps > 0.8 * steps:
                    self.late.append(self.returns[-1] > 0)
                if self.first_success is None and self.returns[-1] > 0:
                    self.first_success = int(self.num_timesteps)
            if self.num_timesteps // (steps // 20) > len(self.curve):
                self.curve.append(
                    {
                        "step": self.num_timesteps,
                        "episodic_return": float(np.mean(self.returns[-100:])) if self.returns else 0.0,
                        "places": len(self.places - {-1}),
                    }
                )
            return True

    return Watcher()


def read(folder: Path) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """The runs of a folder, seeds together, by world, agent and bonus."""
    cells: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text())
        cells.setdefault((path.stem.split("_")[0], record["agent"], record["bonus"]), []).append(record)
    return cells


def table(folder: Path) -> str:
    """The finished runs as rows of Markdown, seeds side by side."""
    cells = read(folder)
    rows = [
        "| world | agent | bonus | seeds | places | first goal | success, last fifth | CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, world in WORLDS.items():
        for agent in world.agents:
            for bonus in BONUSES:
                runs = cells.get((name, agent, bonus), [])
                texts = [", ".join(column) for column in zip(*map(_cells, runs))] if runs else ["not run"]
                rows.append(f"| {' | '.join((name, agent, bonus, *texts, *[''] * (5 - len(texts))))} |")
    return "\n".join(rows)


def _cells(record: dict[str, Any]) -> tuple[str, ...]:
    first = record["first_success"]
    return (
        str(record["seed"]),
        str(record["curve"][-1]["places"]),
        "never" if first is None else f"{first / 1000:.0f}k",
        f"{record['success']:.2f}",
        f"{record['cpu_seconds']:.0f}",
    )


def draw(folder: Path) -> Any:
    """Returns of every finished run over its steps: a row of panels per world, a column per agent."""
    cells = read(folder)
    worlds = [name for name in WORLDS if any(key[0] == name for key in cells)]
    agents = [
        name for name in ("sb3-ppo", "ppo_recode", "sb3-dqn", "sb3-sac") if any(k[1] == name for k in cells)
    ]
    figure = new_figure(4 * max(len(agents), 1), 2.6 * max(len(worlds), 1))
    axes = figure.subplots(max(len(worlds), 1), max(len(agents), 1), squeeze=False)
    colours = dict(zip(BONUSES, ("0.5", "tab:orange", "tab:blue", "tab:green"), strict=True))
    for (world, agent, bonus), runs in cells.items():
        panel = axes[worlds.index(world)][agents.index(agent)]
        for number, record in enumerate(runs):
            steps = [point["step"] for point in record["curve"]]
            returns = [point["episodic_return"] for point in record["curve"]]
            panel.plot(steps, returns, color=colours[bonus], label=bonus if number == 0 else None)
        panel.set(title=f"{agent}, {world}", ylabel="return", xlabel="steps", ylim=(-0.05, 1.05))
        panel.legend(fontsize=7)
    return figure


def main(arguments: list[str] | None = None) -> None:
    """Runs what is missing, then draws everything."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--agents", nargs="+", choices=["ppo_recode", *SETTINGS], help="default: the world's")
    parser.add_argument("--bonuses", nargs="+", choices=BONUSES, default=list(BONUSES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--image", type=Path, default=ROOT / "docs" / "images" / "drop_in_goal.png")
    parser.add_argument(
        "--plot", action="store_true", help="only draw what is there, and print it as a table"
    )
    args = parser.parse_args(arguments)
    sys.path.append(str(ROOT / "examples"))  # where the key and the door are
    for seed in [] if args.plot else args.seeds:
        for name in args.worlds:
            for agent in [
                each for each in WORLDS[name].agents if each in (args.agents or WORLDS[name].agents)
            ]:
                for bonus in args.bonuses:
                    path = args.out / f"{name}_{agent}_{bonus}_{seed}.json"
                    if not path.exists():
                        print(path.stem, flush=True)
                        record = run(agent, bonus, WORLDS[name], seed)
                        write_atomically(path, json.dumps(record, indent=1).encode())
    if args.plot:
        save_picture(draw(args.out), args.image.stem, args.image.parent)
    print(table(args.out))


if __name__ == "__main__":
    main()
