"""From a configuration to roles: the one place where everything is put together.

What is special about an agent stands in one function of `AGENTS`; the rest is common to all.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from softcount.agents.meme.acting import ActingMeme, MixtureBehaviour
from softcount.agents.meme.agent import Meme
from softcount.agents.meme.bandit import Bandit
from softcount.agents.meme.policies import epsilon_ladder
from softcount.agents.protocols import ActingNetwork, Agent, Behaviour
from softcount.agents.vmpo.acting import ActingVmpo, SamplingBehaviour
from softcount.agents.vmpo.agent import Vmpo
from softcount.bonuses.make import BonusConfig, Place
from softcount.config import RunConfig
from softcount.envs.make import make, parse_tasks
from softcount.launch.local import Roles
from softcount.launch.memory_plan import MemoryPlan
from softcount.replay.queue import OnPolicyQueue
from softcount.replay.sequences import SequenceReplay
from softcount.representations.features import Representation
from softcount.representations.make import make_representation
from softcount.representations.trainer import RepresentationTrainer
from softcount.roles.actor import Actor
from softcount.roles.evaluator import Evaluator
from softcount.roles.inference import Inference
from softcount.roles.learner import Learner
from softcount.roles.replay_server import ReplayServer
from softcount.taxonomy import Recipe, parse
from softcount.tensors import to_arrays
from softcount.types import Source, VectorEnv


class Seeds(NamedTuple):
    """Independent seeds for everything that draws, from the one of the run."""

    agent: int
    representation: int
    memory: int
    replay: int
    actor: int
    env: int
    bandits: int
    evaluation: int


class Parts(NamedTuple):
    """What an agent brings."""

    agent: Agent
    network: ActingNetwork
    behaviour: Behaviour
    source: Source


def seeds_of(seed: int) -> Seeds:
    states = np.random.SeedSequence(seed).generate_state(len(Seeds._fields))
    return Seeds(*(int(state) for state in states))


def parse_agent(name: str) -> Recipe:
    """Reads the agent's name and makes sure that it can be trained here."""
    recipe = parse(name)
    if recipe.agent not in AGENTS:
        raise ValueError(
            f"{name!r} cannot be trained: the name has no agent; "
            "expected a name like 'MEME-RECODE-AP' or 'VMPO-RECODE-AP'"
        )
    return recipe


def make_env(config: RunConfig, num_envs: int, seed: int) -> VectorEnv:
    return make(config.env, num_envs=num_envs, seed=seed, **config.env_options)


def build(config: RunConfig) -> Roles:
    """Builds all roles of a run."""
    recipe, seeds = parse_agent(config.agent), seeds_of(config.seed)
    if config.meme.relabel and recipe.bonus in ("episodic", "ngu"):
        raise ValueError(
            f"relabel is on, but the pay of {config.agent} depends on the episode and cannot be asked later; "
            "switch it off with --meme.no-relabel"
        )
    env = make_env(config, config.num_envs, seeds.env)
    parts = AGENTS[str(recipe.agent)](config, env, seeds)
    representation = build_representation(recipe, env, config, seeds.representation)
    trainer = None if representation is None else RepresentationTrainer(representation, config.trainer)
    dim = None if trainer is None else trainer.representation.dim
    plan = plan_memory(config, recipe, env.task_names, dim, seeds.memory)
    bonus = plan.make_bonus()
    inference = Inference(parts.network, copy.deepcopy(representation), env.action_spec, config.device)
    actor = Actor(
        env,
        parts.behaviour,
        state=inference.initial_state(config.num_envs),
        feature_state=inference.initial_feature_state(config.num_envs),
        seed=seeds.actor,
    )
    if recipe.bonus == "place_count" and actor.timestep.place is None:
        raise ValueError(f"true counts need a world that knows its places; {config.env} does not")
    is_late = bonus is not None and bonus.paid_in == "learning"  # one owner each
    return Roles(
        actor=actor,
        inference=inference,
        memory=plan.serve(bonus),
        replay=parts.source,
        learner=Learner(
            parts.agent,
            trainer,
            bonus=bonus if is_late else None,
            terminal_observations=config.terminal_observations,
        ),
    )


