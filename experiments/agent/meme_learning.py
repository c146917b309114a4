"""Four small worlds, each learned by MEME and missed by MEME without the one part it needs.

    world        needs                     control that must fail
    cue memory   the recurrent state       the state is zeroed at every step: chance
    chain        a ladder of discounts     one short discount: takes the little near by
    two worlds   a bandit per environment  one mixture acts always: worse, whichever it is
    catch        policy distillation       switched off: plays at random

    python -m experiments.agent.meme_learning            all runs, a few minutes on one core

writes `results/meme/learning.json` and `docs/images/meme_learning.png`.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from experiments.jobs import new_figure, save_picture
from softcount.agents.meme.acting import ActingMeme, FixedMixture, MixtureBehaviour
from softcount.agents.meme.agent import Meme, MemeConfig
from softcount.agents.meme.bandit import Bandit, BanditConfig, best_arm
from softcount.agents.meme.loss import LossConfig
from softcount.agents.meme.network import NetworkConfig
from softcount.agents.meme.policies import epsilon_ladder
from softcount.envs.toys import Catch, Chain, CueMemory, ToyVector, TwoWorlds, World
from softcount.launch.local import LocalLoop, Roles
from softcount.measure.machine import machine
from softcount.optimiser import OptimiserConfig
from softcount.replay.config import ReplayConfig
from softcount.replay.sequences import SequenceReplay
from softcount.roles.actor import Actor
from softcount.roles.inference import Inference
from softcount.roles.learner import Learner
from softcount.roles.memory_server import MemoryServer
from softcount.roles.replay_server import ReplayServer
from softcount.torsos import MlpConfig

NUM_ENVS = 16
SEEDS = (0, 1, 2)
CURVE_POINTS = 20


@dataclass(frozen=True, kw_only=True)
class Task:
    """One run: a world and an agent for it."""

    world: World
    """The rules of the environment."""
    steps: int
    """Vector steps of `NUM_ENVS` copies each."""
    config: MemeConfig
    """The agent."""
    bandit: BanditConfig = field(default_factory=BanditConfig)
    """The meta-controller."""
    epsilons: tuple[float, float] = (0.4, 7.0)
    """Base and power of the actors' ladder of exploration noise."""
    mixture: int | None = None
    """Always let this mixture act, instead of the bandits' choice."""
    forgets: bool = False
    """Zero the recurrent state at every step, in acting and in learning."""
    own_arms: bool = False
    """Evaluate every copy with the arm that its own bandit likes best, instead of one arm for all."""


