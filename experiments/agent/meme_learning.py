"""Four small worlds, each learned by MEME and missed by MEME without the one part it needs.

world        needs                     control that must fail
cue memory   the recurrent state       the state is zeroed at every step: chance
chain        a ladder of discounts     one short discount: takes the little near by
two worlds   a bandit per environment  one mixture acts always: worse, whichever it is
catch        policy distillation       switched off: plays at random
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments import runs
from experiments.agent.forgetting import forget
from experiments.drawing import COLOURS, draw_seeds, new_figure, steps_below
from experiments.figure import Figure
from experiments.jobs import SEEDS, Job, Row, by, per_seed
from softcount.agents.meme.acting import FixedMixture
from softcount.agents.meme.bandit import BanditConfig
from softcount.agents.meme.loss import LossConfig
from softcount.agents.meme.network import NetworkConfig
from softcount.config import MemeRunConfig, RunConfig, with_fields
from softcount.launch.build import make_env
from softcount.launch.local import Roles
from softcount.optimiser import OptimiserConfig
from softcount.replay.config import ReplayConfig
from softcount.roles.actor import Actor
from softcount.runs.run import Run
from softcount.torsos import MlpConfig

RUNS = Path("runs/meme_learning")
POINTS = 20
"""Points of a curve."""

AGENT = MemeRunConfig(
    network=NetworkConfig(
        torso=MlpConfig(hidden_sizes=(32,)), core="none", core_size=32, head_size=32, num_mixtures=4
    ),
    loss=LossConfig(discount_max=0.997, discount_min=0.7),
    optimiser=OptimiserConfig(learning_rate=2e-3, weight_decay=1e-3),
    target_update_period=50,
    replay=ReplayConfig(trace_length=20, period=10, capacity=2000, replay_ratio=8.0, min_traces=32),
    batch_size=16,
)
"""A small agent without intrinsic reward."""


@dataclass(frozen=True, kw_only=True)
class Task(runs.Watch):
    """One run: a world and an agent for it, and how it is evaluated at every point of its curve."""

    config: RunConfig
    """The run, but for its seed."""
    mixture: int | None = None
    """Always let this mixture act, instead of the bandits' choice."""
    forgets: bool = False
    """Zero the recurrent state at every step, in acting and in learning."""
    own_arms: bool = False
    """Evaluate every copy with the arm that its own bandit likes best, instead of one arm for all."""

    def config_of(self, seed: int) -> RunConfig:
        """The run of a seed, with a report for each point of its curve."""
        return replace(self.config, seed=seed, report_every=self.config.steps // POINTS)

    def prepare(self, run: Run) -> None:
        roles = run.loop.roles
        agent, network, played = (
            _any(x) for x in (roles.learner.agent, roles.inference.network, roles.actor.behaviour)
        )
        if self.forgets:
            forget(agent.online, agent.target, network)
        if self.mixture is not None:
            for bandit in played.bandits:
                bandit.choose = lambda: self.mixture
            played.mixture = np.full_like(played.mixture, self.mixture)  # of the episodes that have begun

    def ask(self, run: Run, metrics: Mapping[str, float]) -> Row:
        return {"return": self.evaluate(run.config, run.loop.roles, seed=run.loop.num_updates)}

    def say(self, answer: Row) -> str:
        return f"return {answer['return']:.3f}"

    def sum_up(self, run: Run, answers: Sequence[Row]) -> Row:
        return {"points": list(answers)}

    def evaluate(self, config: RunConfig, roles: Roles, seed: int) -> float:
        """Plays two greedy episodes in copies of all environments; returns their mean return."""
        played, num = _any(roles.actor.behaviour), config.num_envs
        if self.mixture is not None:
            arms = [self.mixture] * num
        elif self.own_arms:
            arms = [bandit.best_arm() for bandit in played.bandits]
        else:
            arms = [played.best_mixture()] * num
        env = make_env(config, 2 * num, seed)
        behaviour = FixedMixture(np.array(arms * 2), env.num_envs, 0.0)
        state = roles.inference.initial_state(env.num_envs)
        actor = Actor(env, behaviour, state=state, feature_state=(), seed=seed)
        is_over, total = np.zeros(env.num_envs, bool), np.zeros(env.num_envs)
        while not is_over.all():
            total += np.where(is_over, 0.0, actor.timestep.reward)
            is_over |= actor.timestep.is_last
            actor.step(roles.inference(actor.request()), np.zeros(env.num_envs, np.float32))
        return float(total.mean())


def _any(role: Any) -> Any:
    return role


def _run(env: str, steps: int, changes: Mapping[str, Any]) -> RunConfig:
    """A run of the small agent in a toy; `changes` are fields of `meme` by their path."""
    config = RunConfig(
        agent="MEME", env=f"toy/{env}", num_envs=16, steps=steps, meme=AGENT, overlap=False, evaluate_every=0
    )
    return with_fields(config, {f"meme.{path}": value for path, value in changes.items()})


CUE = Task(config=_run("cue-memory", 62_000, {"loss.discount_min": 0.97, "network.core": "lstm"}))
CHAIN = _run("chain", 25_000, {"epsilon_power": 3.0})
TWO_WORLDS = Task(
    config=_run(
        "two-worlds",
        31_000,
        {
            "network.num_mixtures": 2,
            "bandit": BanditConfig(discount=0.97),
            "epsilon_base": 0.9,  # two or three actors that find both ends, all others nearly greedy
            "epsilon_power": 60.0,
        },
    ),
    own_arms=True,
)
CATCH = _run("catch", 22_000, {"loss.discount_min": 0.97})

TASKS: dict[str, dict[str, Task]] = {
    "cue memory": {"MEME": CUE, "state zeroed": replace(CUE, forgets=True)},
    "chain": {
        "MEME": Task(config=CHAIN),
        "one short discount": Task(config=with_fields(CHAIN, {"meme.loss.discount_max": 0.7})),
    },
    "two worlds": {
        "MEME": TWO_WORLDS,
        "only the far-sighted arm": replace(TWO_WORLDS, mixture=0),
        "only the short-sighted arm": replace(TWO_WORLDS, mixture=1),
    },
    "catch": {
        "MEME": Task(config=CATCH),
        "no distillation": Task(config=with_fields(CATCH, {"meme.loss.distillation_weight": 0.0})),
    },
}


def jobs() -> list[Job]:
    """Every world with every variant, seeds outermost."""
    return [
        _job(world, variant, seed)
        for seed in SEEDS
        for world, variants in TASKS.items()
        for variant in variants
    ]


def _job(world: str, variant: str, seed: int) -> Job:
    key = f"{world}__{variant}__seed{seed}".replace(" ", "-")
    task = TASKS[world][variant]
    return Job(
        key=key,
        seed=seed,
        settings={"world": world, "variant": variant},
        measure=lambda: runs.train(task.config_of(seed), RUNS / key, watch=task),
    )


def last_fifth(row: Row) -> float:
    """The result of a run: its mean return over the last fifth of its curve."""
    return float(np.mean([point["return"] for point in row["points"][-POINTS // 5 :]]))


def plot(rows: Sequence[Row]) -> Any:
    """Draws one panel per world."""
    worlds = by(rows, "world")
    figure = new_figure(3.4 * len(worlds), 3.0)
    panels = figure.subplots(1, len(worlds), squeeze=False)[0]
    for panel, (world, own) in zip(panels, worlds.items(), strict=True):
        for colour, (variant, group) in zip(COLOURS, by(own, "variant").items()):
            curves = np.array([[point["return"] for point in row["points"]] for row in group])
            steps = np.mean([[point["step"] for point in row["points"]] for row in group], axis=0)
            draw_seeds(panel, steps, curves, colour, variant)
        steps_below(panel)
        panel.set_title(world)
        panel.legend(fontsize=7, frameon=False)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("mean return per episode")
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    """The last fifth of every run, one line per variant."""
    return [
        f"{world}, {variant}: return {per_seed(map(last_fifth, group))}"
        for (world, variant), group in by(rows, "world", "variant").items()
    ]


FIGURE = Figure(
    name="meme_learning",
    paper="§4, the base agent",
    claim="Every part of MEME is needed by a small world made for it.",
    laptop_cost="27 runs of 5 to 60 CPU-seconds",
    paper_cost="the same",
    folder=Path("results/meme/learning"),
    jobs=jobs,
    plot=plot,
    describe=describe,
    images=Path("docs/images"),
)
