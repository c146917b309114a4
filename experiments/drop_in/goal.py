"""Is a goal that was found also kept? Agents that people have, with and without a bonus.

Worlds: the key and the door of `examples/key_and_door.py`, the Disco Maze whose walls only block, one
layout of MiniGrid's MultiRoom, and a point among walls with continuous actions. Agents: SB3's PPO with a
value head for the bonus, `examples/ppo_recode.py`, SB3's DQN and SAC with the replay that is scored by
today's memory. Bonuses: none, RND, RECODE-AP and true counts, the limit of what counting can give. Success
is the share of episodes with a reward over the last fifth of the steps.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch import nn

from experiments.drawing import WIDTH, colours_of, legend_beside, new_figure, steps_below
from experiments.drop_in.counts import counting_callback, counting_replay
from experiments.drop_in.loops import ROOT, load_example, monitored, run_example, run_sb3
from experiments.figure import Figure
from experiments.jobs import SEEDS, Job, Row, by
from softcount.integrations import PLAIN_WORLD, SMALL_WORLD, IntrinsicRewardConfig
from softcount.integrations.critic import CriticConfig
from softcount.integrations.schedules import Fading

BONUSES = ("none", "RND", "RECODE-AP", "COUNT")


@dataclass(frozen=True, kw_only=True)
class World:
    """One task, how long agents may try, and how much the bonus weighs."""

    env_id: str
    options: dict[str, Any]
    agents: tuple[str, ...] = ("ppo_recode", "sb3-dqn")
    steps: int = 102_400
    off_policy_steps: int = 60_000
    weight: float = 0.1  # in SB3's agents; ppo_recode.py weighs the same, 1 beside 10
    is_plain: bool = True  # seen without noise
    stagger: int = 0  # how long episodes last, where PPO's environments would all restart together
    discount: float = 0.95  # of the bonus, in PPO
    is_image: bool = False  # PPO then has an encoder for grids
    seeds: dict[str, tuple[int, ...]] = field(default_factory=lambda: dict.fromkeys(BONUSES, SEEDS))

    def steps_of(self, agent: str) -> int:
        return self.steps if "ppo" in agent else self.off_policy_steps

    def config_of(self, bonus: str) -> IntrinsicRewardConfig:
        """The settings of a bonus, the same in every agent."""
        small = PLAIN_WORLD if self.is_plain else SMALL_WORLD
        return small if "RECODE" in bonus else IntrinsicRewardConfig()


WORLDS = {
    "key": World(
        env_id="key_and_door:KeyAndDoor-v0",
        options={"env_kwargs": {"size": 9}},
        agents=("sb3-ppo", "ppo_recode", "sb3-dqn"),
    ),
    "maze": World(
        env_id="disco-maze",
        options={"maze_size": 15},
        steps=204_800,
        is_plain=False,
        stagger=500,
        discount=0.99,
        is_image=True,
    ),
    "multiroom": World(env_id="MiniGrid-MultiRoom-N4-S5-v1", options={"layout_seed": 1}),
    "point": World(env_id="point-maze/s", options={}, agents=("sb3-sac",)),
}
FEW_SEEDS = {"none": (0,), "RND": SEEDS, "RECODE-AP": SEEDS, "COUNT": SEEDS}


def twice(name: str, *agents: str, seeds: dict[str, tuple[int, ...]] | None = None) -> World:
    """A world with twice the steps."""
    world = WORLDS[name]
    return replace(world, agents=agents, steps=2 * world.steps, seeds=seeds or FEW_SEEDS)


WORLDS |= {  # is it the budget that is missing?
    "point-x2": twice("point", "sb3-ppo"),
    "multiroom-x2": twice("multiroom", "sb3-ppo"),
    "maze-x2": twice("maze", "sb3-ppo", "ppo_recode", seeds={**FEW_SEEDS, "RND": (0,)}),
} | {  # one setting for all: that of worlds with noise, which pays later
    f"{name}-late": replace(WORLDS[name], agents=("ppo_recode",), is_plain=False, seeds={"RECODE-AP": SEEDS})
    for name in ("key", "multiroom")
}

PPO: dict[str, Any] = {
    "n_steps": 16,
    "batch_size": 128,
    "n_epochs": 4,
    "learning_rate": 1e-3,
    "ent_coef": 0.02,
    "gamma": 0.99,
    "policy_kwargs": {"net_arch": [128, 128], "activation_fn": nn.ReLU},
}
DQN: dict[str, Any] = {
    "learning_rate": 1e-3,
    "buffer_size": 50_000,
    "learning_starts": 1_000,
    "batch_size": 128,
    "train_freq": 2,
    "gradient_steps": 8,
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
FADE_AFTER = 20
"""Rewards of the game after which the bonus weighs half in SB3's agents."""
SETTINGS = {"sb3-ppo": PPO, "sb3-dqn": DQN, "sb3-sac": SAC}


def run(agent: str, bonus: str, world: World, seed: int) -> dict[str, Any]:
    """Trains one agent once; returns its curve and what it was run with."""
    examples = str(ROOT / "examples")  # where the key and the door are
    if examples not in sys.path:
        sys.path.append(examples)
    train = _run_ppo_recode if agent == "ppo_recode" else _run_sb3
    has_config = bonus not in ("none", "COUNT")
    return {
        "bonus_config": repr(world.config_of(bonus)) if has_config else None,
        "world": asdict(world),
        "steps": world.steps_of(agent),
        **train(agent, bonus, world, seed),
    }


