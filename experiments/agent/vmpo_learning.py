"""V-MPO learns small worlds, each with a control that must fail.

world          needs                            control
catch, chain   learning at all                  no preference (η → ∞, all of D): it clones itself
CartPole       the same, further                the same
cue memory     the recurrent state              the state is forgotten at every step
trust region   the multiplier α                 α held at 0
point maze     the bonus, continuous actions    no bonus
mountain car   the bonus where pushing costs    no bonus
wandering      a stroll that costs no goal      β so large that a stroll is worth more than the goal
four mazes     one network for four tasks       no bonus
unequal pay    units of values for each task    one set of units for all; advantages as they are
generality     any agent                        MEME and V-MPO, each without bonus
noise          a bonus that noise cannot feed   the same panel, but still
lethal         a path where a slip ends it all  no bonus

softcount figure vmpo_WORLD [--seeds 0 1 2] [--only VARIANT]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments import runs
from experiments.agent.forgetting import forget
from experiments.drawing import colours_of, draw_seeds, legend_beside, new_figure, steps_below
from experiments.figure import Figure
from experiments.jobs import SEEDS, Job, Row, per_seed
from softcount.agents.vmpo.loss import LossConfig
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.config import RunConfig
from softcount.presets import LAPTOP, VMPO_LAPTOP, suited
from softcount.representations.embedding import EmbeddingConfig
from softcount.runs.run import Run
from softcount.torsos import GridConfig, MlpConfig, SmallConfig

FOLDER, RUNS, IMAGES = Path("results/vmpo"), Path("runs/vmpo"), Path("docs/images")
POINTS = 20
"""Points of a curve."""
MLP = MlpConfig(hidden_sizes=(64,))


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One agent in one world."""

    config: RunConfig
    """The run, but for its seed."""
    forgets: bool = False
    """Forget the recurrent state at every step, in acting and in learning."""
    seeds: tuple[int, ...] = SEEDS
    """Which runs there are."""


def _vmpo(config: RunConfig, *, loss: Mapping[str, Any] | None = None, **fields: Any) -> RunConfig:
    """Changes what V-MPO reads; `loss` are fields of its losses."""
    losses: LossConfig = replace(config.vmpo.loss, **(loss or {}))
    return replace(config, vmpo=replace(config.vmpo, loss=losses, **fields))


def _network(config: RunConfig, **fields: Any) -> RunConfig:
    return _vmpo(config, network=replace(config.vmpo.network, **fields))


def _on_vectors(config: RunConfig) -> RunConfig:
    """For worlds that show a vector."""
    embedding = EmbeddingConfig(torso=MlpConfig(hidden_sizes=(64, 64)), dim=16, layer_norm=True)
    representation = replace(config.representation, embedding=embedding)
    return _network(replace(config, env_options={}, representation=representation), torso=MLP)


def _atoms(num: int) -> RecodeBonusConfig:
    """A memory for so many atoms."""
    recode = VMPO_LAPTOP.recode
    return replace(recode, memory=replace(recode.memory, size=num, warmup_atoms=num))


def _wide(config: RunConfig) -> RunConfig:
    """Four times as many units in every layer of the agent."""
    return _network(config, torso=SmallConfig(images=GridConfig(hidden_sizes=(512,))), head_size=256)


def _slower(config: RunConfig) -> RunConfig:
    """A third of the learning rate."""
    return _vmpo(config, optimiser=replace(config.vmpo.optimiser, learning_rate=1e-3))


def _above_mean(config: RunConfig) -> RunConfig:
    """Counts the bonus above its running mean."""
    return _vmpo(config, loss={"intrinsic_baseline": "mean"})


def _regions(config: RunConfig) -> RunConfig:
    """A trust region for each task."""
    return _vmpo(config, loss={"trust_region": "task"})


def _apart(config: RunConfig) -> RunConfig:
    """Every task has its own better half, temperature and trust region."""
    return _vmpo(config, loss={"top_half": "task", "temperature": "task", "trust_region": "task"})


