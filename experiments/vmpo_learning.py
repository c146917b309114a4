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

    python -m experiments.vmpo_learning [WORLD ...] [--seeds 0 1 2]

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

from experiments.figures.jobs import SEEDS, Job, Row, new_figure, per_seed, read, run, save_picture
from experiments.meme_learning import Forgetful
from softcount.agents.vmpo.loss import LossConfig
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.config import RunConfig
from softcount.launch.local import LocalLoop
from softcount.presets import LAPTOP, VMPO_LAPTOP, suited
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
LETHAL = replace(VMPO_LAPTOP, env_options={"size": 11, "layout": 0, "observation": "palette"}, steps=400_000)

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
    "mountain-car": {
        "RECODE-AP": Variant(config=CAR),
        "no bonus": Variant(config=replace(CAR, agent="VMPO")),
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
        "RECODE-AP, one trace of each": Variant(config=_vmpo(replace(MAZES, num_envs=32), batch_size=4)),
        "true counts": Variant(config=replace(MAZES, agent="VMPO-COUNT")),
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
        "true counts": Variant(config=replace(LETHAL, agent="VMPO-COUNT")),
        "no bonus": Variant(config=replace(LETHAL, agent="VMPO")),
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
    pay = PaidByPlace(loop.roles.learner.agent)
    points = []
    for number in range(1, POINTS + 1):
        while loop.num_steps < config.steps * number / POINTS:
            loop.step()
        points.append({**_point(loop), "pay_by_place": pay.take()})
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
    for colour, name in zip(("C0", "C3", "C1", "C2", "C7"), WORLDS[world], strict=False):
        own = [row for row in rows if row["variant"] == name]
        if not own:
            continue
        curves = np.array([[_of_tasks(point[measure]) for point in row["points"]] for row in own])
        steps = np.mean([[point["step"] for point in row["points"]] for row in own], axis=0) / 1000
        is_known = ~np.isnan(curves)  # an episode may outlast a twentieth of a run
        for curve, known in zip(curves, is_known, strict=True):
            panel.plot(steps[known], curve[known], colour, alpha=0.3, linewidth=0.8)
        some = is_known.any(0)
        mean = np.nanmean(curves[:, some], axis=0)
        panel.plot(steps[some], mean, colour, linewidth=2, label=f"{name} ({len(own)})")
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