@dataclass
class Curve:
    """Mean return per episode after so many actor steps."""

    steps: list[int] = field(default_factory=list)
    returns: list[float] = field(default_factory=list)

    @property
    def final(self) -> float:
        """Mean over the last fifth of the run."""
        return float(np.mean(self.returns[-CURVE_POINTS // 5 :]))


class Forgetful(nn.Module):
    """A core that starts every step from the initial state."""

    def __init__(self, core: nn.Module) -> None:
        super().__init__()
        self.core = core

    def initial_state(self, batch: int) -> Any:
        return self.core.initial_state(batch)  # type: ignore[operator]

    def forward(self, inputs: Tensor, state: Any, is_first: Tensor) -> Any:
        return self.core(inputs, state, torch.ones_like(is_first))


def _agent(**loss: Any) -> MemeConfig:
    """A small agent without intrinsic reward; `loss` are fields of its losses."""
    return MemeConfig(
        network=NetworkConfig(
            torso=MlpConfig(hidden_sizes=(32,)), core="none", core_size=32, head_size=32, num_mixtures=4
        ),
        loss=replace(LossConfig(discount_max=0.997, discount_min=0.7), **loss),
        optimiser=OptimiserConfig(learning_rate=2e-3, weight_decay=1e-3),
        target_update_period=50,
    )


def _recurrent(config: MemeConfig) -> MemeConfig:
    return replace(config, network=replace(config.network, core="lstm"))


def _two_mixtures(config: MemeConfig) -> MemeConfig:
    return replace(config, network=replace(config.network, num_mixtures=2))


CUE = Task(world=CueMemory(), steps=4000, config=_recurrent(_agent(discount_min=0.97)))
CHAIN = Task(world=Chain(), steps=1600, config=_agent(), epsilons=(0.4, 3.0))
TWO_WORLDS = Task(
    world=TwoWorlds(),
    steps=2000,
    config=_two_mixtures(_agent()),
    bandit=BanditConfig(discount=0.97),
    epsilons=(0.9, 60.0),  # two or three actors that find both ends, all others nearly greedy
    own_arms=True,
)
CATCH = Task(world=Catch(), steps=1500, config=_agent(discount_min=0.97))

TASKS: dict[str, dict[str, Task]] = {
    "cue memory": {"MEME": CUE, "state zeroed": replace(CUE, forgets=True)},
    "chain": {"MEME": CHAIN, "one short discount": replace(CHAIN, config=_agent(discount_max=0.7))},
    "two worlds": {
        "MEME": TWO_WORLDS,
        "only the far-sighted arm": replace(TWO_WORLDS, mixture=0),
        "only the short-sighted arm": replace(TWO_WORLDS, mixture=1),
    },
    "catch": {
        "MEME": CATCH,
        "no distillation": replace(CATCH, config=_agent(discount_min=0.97, distillation_weight=0.0)),
    },
}


def build(task: Task, seed: int) -> Roles:
    """Puts the roles of a run together."""
    env = ToyVector(task.world, num_envs=NUM_ENVS, seed=seed)
    agent = Meme(env.observation_spec, env.action_spec, task.config, seed=seed)
    network = ActingMeme(env.observation_spec, env.action_spec, task.config)
    inference = Inference(network, None, env.action_spec)
    if task.forgets:
        for one in (agent.online, agent.target, network):
            assert one.core is not None
            one.core = Forgetful(one.core)  # type: ignore[assignment]
    num_arms = task.config.network.num_mixtures
    bandits = [Bandit(num_arms, task.bandit, seed=1000 * seed + n) for n in range(NUM_ENVS)]
    behaviour: Any = MixtureBehaviour(bandits, epsilon_ladder(NUM_ENVS, *task.epsilons))
    if task.mixture is not None:
        behaviour = FixedMixture(task.mixture, NUM_ENVS, 0.0)
        behaviour.epsilon = epsilon_ladder(NUM_ENVS, *task.epsilons)
    actor = Actor(
        env,
        behaviour,
        state=inference.initial_state(NUM_ENVS),
        feature_state=(),
        seed=seed,
    )
    replay = SequenceReplay(
        ReplayConfig(trace_length=20, period=10, capacity=2000, replay_ratio=8.0, min_traces=32),
        NUM_ENVS,
        env.observation_spec,
        state=inference.initial_state(1),
    )
    return Roles(actor, inference, MemoryServer(None), ReplayServer(replay, 16, seed), Learner(agent, None))


def run(task: Task, seed: int) -> Curve:
    """Trains one agent; returns its learning curve."""
    roles = build(task, seed)
    loop = LocalLoop(roles, overlap=False)
    curve = Curve()
    for n in range(1, task.steps + 1):
        loop.step()
        if n % (task.steps // CURVE_POINTS) == 0:
            curve.steps.append(loop.num_steps)
            curve.returns.append(evaluate(task, roles, seed=n))
    return curve


def evaluate(task: Task, roles: Roles, seed: int) -> float:
    """Plays two greedy episodes in copies of all environments; returns their mean return."""
    played: Any = roles.actor.behaviour
    if task.mixture is not None:
        arms = [task.mixture] * NUM_ENVS
    elif task.own_arms:
        arms = [best_arm(bandit.statistics()) for bandit in played.bandits]
    else:
        arms = [played.best_mixture()] * NUM_ENVS
    env = ToyVector(task.world, num_envs=2 * NUM_ENVS, seed=seed)
    actor = Actor(
        env,
        FixedMixture(np.array(arms * 2), env.num_envs, 0.0),
        state=roles.inference.initial_state(env.num_envs),
        feature_state=(),
        seed=seed,
    )
    is_over, total = np.zeros(env.num_envs, bool), np.zeros(env.num_envs)
    while not is_over.all():
        total += np.where(is_over, 0.0, actor.timestep.reward)
        is_over |= actor.timestep.is_last
        actor.step(roles.inference(actor.request()), np.zeros(env.num_envs, np.float32))
    return float(total.mean())


def main(out: Path, images: Path, seeds: tuple[int, ...]) -> None:
    """Runs everything; writes the curves and their picture."""
    torch.set_num_threads(1)
    results: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for world, variants in TASKS.items():
        results[world] = {}
        for variant, task in variants.items():
            results[world][variant] = []
            for seed in seeds:
                started = time.perf_counter()
                curve = run(task, seed)
                seconds = round(time.perf_counter() - started, 1)
                results[world][variant].append({"seed": seed, "seconds": seconds, **vars(curve)})
                print(f"{world:12} {variant:28} seed {seed}: {curve.final:6.3f} in {seconds} s", flush=True)
    out.mkdir(parents=True, exist_ok=True)
    record = {
        "command": "python -m experiments.agent.meme_learning",
        "machine": machine(),
        "runs": results,
    }
    (out / "learning.json").write_text(json.dumps(record, indent=1))
    plot(out, images)


def plot(out: Path, images: Path) -> None:
    """Draws what was run."""
    results = json.loads((out / "learning.json").read_text())["runs"]
    save_picture(draw(results), "meme_learning", images)


def draw(results: dict[str, dict[str, list[dict[str, Any]]]]) -> Any:
    """Draws one panel per world: every seed thin, their mean thick."""
    figure = new_figure(3.4 * len(results), 3.0)
    panels = figure.subplots(1, len(results))
    for panel, (world, variants) in zip(panels, results.items(), strict=True):
        for colour, (variant, runs) in zip(("C0", "C3", "C1"), variants.items(), strict=False):
            curves = np.array([one["returns"] for one in runs])
            steps = np.mean([one["steps"] for one in runs], axis=0) / 1000
            panel.plot(steps, curves.T, colour, alpha=0.25, linewidth=0.8)
            panel.plot(steps, curves.mean(0), colour, linewidth=2, label=variant)
        panel.set_title(world)
        panel.set_xlabel("thousand actor steps")
        panel.legend(fontsize=7, frameon=False)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("mean return per episode")
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=Path("results/meme"))
    parser.add_argument("--images", type=Path, default=Path("docs/images"))
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--plot", action="store_true", help="run nothing, only draw what is there")
    arguments = parser.parse_args()
    if arguments.plot:
        plot(arguments.out, arguments.images)
    else:
        main(arguments.out, arguments.images, tuple(arguments.seeds))
