"""Drop-in learning: does the bonus help agents that people already have?

    python -m experiments.drop_in.learning --worlds maze --seeds 0 1 2
    python -m experiments.drop_in.learning --worlds maze lethal-maze --bonuses COUNT --seeds 0
    python -m experiments.drop_in.learning --plot

Three agents (`examples/ppo_recode.py`, Stable-Baselines3's PPO and DQN) × three bonuses (none,
RND, RECODE-AP) × two worlds: a Disco Maze whose walls only block, and one layout of a
MiniGrid task of several rooms. `COUNT`, true visit counts, is the limit of what a bonus can do
for an agent. Each run is one JSON file under `results/drop_in`; what is
there is not run again, so that a stopped series is continued by the same command.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch

from experiments.drop_in.counts import CountingVectorEnv, counting_vec_env
from experiments.jobs import new_figure, save_picture
from softcount.integrations import SMALL_WORLD, IntrinsicRewardConfig
from softcount.measure.machine import machine
from softcount.store import write_atomically

ROOT = Path(__file__).parents[2]
AGENTS = ("ppo_recode", "sb3-ppo", "sb3-dqn")
BONUSES = ("none", "RND", "RECODE-AP")
COUNT = "COUNT"


@dataclass(frozen=True, kw_only=True)
class World:
    """One task, and how long each agent may try."""

    env_id: str
    maze_size: int = 15
    lethal: bool = False
    layout_seed: int | None = None
    steps: int = 61_440
    dqn_steps: int = 32_000
    num_places: int | None = None

    def steps_of(self, agent: str) -> int:
        return self.dqn_steps if agent == "sb3-dqn" else self.steps


WORLDS = {
    "maze": World(env_id="disco-maze", maze_size=15, num_places=97),
    "multiroom": World(env_id="MiniGrid-MultiRoom-N4-S5-v1", layout_seed=1, dqn_steps=28_000),
    "lethal-maze": World(env_id="disco-maze", maze_size=11, lethal=True, steps=122_880, num_places=49),
}
SERIES = ("maze", "multiroom")
"""The worlds of the comparison; in the third even true counts did not bring PPO to the goal."""

SB3_PPO: dict[str, Any] = {
    "n_steps": 16,
    "batch_size": 128,
    "n_epochs": 4,
    "learning_rate": 1e-3,
    "ent_coef": 0.02,
    "gamma": 0.95,
}
SB3_DQN: dict[str, Any] = {
    "learning_rate": 1e-3,
    "buffer_size": 20_000,
    "learning_starts": 2_000,
    "batch_size": 128,
    "train_freq": 2,
    "gradient_steps": 2,
    "target_update_interval": 500,
    "exploration_fraction": 0.1,
    "exploration_final_eps": 0.05,
    "gamma": 0.95,
}
SB3_WEIGHT = 1.0
"""Weight of the bonus beside a reward of at most 1 at the goal, in the mixed reward."""


def run(agent: str, bonus: str, world: World, seed: int) -> dict[str, Any]:
    """Trains one agent once; returns its curve and what it was run with."""
    start = time.perf_counter()
    cpu = time.process_time()
    if agent == "ppo_recode":
        result = _run_ppo_recode(bonus, world, seed)
    else:
        result = _run_sb3(agent, bonus, world, seed)
    return {
        "agent": agent,
        "bonus": bonus,
        "bonus_config": None if bonus in ("none", COUNT) else repr(config_of(bonus)),
        "world": asdict(world),
        "seed": seed,
        **result,
        "wall_seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
        "machine": f"{machine()}, one thread, shared with other work",
        "torch": torch.__version__,
    }


def config_of(bonus: str) -> IntrinsicRewardConfig:
    """The settings of a bonus, the same in every agent."""
    return SMALL_WORLD if "RECODE" in bonus else IntrinsicRewardConfig()


def options_of(world: World) -> dict[str, Any]:
    """What the example's arguments say about a world, beside its name."""
    return {"maze_size": world.maze_size, "lethal": world.lethal, "layout_seed": world.layout_seed}


def _run_ppo_recode(bonus: str, world: World, seed: int) -> dict[str, Any]:
    example: Any = load_example()
    args = example.Args(
        env_id=world.env_id,
        bonus=bonus,
        seed=seed,
        total_timesteps=world.steps_of("ppo_recode"),
        **options_of(world),
    )
    if bonus == COUNT:
        example.IntrinsicRewardWrapper = lambda envs, name, **options: CountingVectorEnv(envs)
    record = example.train(args)
    keys = ("step", "episodic_return", "places", "intrinsic", "seconds")
    curve = [{key: row[key] for key in keys} for row in record["curve"]]
    return {"settings": record["args"], "curve": curve, "first_success": record["first_success"]}