def _run_ppo_recode(agent: str, bonus: str, world: World, seed: int) -> dict[str, Any]:
    return run_example(
        env_id=world.env_id,
        bonus=bonus,
        seed=seed,
        total_timesteps=world.steps_of(agent),
        plain_world=world.is_plain,
        stagger=world.stagger,
        int_gamma=world.discount,
        **world.options,
    )


def _run_sb3(agent: str, bonus: str, world: World, seed: int) -> dict[str, Any]:
    env = monitored(maker(world), agent, seed, world.stagger if agent == "sb3-ppo" else 0)
    weight = Fading(world.weight, after=FADE_AFTER)
    options = {"seed": seed, "weight": weight, "config": world.config_of(bonus)}
    callbacks, kwargs = [], {}
    if bonus != "none" and agent == "sb3-ppo":
        callbacks = [_callback(bonus, options | {"critic": CriticConfig(discount=world.discount)})]
    elif bonus != "none":
        kwargs = _replay(bonus, options)
    if world.is_image:
        kwargs["policy_kwargs"] = _grid_policy(agent)
    settings = SETTINGS[agent] | kwargs
    steps = world.steps_of(agent)
    return {
        "settings": {
            **_plain(SETTINGS[agent]),
            "num_envs": env.num_envs,
            "weight": None if bonus == "none" else repr(weight),
        },
        **run_sb3(agent, env, settings, steps=steps, seed=seed, callbacks=callbacks),
    }


def _plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings as a file can hold them."""
    return {
        name: value if isinstance(value, int | float) else repr(value) for name, value in settings.items()
    }


def _grid_policy(agent: str) -> dict[str, Any]:
    """What lets SB3's policy and values see where they are in a maze."""
    from softcount.integrations.sb3_torso import TorsoExtractor

    policy: dict[str, Any] = {"features_extractor_class": TorsoExtractor, "net_arch": []}
    return policy | ({"share_features_extractor": False} if agent == "sb3-ppo" else {})


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
    example: Any = load_example()
    args = example.Args(env_id=world.env_id, **world.options)
    return lambda: example.make_env(args)


def jobs() -> list[Job]:
    """Every world, agent and bonus, the first seed of all before the second."""
    return [
        Job(
            key=f"{name}_{agent}_{bonus}_{seed}",
            seed=seed,
            settings={"name": name, "agent": agent, "bonus": bonus},
            measure=partial(run, agent, bonus, world, seed),
        )
        for seed in SEEDS
        for name, world in WORLDS.items()
        for agent in world.agents
        for bonus in world.seeds
        if seed in world.seeds[bonus]
    ]


def plot(rows: Sequence[Row]) -> Any:
    """Returns of every run over its steps: a panel for each agent in each world."""
    groups = by(rows, "name", "agent")
    shown = [
        (name, agent) for name, world in WORLDS.items() for agent in world.agents if (name, agent) in groups
    ]
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    figure = new_figure(WIDTH, 2.2 * lines + 0.6)
    panels = figure.subplots(lines, columns, squeeze=False, sharey=True).ravel()
    colours = colours_of(BONUSES)
    for panel, (name, agent) in zip(panels, shown, strict=False):
        panel.set_title(f"{name}, {agent}", fontsize=10)
        steps_below(panel)
        for row in groups[name, agent]:
            _draw(panel, row, colours[row["bonus"]])
    for panel in panels[::columns]:
        panel.set_ylabel("return")
    for panel in panels[len(shown) :]:
        panel.remove()
    legend_beside(figure)
    return figure


def _draw(panel: Any, row: Row, colour: str) -> None:
    """One run as a line."""
    steps = [point["step"] for point in row["curve"]]
    returns = [point["episodic_return"] for point in row["curve"]]
    label = "no bonus" if row["bonus"] == "none" else row["bonus"]
    panel.plot(steps, returns, color=colour, label=label, linewidth=1.2)


def describe(rows: Sequence[Row]) -> list[str]:
    """The runs as rows of Markdown, seeds side by side."""
    lines = [
        "| world | agent | steps | bonus | seeds | places | first goal | success, last fifth | CPU s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    groups = by(rows, "name", "agent", "bonus")
    for name, world in WORLDS.items():
        for agent in world.agents:
            for bonus in world.seeds:
                group = groups.get((name, agent, bonus), [])
                texts = [", ".join(column) for column in zip(*map(_cells, group))] or ["not run", *[""] * 4]
                steps = f"{world.steps_of(agent):,}"
                lines.append(f"| {' | '.join((name, agent, steps, bonus, *texts))} |")
    return lines


def _cells(row: Row) -> tuple[str, ...]:
    """What the table says of one run."""
    first = row["first_success"]
    return (
        str(row["seed"]),
        str(row["curve"][-1]["places"]),
        "never" if first is None else f"{first / 1000:.0f}k",
        f"{row['success']:.2f}",
        f"{row['cpu_seconds']:.0f}",
    )


FIGURE = Figure(
    name="drop_in_goal",
    paper="not in the paper",
    claim="A goal that a bonus leads to is kept, in agents of other libraries too.",
    laptop_cost="138 runs of 4 to 140 CPU seconds; docs/drop_in/goal.md has each",
    paper_cost="not planned",
    folder=Path("results/drop_in_goal"),
    jobs=jobs,
    plot=plot,
    describe=describe,
    images=Path("docs/images"),
)