def _every_fourth(config: RunConfig) -> RunConfig:
    """The representation learns from every fourth batch."""
    return replace(config, trainer=replace(config.trainer, update_every=4))


def _clone(config: RunConfig) -> RunConfig:
    """Every action of a batch is as good as every other."""
    return _vmpo(config, loss={"top_fraction": 1.0, "temperature_start": 1e6}, dual_learning_rate=1e-12)


PLAIN = _vmpo(
    replace(_on_vectors(VMPO_LAPTOP), agent="VMPO", num_envs=16, evaluation_episodes=16),
    loss={"discount": 0.99, "temperature_limit": 0.1},
    unroll_length=10,
    batch_size=8,
    target_update_period=2,
)
CATCH = _vmpo(
    replace(PLAIN, env="toy/catch", steps=40_000),
    optimiser=replace(PLAIN.vmpo.optimiser, learning_rate=1e-2),
    batch_size=4,
    target_update_period=10,
)
CHAIN = replace(PLAIN, env="toy/chain", steps=40_000)
CART_POLE = _vmpo(
    replace(PLAIN, env="gym/CartPole-v1", steps=200_000), unroll_length=20, target_update_period=4
)
CUE = _vmpo(
    _network(replace(PLAIN, env="toy/cue-memory", num_envs=32, steps=400_000), core="lstm"),
    loss={"temperature_limit": 0.3},
    optimiser=replace(PLAIN.vmpo.optimiser, learning_rate=2e-3),
    unroll_length=24,
    batch_size=16,
    target_update_period=4,
)
HASTY = _vmpo(
    replace(CART_POLE, steps=100_000),
    loss={"temperature_limit": 1.0},
    optimiser=replace(CART_POLE.vmpo.optimiser, learning_rate=1e-2),
    target_update_period=10,
)
SQUARE = replace(
    _on_vectors(VMPO_LAPTOP),
    env="point-maze/s",
    steps=300_000,
    recode=_atoms(800),
)
CAR = _vmpo(
    replace(SQUARE, env="gym/MountainCarContinuous-v0", steps=200_000),
    loss={"discount": 0.99, "intrinsic_weight": 1.0},
)
LAYOUTS = (0, 1, 2, 3)
MAZES = replace(
    _vmpo(VMPO_LAPTOP, batch_size=16),  # each task has what it has alone: 32 copies, 4 traces of a batch
    num_envs=128,
    env=",".join(f"disco-maze:layout={layout}" for layout in LAYOUTS),
    env_options={"size": 9, "lethal": False, "observation": "palette", "max_steps": 200},
    steps=600_000,
    recode=_atoms(1000),
)
UNEQUAL = replace(
    MAZES,
    env_options={**MAZES.env_options, "size": 7},  # easily found, so that only learning is in question
    steps=300_000,
    env=",".join(f"disco-maze:layout={layout}:goal_reward={100 if layout == 3 else 1}" for layout in LAYOUTS),
)
ONE_MAZE = replace(VMPO_LAPTOP, env="disco-maze:layout=1", env_options=MAZES.env_options, steps=150_000)
ONE_MAZE_MEME = replace(LAPTOP, env="disco-maze:layout=1", env_options=MAZES.env_options, steps=150_000)

NOISES = ("still", "fresh", "drift", "channel")
NOISY = replace(
    VMPO_LAPTOP,
    env="noisy-disco-maze",
    env_options={"size": 11, "layout": 1, "lethal": False, "goal_reward": 0.0, "max_steps": 200},
    steps=80_000,
)
COUNTED_MAZES = replace(MAZES, agent="VMPO-COUNT")
LETHAL = replace(VMPO_LAPTOP, env_options={"size": 11, "layout": 0, "observation": "palette"}, steps=400_000)
COUNTED_LETHAL = replace(LETHAL, agent="VMPO-COUNT")

