"""V-MPO learns small worlds, each with a control that must fail.

    world          needs                            control
    catch, chain   learning at all                  no preference (η → ∞, all of D): it clones itself
    CartPole       the same, further                the same
    cue memory     the recurrent state              the state is forgotten at every step
    trust region   the multiplier α                 α held at 0
    point maze     the bonus, continuous actions    no bonus
    wandering      a stroll that costs no goal      β so large that a stroll is worth more than the goal
    four mazes     one network for four tasks       no bonus
    unequal pay    units of values for each task    one set of units for all
    generality     any agent                        MEME and V-MPO, each without bonus

    python -m experiments.agent.vmpo_learning [WORLD ...] [--seeds 0 1 2]

writes one file per run to `results/vmpo`, and `docs/images/vmpo_WORLD.png`. Runs that are there are not
made again.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.agent.meme_learning import Forgetful
from experiments.jobs import SEEDS, Job, Row, new_figure, per_seed, read, run, save_picture
from softcount.agents.vmpo.loss import LossConfig
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.config import RunConfig
from softcount.launch.local import LocalLoop
from softcount.presets import LAPTOP, VMPO_LAPTOP
from softcount.representations.embedding import EmbeddingConfig
from softcount.runs.run import make_loop
from softcount.tensors import module_state
from softcount.torsos import MlpConfig

FOLDER, IMAGES = Path("results/vmpo"), Path("docs/images")
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
    replace(PLAIN, env="gym/CartPole-v1", steps=100_000), unroll_length=20, target_update_period=4
)
CUE = _vmpo(
    _network(replace(PLAIN, env="toy/cue-memory", num_envs=32, steps=400_000), core="lstm"),
    loss={"temperature_limit": 0.3},
    optimiser=replace(PLAIN.vmpo.optimiser, learning_rate=2e-3),
    unroll_length=24,
    batch_size=16,
    target_update_period=4,
)
HASTY = _vmpo(CATCH, optimiser=replace(CATCH.vmpo.optimiser, learning_rate=3e-2))
SQUARE = replace(
    _on_vectors(VMPO_LAPTOP),
    env="point-maze/s",
    steps=300_000,
    recode=_atoms(800),
)
LAYOUTS = (0, 1, 2, 3)
MAZES = replace(
    VMPO_LAPTOP,
    env=",".join(f"disco-maze:layout={layout}" for layout in LAYOUTS),
    env_options={"size": 9, "lethal": False, "observation": "palette", "max_steps": 200},
    steps=300_000,
    recode=_atoms(1000),
)
UNEQUAL = replace(
    MAZES,
    env=",".join(f"disco-maze:layout={layout}:goal_reward={100 if layout == 3 else 1}" for layout in LAYOUTS),
)
ONE_MAZE = replace(MAZES, env="disco-maze:layout=1", steps=150_000, recode=VMPO_LAPTOP.recode)
ONE_MAZE_MEME = replace(LAPTOP, env="disco-maze:layout=1", env_options=MAZES.env_options, steps=150_000)

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
        "no bonus": Variant(config=replace(SQUARE, agent="VMPO")),
        "true counts": Variant(config=replace(SQUARE, agent="VMPO-COUNT")),
    },
    "wandering": {
        "beta 3": Variant(config=_vmpo(SQUARE, loss={"intrinsic_weight": 3.0})),
        "beta 3, above its mean": Variant(
            config=_vmpo(SQUARE, loss={"intrinsic_weight": 3.0, "intrinsic_baseline": "mean"})
        ),
    },
    "four-mazes": {
        "RECODE-AP": Variant(config=MAZES),
        "RECODE-AP, above its mean": Variant(config=_vmpo(MAZES, loss={"intrinsic_baseline": "mean"})),
        "no bonus": Variant(config=replace(MAZES, agent="VMPO")),
    },
    "unequal-pay": {
        "units for each task": Variant(config=UNEQUAL),
        "one for all": Variant(config=_vmpo(UNEQUAL, value_per_task=False)),
    },
    "generality": {
        "VMPO-RECODE-AP": Variant(config=ONE_MAZE),
        "VMPO": Variant(config=replace(ONE_MAZE, agent="VMPO")),
        "MEME-RECODE-AP": Variant(config=ONE_MAZE_MEME),
        "MEME": Variant(config=replace(ONE_MAZE_MEME, agent="MEME")),
    },
}
WATCHED = (
    "kl_distance",
    "mean_distance",
    "kl_multiplier",
    "eta",
    "entropy",
    "effective_samples",
    "value_scale",
)


def measure(variant: Variant, seed: int) -> dict[str, Any]:
    """Trains one agent; returns its curve, one point per twentieth of the run."""
    torch.set_num_threads(1)
    config = replace(variant.config, seed=seed, overlap=False)
    loop = make_loop(config)
    if variant.forgets:
        agent: Any = loop.roles.learner.agent
        for network in (agent.online, loop.roles.inference.network):
            network.core = Forgetful(network.core)
        agent.published = module_state(agent.online, copy=True)
    points = []
    for number in range(1, POINTS + 1):
        while loop.num_steps < config.steps * number / POINTS:
            loop.step()
        points.append(_point(loop))
    return {"steps": config.steps, "agent": config.agent, "env": config.env, "points": points}


def _point(loop: LocalLoop) -> dict[str, Any]:
    """What happened since the last point: episodes by task, places, and what the losses watch."""
    episodes, means = loop.roles.actor.take_episodes(), loop.means.take()
    tasks = loop.roles.actor.env.task_names
    of_task = [[episode for episode in episodes if episode.task == task] for task in range(len(tasks))]
    return {
        "step": loop.num_steps,
        "updates": loop.num_updates,
        "return": [_mean([e.extrinsic_return for e in own]) for own in of_task],
        "success": [_mean([float(e.extrinsic_return > 0) for e in own]) for own in of_task],
        "length": [_mean([e.length for e in own]) for own in of_task],
        "intrinsic_per_step": round(means.get("intrinsic/reward_mean", 0.0), 5),
        "places": None if loop.coverage is None else loop.coverage.num_visited,
        **{name: round(means[f"losses/{name}"], 6) for name in WATCHED if f"losses/{name}" in means},
    }


def _mean(numbers: Sequence[float]) -> float | None:
    return round(float(np.mean(numbers)), 4) if numbers else None


def jobs_of(world: str, seeds: Sequence[int], variants: Sequence[str] = ()) -> list[Job]:
    """The runs of one world, all variants (or these) of a seed before the next seed."""
    return [
        Job(
            key=f"{world}__{name.replace(' ', '-').replace(',', '')}__seed{seed}",
            seed=seed,
            settings={"world": world, "variant": name},
            measure=_measuring(variant, seed),
        )
        for seed in seeds
        for name, variant in WORLDS[world].items()
        if not variants or name in variants
    ]


def _measuring(variant: Variant, seed: int) -> Callable[[], dict[str, Any]]:
    return lambda: measure(variant, seed)


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
            lines.append(f"{world:12} {name:22} success {success}   return {returns}")
    return lines


def draw(world: str, rows: Sequence[Row], measure: str) -> Any:
    """Every run thin, the mean over seeds thick; several tasks are averaged."""
    figure = new_figure(5.0, 3.2)
    panel = figure.subplots()
    for colour, name in zip(("C0", "C3", "C1", "C2"), WORLDS[world], strict=False):
        own = [row for row in rows if row["variant"] == name]
        if not own:
            continue
        curves = np.array([[_of_tasks(point[measure]) for point in row["points"]] for row in own])
        steps = np.mean([[point["step"] for point in row["points"]] for row in own], axis=0) / 1000
        panel.plot(steps, curves.T, colour, alpha=0.3, linewidth=0.8)
        panel.plot(steps, np.nanmean(curves, axis=0), colour, linewidth=2, label=f"{name} ({len(own)})")
    panel.set_title(world)
    panel.set_xlabel("thousand actor steps")
    panel.set_ylabel({"success": "share of episodes with reward", "return": "return"}.get(measure, measure))
    panel.legend(fontsize=7, frameon=False)
    panel.spines[["top", "right"]].set_visible(False)
    return figure


def _of_tasks(numbers: float | Sequence[float | None]) -> float:
    if not isinstance(numbers, Sequence):
        return float(numbers)
    known = [x for x in numbers if x is not None]
    return float(np.mean(known)) if known else float("nan")


SHOWN = {"catch": "return", "cart-pole": "return", "cue-memory": "return", "trust-region": "kl_distance"}
"""What a world's picture shows where it is not the success."""


def main(
    worlds: Sequence[str], seeds: Sequence[int], variants: Sequence[str] = (), *, plot_only: bool = False
) -> None:
    """Runs what is missing, and draws."""
    for world in worlds:
        if not plot_only:
            run(jobs_of(world, seeds, variants), FOLDER)
        rows = read(jobs_of(world, SEEDS), FOLDER)
        if rows:
            print("\n".join(describe(world, rows)))
            save_picture(draw(world, rows, SHOWN.get(world, "success")), f"vmpo_{world}", IMAGES)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("worlds", nargs="*", metavar="WORLD", default=list(WORLDS), help=", ".join(WORLDS))
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--variants", nargs="+", default=(), help="only these of each world")
    parser.add_argument("--plot", action="store_true", help="run nothing, only draw what is there")
    arguments = parser.parse_args()
    main(arguments.worlds, arguments.seeds, arguments.variants, plot_only=arguments.plot)