def build_meme(config: RunConfig, env: VectorEnv, seeds: Seeds) -> Parts:
    """MEME: a replay, a bandit and an ε for each environment."""
    meme = config.meme
    agent = Meme(env.observation_spec, env.action_spec, meme, seed=seeds.agent, device=config.device)
    network = ActingMeme(env.observation_spec, env.action_spec, meme)
    bandit_seeds = np.random.SeedSequence(seeds.bandits).generate_state(config.num_envs)
    behaviour = MixtureBehaviour(
        [Bandit(meme.network.num_mixtures, meme.bandit, seed=int(s)) for s in bandit_seeds],
        epsilon_ladder(config.num_envs, meme.epsilon_base, meme.epsilon_power),
        evaluation_epsilon=meme.evaluation_epsilon,
    )
    state = tuple(to_arrays(network.initial_state(1), copy=True))
    replay = SequenceReplay(meme.replay, config.num_envs, env.observation_spec, state=state)
    source = ReplayServer(replay, meme.batch_size, seeds.replay, importance_exponent=meme.importance_exponent)
    return Parts(agent, network, behaviour, source)


def build_vmpo(config: RunConfig, env: VectorEnv, seeds: Seeds) -> Parts:
    """V-MPO: a queue of fresh unrolls, and a policy that actions are drawn from."""
    vmpo, num_tasks = config.vmpo, len(env.task_names)
    agent = Vmpo(
        env.observation_spec,
        env.action_spec,
        vmpo,
        num_tasks=num_tasks,
        seed=seeds.agent,
        device=config.device,
    )
    num_values = num_tasks if vmpo.value_per_task else 1
    network = ActingVmpo(env.observation_spec, env.action_spec, vmpo.network, num_tasks=num_values)
    behaviour = SamplingBehaviour(agent.distribution, env.num_envs, evaluates_greedily=vmpo.evaluation_greedy)
    queue = OnPolicyQueue(
        vmpo.unroll_length, vmpo.batch_size, env.num_envs, seed=seeds.replay, is_strict=vmpo.strict
    )
    queue.share_of(env.task_ids)  # says now what the first batch would
    return Parts(agent, network, behaviour, queue)


def plan_memory(
    config: RunConfig, recipe: Recipe, task_names: tuple[str, ...], dim: int | None, seed: int
) -> MemoryPlan:
    """What the memory of a run is made of; another process can build it without torch."""
    settings = BonusConfig(
        recode=config.recode,
        episodic=config.episodic,
        ngu=config.ngu,
        surprise=config.surprise,
        engine=config.engine,
        num_threads=config.memory_threads,
    )
    return MemoryPlan(
        kind=recipe.bonus,
        bonus=settings,
        place=Place(dim=dim, representation=recipe.representation, num_envs=config.num_envs, seed=seed),
        tasks=task_names if config.memory_per_task else (),
        terminal_observations=config.terminal_observations,
    )


def build_representation(
    recipe: Recipe, env: VectorEnv, config: RunConfig, seed: int
) -> Representation | None:
    """The representation that a name asks for; None where it asks for none."""
    if recipe.representation == "none":
        return None
    kind = recipe.representation_kind
    settings = config.representation
    module = make_representation(kind, env.observation_spec, env.action_spec, settings, seed=seed)
    return module.to(config.device)


def build_evaluator(config: RunConfig, inference: Inference) -> Evaluator:
    """Builds an evaluator with environments of its own that plays what acts."""
    episodes, num_tasks = config.evaluation_episodes, len(parse_tasks(config.env))
    if episodes % num_tasks:
        raise ValueError(
            f"evaluation_episodes is {episodes}, but {config.env!r} names {num_tasks} tasks; "
            f"expected a multiple of {num_tasks}, such as {(episodes // num_tasks + 1) * num_tasks}"
        )
    env = make_env(config, config.evaluation_episodes, seeds_of(config.seed).evaluation)
    return Evaluator(env, inference)


AGENTS: dict[str, Callable[[RunConfig, VectorEnv, Seeds], Parts]] = {"meme": build_meme, "vmpo": build_vmpo}