WORLDS: dict[str, dict[str, Variant]] = {
    "catch": {"V-MPO": Variant(config=CATCH), "clones itself": Variant(config=_clone(CATCH))},
    "chain": {"V-MPO": Variant(config=CHAIN), "clones itself": Variant(config=_clone(CHAIN))},
    "cart-pole": {"V-MPO": Variant(config=CART_POLE), "clones itself": Variant(config=_clone(CART_POLE))},
    "cue-memory": {"V-MPO": Variant(config=CUE), "state forgotten": Variant(config=CUE, forgets=True)},
    "trust-region": {
        "V-MPO": Variant(config=HASTY),
        "alpha held at 0": Variant(config=_vmpo(HASTY, loss={"kl_limit": 1e9, "kl_multiplier_start": 1e-8})),
    },
    "point-maze": {
        "RECODE-AP": Variant(config=SQUARE),
        "RECODE-AP, every fourth": Variant(config=_every_fourth(SQUARE)),
        "no bonus": Variant(config=replace(SQUARE, agent="VMPO")),
        "true counts": Variant(config=replace(SQUARE, agent="VMPO-COUNT")),
    },
    "mountain-car": {
        "RECODE-AP": Variant(config=CAR),
        "RECODE-AP, every fourth": Variant(config=_every_fourth(CAR)),
        "no bonus": Variant(config=replace(CAR, agent="VMPO")),
    },
    "wandering": {
        "beta 3": Variant(config=_vmpo(SQUARE, loss={"intrinsic_weight": 3.0})),
        "beta 3, above its mean": Variant(
            config=_vmpo(SQUARE, loss={"intrinsic_weight": 3.0, "intrinsic_baseline": "mean"})
        ),
    },
    "four-mazes": {
        "RECODE-AP, tasks apart": Variant(config=_apart(MAZES)),
        "RECODE-AP, wide, tasks apart": Variant(config=_apart(_wide(MAZES))),
        "true counts, tasks apart": Variant(config=_apart(COUNTED_MAZES)),
        "RECODE-AP, three times as long": Variant(config=replace(MAZES, steps=1_800_000)),
        "RECODE-AP, wide": Variant(config=_wide(MAZES)),
        "RECODE-AP, wide, slower": Variant(config=_slower(_wide(MAZES))),
        "true counts, wide": Variant(config=_wide(COUNTED_MAZES)),
        "RECODE-AP": Variant(config=MAZES),
        "RECODE-AP, a region for each": Variant(config=_regions(MAZES)),
        "true counts, a region for each": Variant(config=_regions(COUNTED_MAZES)),
        "RECODE-AP, above its mean": Variant(config=_above_mean(MAZES)),
        "RECODE-AP, one trace of each": Variant(config=_vmpo(replace(MAZES, num_envs=32), batch_size=4)),
        "true counts": Variant(config=COUNTED_MAZES),
        "no bonus": Variant(config=replace(MAZES, agent="VMPO")),
    },
    "unequal-pay": {
        "units for each task": Variant(config=UNEQUAL),
        "one for all": Variant(config=_vmpo(UNEQUAL, value_per_task=False)),
        "raw advantages": Variant(config=_vmpo(UNEQUAL, loss={"normalise_advantages": False})),
    },
    "generality": {
        "VMPO-RECODE-AP": Variant(config=ONE_MAZE),
        "VMPO": Variant(config=replace(ONE_MAZE, agent="VMPO")),
        "MEME-RECODE-AP": Variant(config=ONE_MAZE_MEME),
        "MEME": Variant(config=replace(ONE_MAZE_MEME, agent="MEME")),
    },
    "noise": {
        f"{bonus} {noise}": Variant(
            config=suited(replace(NOISY, env_options={**NOISY.env_options, "noise": noise}), f"VMPO-{bonus}")
        )
        for bonus in ("RECODE-AP", "RND", "BYOL-Explore")
        for noise in NOISES
    },
    "lethal": {
        "RECODE-AP": Variant(config=LETHAL),
        "RECODE-AP, above its mean": Variant(config=_above_mean(LETHAL)),
        "true counts": Variant(config=COUNTED_LETHAL),
        "true counts, above its mean": Variant(config=_above_mean(COUNTED_LETHAL)),
        "no bonus": Variant(config=replace(LETHAL, agent="VMPO")),
    },
}
WATCHED = (
    "kl_distance",
    "kl_distance_most",
    "mean_distance",
    "kl_multiplier",
    "eta",
    "entropy",
    "effective_samples",
    "value_scale",
)