def _run_sb3(agent: str, bonus: str, world: World, seed: int) -> dict[str, Any]:
    from stable_baselines3 import DQN, PPO
    from stable_baselines3.common.vec_env import DummyVecEnv, VecMonitor

    from softcount.integrations.sb3 import IntrinsicVecEnv

    torch.set_num_threads(1)
    example = load_example()
    args = example.Args(env_id=world.env_id, **options_of(world))
    num_envs = 32 if agent == "sb3-ppo" else 8
    env: Any = VecMonitor(DummyVecEnv([lambda: example.make_env(args)] * num_envs))
    env.seed(seed)
    if bonus == COUNT:
        env = counting_vec_env(env, SB3_WEIGHT)
    elif bonus != "none":
        env = IntrinsicVecEnv(env, bonus, seed=seed, weight=SB3_WEIGHT, config=config_of(bonus))
    if agent == "sb3-ppo":
        model: Any = PPO("MlpPolicy", env, seed=seed, device="cpu", **SB3_PPO)
    else:
        model = DQN("MlpPolicy", env, seed=seed, device="cpu", **SB3_DQN)
    watch = _watcher(world.steps_of(agent) // 20)
    model.learn(world.steps_of(agent), callback=watch)
    settings = {
        **(SB3_PPO if agent == "sb3-ppo" else SB3_DQN),
        "num_envs": num_envs,
        "weight": None if bonus == "none" else SB3_WEIGHT,
    }
    return {"settings": settings, "curve": watch.curve, "first_success": watch.first_success}


def _watcher(every: int) -> Any:
    """A callback that follows coverage and the game's own returns."""
    from stable_baselines3.common.callbacks import BaseCallback

    class Watcher(BaseCallback):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.curve: list[dict[str, float]] = []
            self.first_success: int | None = None
            self.places: set[int] = set()
            self.returns: list[float] = []
            self.paid: list[float] = []
            self.start = time.perf_counter()

        def _on_step(self) -> bool:
            for info in self.locals["infos"]:
                if info["place"] >= 0:  # below: dead, in a wall
                    self.places.add(int(info["place"]))
                self.paid.append(info.get("intrinsic_reward", 0.0))
                if "episode" in info:
                    self.returns.append(float(info["episode"]["r"]))
                    if self.first_success is None and self.returns[-1] > 0:
                        self.first_success = int(self.num_timesteps)
            if self.num_timesteps // every > len(self.curve):
                row = {
                    "step": self.num_timesteps,
                    "episodic_return": float(np.mean(self.returns[-100:])) if self.returns else 0.0,
                    "places": len(self.places),
                    "intrinsic": float(np.mean(self.paid[-2048:])),
                    "seconds": time.perf_counter() - self.start,
                }
                self.curve.append(row)
                print({key: round(value, 3) for key, value in row.items()}, flush=True)
            return True

    return Watcher()


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


def draw(folder: Path) -> Any:
    """Draws coverage and return of every finished run, one row of panels per world."""
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    records = [record for record in records if not record["world"].get("lethal")]
    worlds = sorted({record["world"]["env_id"] for record in records})
    figure = new_figure(4 * len(AGENTS), 5 * len(worlds))
    axes = figure.subplots(2 * len(worlds), len(AGENTS), squeeze=False)
    colours = dict(zip((*BONUSES, COUNT), ("0.5", "tab:orange", "tab:blue", "tab:green"), strict=True))
    for record in records:
        column = AGENTS.index(record["agent"])
        row = 2 * worlds.index(record["world"]["env_id"])
        steps = [point["step"] for point in record["curve"]]
        for offset, key in enumerate(("places", "episodic_return")):
            panel = axes[row + offset][column]
            label = record["bonus"] if record["seed"] == 0 else None  # one line in the legend for all seeds
            panel.plot(steps, [p[key] for p in record["curve"]], color=colours[record["bonus"]], label=label)
            panel.set(title=f"{record['agent']}, {record['world']['env_id']}", ylabel=key, xlabel="steps")
            panel.legend(fontsize=7)
    return figure


def table(folder: Path) -> str:
    """The finished runs as rows of Markdown, seeds side by side."""
    cells: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text())
        world = path.stem.split("_")[0]
        cells.setdefault((world, record["agent"], record["bonus"]), []).append(record)
    rows = [
        "| world | agent | bonus | seeds | places at half time | at the end | return | first goal | CPU s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for world in WORLDS:
        for agent in AGENTS:
            for bonus in (*BONUSES, COUNT):
                runs = cells.get((world, agent, bonus), [])
                if runs:
                    columns = (world, agent, bonus, *(", ".join(texts) for texts in zip(*map(_cells, runs))))
                    rows.append(f"| {' | '.join(columns)} |")
    return "\n".join(rows)


def _cells(record: dict[str, Any]) -> tuple[str, ...]:
    """What the table says of one run."""
    curve, first = record["curve"], record["first_success"]
    half = next(point for point in curve if point["step"] >= curve[-1]["step"] / 2)
    return (
        str(record["seed"]),
        str(half["places"]),
        str(curve[-1]["places"]),
        f"{curve[-1]['episodic_return']:.2f}",
        "never" if first is None else f"{first / 1000:.0f}k",
        f"{record['cpu_seconds']:.0f}",
    )


def main(arguments: list[str] | None = None) -> None:
    """Runs what is missing, then draws everything."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(SERIES))
    parser.add_argument("--agents", nargs="+", choices=AGENTS, default=list(AGENTS))
    parser.add_argument("--bonuses", nargs="+", choices=[*BONUSES, COUNT], default=list(BONUSES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--steps", type=int, help="instead of the world's own number")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "drop_in")
    parser.add_argument("--image", type=Path, default=ROOT / "docs" / "images" / "drop_in_learning.png")
    parser.add_argument(
        "--plot", action="store_true", help="only draw what is there, and print it as a table"
    )
    args = parser.parse_args(arguments)
    if not args.plot:
        for seed in args.seeds:
            for world_name in args.worlds:
                for agent in args.agents:
                    for bonus in args.bonuses:
                        path = args.out / f"{world_name}_{agent}_{bonus}_{seed}.json"
                        if path.exists():
                            continue
                        world = WORLDS[world_name]
                        if args.steps:
                            world = replace(world, steps=args.steps, dqn_steps=args.steps)
                        print(path.stem, flush=True)
                        record = run(agent, bonus, world, seed)
                        write_atomically(path, json.dumps(record, indent=1).encode())
    save_picture(draw(args.out), args.image.stem, args.image.parent)
    print(table(args.out))


if __name__ == "__main__":
    main()
