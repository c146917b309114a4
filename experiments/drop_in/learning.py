"""Drop-in learning: does the bonus help agents that people already have?

Three agents (`examples/ppo_recode.py`, Stable-Baselines3's PPO and DQN) × three bonuses (none,
RND, RECODE-AP) × two worlds: a Disco Maze whose walls only block, and one layout of a
MiniGrid task of several rooms. `COUNT`, true visit counts, is the limit of what a bonus can do
for an agent, once each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from experiments.drawing import WIDTH, colours_of, legend_beside, new_figure, steps_below
from experiments.drop_in.counts import counting_vec_env
from experiments.drop_in.loops import load_example, monitored, run_example, run_sb3
from experiments.figure import Figure
from experiments.jobs import SEEDS, Job, Row, by
from softcount.integrations import SMALL_WORLD, IntrinsicRewardConfig

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
    if agent == "ppo_recode":
        result = _run_ppo_recode(bonus, world, seed)
    else:
        result = _run_sb3(agent, bonus, world, seed)
    return {
        "bonus_config": None if bonus in ("none", COUNT) else repr(config_of(bonus)),
        "world": asdict(world),
        **result,
    }


def config_of(bonus: str) -> IntrinsicRewardConfig:
    """The settings of a bonus, the same in every agent."""
    return SMALL_WORLD if "RECODE" in bonus else IntrinsicRewardConfig()


def options_of(world: World) -> dict[str, Any]:
    """What the example's arguments say about a world, beside its name."""
    return {"maze_size": world.maze_size, "lethal": world.lethal, "layout_seed": world.layout_seed}


def _run_ppo_recode(bonus: str, world: World, seed: int) -> dict[str, Any]:
    steps = world.steps_of("ppo_recode")
    return run_example(
        env_id=world.env_id, bonus=bonus, seed=seed, total_timesteps=steps, **options_of(world)
    )


def _run_sb3(agent: str, bonus: str, world: World, seed: int) -> dict[str, Any]:
    from softcount.integrations.sb3 import IntrinsicVecEnv

    example: Any = load_example()
    args = example.Args(env_id=world.env_id, **options_of(world))
    env = monitored(lambda: example.make_env(args), agent, seed)
    num_envs = env.num_envs
    if bonus == COUNT:
        env = counting_vec_env(env, SB3_WEIGHT)
    elif bonus != "none":
        env = IntrinsicVecEnv(env, bonus, seed=seed, weight=SB3_WEIGHT, config=config_of(bonus))
    settings = SB3_PPO if agent == "sb3-ppo" else SB3_DQN
    weight = None if bonus == "none" else SB3_WEIGHT
    return {
        "settings": {**settings, "num_envs": num_envs, "weight": weight},
        **run_sb3(agent, env, settings, steps=world.steps_of(agent), seed=seed),
    }


def jobs() -> list[Job]:
    """The series, seeds outermost; then true counts with the first seed, in all worlds that were tried."""
    series = [
        (world, agent, bonus, seed)
        for seed in SEEDS
        for world in SERIES
        for agent in AGENTS
        for bonus in BONUSES
    ]
    limits = [(world, agent, COUNT, 0) for world in SERIES for agent in AGENTS]
    lethal = [("lethal-maze", agent, COUNT, 0) for agent in AGENTS if agent != "sb3-dqn"]
    return [_job(*one) for one in (*series, *limits, *lethal)]


def _job(world: str, agent: str, bonus: str, seed: int) -> Job:
    return Job(
        key=f"{world}_{agent}_{bonus}_{seed}",
        seed=seed,
        settings={"agent": agent, "bonus": bonus},
        measure=partial(run, agent, bonus, WORLDS[world], seed),
    )


def world_of(row: Row) -> str:
    """Returns the name of the world that a run was in."""
    env_id, lethal = row["world"]["env_id"], row["world"].get("lethal", False)
    return next(name for name, world in WORLDS.items() if (world.env_id, world.lethal) == (env_id, lethal))


SHOWN = {"places": "places visited", "episodic_return": "return"}
"""What is drawn of a run, and what it is called."""


def plot(rows: Sequence[Row]) -> Any:
    """Draws coverage and return of every run; a line of panels only where most have something to show."""
    shown = [row for row in rows if world_of(row) in SERIES]
    worlds = list(dict.fromkeys(map(world_of, shown)))
    every = [(world, key) for world in worlds for key in SHOWN]
    lines = [line for line in every if _is_telling(shown, *line)] or every
    figure = new_figure(WIDTH, 2.2 * len(lines) + 0.6)
    axes = figure.subplots(len(lines), len(AGENTS), squeeze=False, sharey="row")
    colours = colours_of((*BONUSES, COUNT))
    for panels, (world, key) in zip(axes, lines, strict=True):
        for agent, panel in zip(AGENTS, panels, strict=True):
            for row in shown:
                if (world_of(row), row["agent"]) == (world, agent):
                    _draw_run(panel, row, key, colours)
            panel.set_title(agent, fontsize=10)
            steps_below(panel)
        panels[0].set_ylabel(f"{world}: {SHOWN[key]}")
    legend_beside(figure)
    return figure


def _draw_run(panel: Any, row: Row, key: str, colours: dict[str, str]) -> None:
    steps = [point["step"] for point in row["curve"]]
    label = row["bonus"] if row["bonus"] != "none" else "no bonus"
    panel.plot(steps, [p[key] for p in row["curve"]], color=colours[row["bonus"]], label=label, linewidth=1.2)


def _is_telling(rows: Sequence[Row], world: str, key: str) -> bool:
    """Whether at least half of the agents have more than one flat line to show in a world."""
    agents = {row["agent"] for row in rows if world_of(row) == world}
    moving = {
        row["agent"]
        for row in rows
        if world_of(row) == world and len({point[key] for point in row["curve"]}) > 1
    }
    return 2 * len(moving) >= len(agents)


def describe(rows: Sequence[Row]) -> list[str]:
    """The runs as rows of Markdown, seeds side by side."""
    lines = [
        "| world | agent | bonus | seeds | places at half time | at the end | return | first goal | CPU s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    named = [{**row, "name": world_of(row)} for row in rows]
    groups = by(named, "name", "agent", "bonus")
    for world in WORLDS:
        for agent in AGENTS:
            for bonus in (*BONUSES, COUNT):
                group = groups.get((world, agent, bonus), [])
                if group:
                    columns = (world, agent, bonus, *(", ".join(texts) for texts in zip(*map(_cells, group))))
                    lines.append(f"| {' | '.join(columns)} |")
    return lines


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


FIGURE = Figure(
    name="drop_in_learning",
    paper='not in the paper (RECODE on other agents; App. "Multitask" has V-MPO)',
    claim="RECODE helps agents of other libraries too.",
    laptop_cost="62 runs of 1 to 15 CPU-minutes; docs/drop_in/learning.md has each",
    paper_cost="not planned",
    folder=Path("results/drop_in"),
    jobs=jobs,
    plot=plot,
    describe=describe,
    images=Path("docs/images"),
)