def config_of(variant: Variant, seed: int) -> RunConfig:
    """The run of a seed, with a report for each point of its curve."""
    steps = variant.config.steps
    return replace(
        variant.config, seed=seed, overlap=False, report_every=max(1, steps // POINTS), evaluate_every=0
    )


class PaidByPlace:
    """What a learner is paid, and where: how much of the pay's variance lies between places."""

    def __init__(self, agent: Any) -> None:
        self._rows: list[tuple[Any, Any]] = []
        update = agent.update

        def keep(sequence: Any, weights: Any = None, intrinsic_targets: Any = None) -> Any:
            steps = sequence.steps
            paid = np.asarray(steps.intrinsic if intrinsic_targets is None else intrinsic_targets)
            is_paid = ~np.asarray(steps.is_first)[1:]
            place = np.asarray(steps.extras.get("place", np.zeros(paid.shape, np.int64)))
            self._rows.append((place[1:][is_paid], paid[1:][is_paid]))
            return update(sequence, weights, intrinsic_targets)

        agent.update = keep

    def take(self) -> float | None:
        """Variance of the places' mean pay over that of all pay since the last call; None without any pay."""
        rows, self._rows = self._rows, []
        place = np.concatenate([np.zeros(0, np.int64), *(part for part, _ in rows)])
        paid = np.concatenate([np.zeros(0), *(part for _, part in rows)])
        if len(paid) == 0 or paid.var() == 0:
            return None
        _, place = np.unique(place, return_inverse=True)
        means = np.bincount(place, paid) / np.bincount(place)
        return round(float(means[place].var() / paid.var()), 4)


@dataclass
class Points(runs.Watch):
    """Keeps one point of the curve per report: episodes by task, places, pay, and what the losses watch."""

    forgets: bool = False
    pay: PaidByPlace | None = None

    def prepare(self, run: Run) -> None:
        self.pay = PaidByPlace(run.loop.roles.learner.agent)
        if self.forgets:
            agent: Any = run.loop.roles.learner.agent
            network: Any = run.loop.roles.inference.network
            forget(agent.online, network)

    def ask(self, run: Run, metrics: Mapping[str, float]) -> Row:
        names = run.loop.roles.actor.task_names()
        suffixes = [f"/{name}" for name in names] if len(names) > 1 else [""]
        return {
            "updates": run.loop.num_updates,
            "return": [_rounded(metrics.get(f"charts/episodic_return{x}")) for x in suffixes],
            "success": [_rounded(metrics.get(f"charts/success_rate{x}")) for x in suffixes],
            "length": [_rounded(metrics.get(f"charts/episodic_length{x}")) for x in suffixes],
            "intrinsic_per_step": round(metrics.get("intrinsic/reward_mean", 0.0), 5),
            "places": metrics.get("coverage/places"),
            "pay_by_place": None if self.pay is None else self.pay.take(),
            **{name: round(metrics[f"losses/{name}"], 6) for name in WATCHED if f"losses/{name}" in metrics},
        }

    def say(self, answer: Row) -> str:
        return f"success {answer['success']}, return {answer['return']}"

    def sum_up(self, run: Run, answers: Sequence[Row]) -> Row:
        config = run.config
        return {"steps": config.steps, "agent": config.agent, "env": config.env, "points": list(answers)}


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 4)


def jobs_of(world: str) -> list[Job]:
    """The runs of one world, all variants of a seed before the next seed."""
    variants = WORLDS[world]
    seeds = sorted({seed for variant in variants.values() for seed in variant.seeds})
    return [_job(world, name, seed) for seed in seeds for name in variants if seed in variants[name].seeds]


def _job(world: str, name: str, seed: int) -> Job:
    key = f"{world}__{name.replace(' ', '-').replace(',', '')}__seed{seed}"
    variant = WORLDS[world][name]
    return Job(
        key=key,
        seed=seed,
        settings={"world": world, "variant": name},
        measure=lambda: runs.train(config_of(variant, seed), RUNS / key, watch=Points(variant.forgets)),
    )


def last_fifth(row: Row, measure: str) -> float:
    """Mean over the tasks of what a run had in its last fifth."""
    points = [point[measure] for point in row["points"][-POINTS // 5 :]]
    return float(np.mean([x for point in points for x in point if x is not None]))


def describe(world: str, rows: Sequence[Row]) -> list[str]:
    """The last fifth of every run, one line per variant."""
    lines = []
    for name in WORLDS[world]:
        own = [row for row in rows if row["variant"] == name]
        if own:
            success = per_seed([last_fifth(row, "success") for row in own])
            returns = per_seed([last_fifth(row, "return") for row in own])
            lines.append(f"{name}: success {success}; return {returns}")
    return lines


def plot(world: str, rows: Sequence[Row]) -> Any:
    """Every run thin, the mean over seeds thick; several tasks are averaged."""
    measure = SHOWN.get(world, "success")
    figure = new_figure(6.0, 3.6)
    panel = figure.subplots()
    for name, colour in colours_of(WORLDS[world]).items():
        own = [row for row in rows if row["variant"] == name]
        if own:
            curves = np.array([[_of_tasks(point[measure]) for point in row["points"]] for row in own])
            steps = np.mean([[point["step"] for point in row["points"]] for row in own], axis=0)
            draw_seeds(panel, steps, curves, colour, f"{name} ({len(own)})")
    steps_below(panel)
    panel.set_title(world)
    panel.set_ylabel({"success": "share of episodes with reward", "return": "return"}.get(measure, measure))
    legend_beside(figure, columns=2)
    panel.spines[["top", "right"]].set_visible(False)
    return figure


def _of_tasks(numbers: float | Sequence[float | None]) -> float:
    if not isinstance(numbers, Sequence):
        return float(numbers)
    known = [x for x in numbers if x is not None]
    return float(np.mean(known)) if known else float("nan")


SHOWN = {"catch": "return", "cart-pole": "return", "cue-memory": "return", "trust-region": "kl_distance"}
"""What a world's picture shows where it is not the success."""


CLAIMS = {
    "catch": "V-MPO learns; with every action as good as every other it does not.",
    "chain": "V-MPO learns; with every action as good as every other it does not.",
    "cart-pole": "V-MPO learns; with every action as good as every other it does not.",
    "cue-memory": "V-MPO remembers a cue with its recurrent state, and not without.",
    "trust-region": "The multiplier keeps the policy within its trust region; held at 0, it leaves.",
    "point-maze": "With RECODE's bonus the goal of a continuous maze is found, without it is not.",
    "mountain-car": "Where pushing costs, RECODE's bonus finds the goal; without it, nothing is done.",
    "wandering": "A bonus that is worth more than the goal loses it; counted above its mean it does not.",
    "four-mazes": "One V-MPO network with RECODE-AP solves four mazes at once; without a bonus it does not.",
    "unequal-pay": "Tasks that pay very differently need units of values of their own.",
    "generality": "The same bonus helps MEME and V-MPO in the same maze.",
    "noise": "Who takes prediction errors for novelty is paid for noise; who counts what it controls is not.",
    "lethal": "Where one slip ends an episode, the goal is found with the bonus; without it, it is not.",
}


def _figure_of(world: str) -> Figure:
    is_multi_task = world == "four-mazes"
    return Figure(
        name=f"vmpo_{world}",
        paper="Fig. 19 (in small: four mazes at once)"
        if is_multi_task
        else "the agent of Fig. 19, in small worlds",
        claim=CLAIMS[world],
        laptop_cost=f"{len(jobs_of(world))} runs, 10 seconds to 10 CPU-minutes each",
        paper_cost="6 runs on all tasks of DM-HARD-8" if is_multi_task else "not in the paper",
        folder=FOLDER,
        jobs=partial(jobs_of, world),
        plot=partial(plot, world),
        describe=partial(describe, world),
        images=IMAGES,
    )


FIGURES = tuple(_figure_of(world) for world in WORLDS)
