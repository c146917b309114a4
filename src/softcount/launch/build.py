"""From a configuration to roles: the one place where everything is put together.

Each role has a function of its own, because roles may live in processes of their own. What is special
about an agent stands in the functions of its entry of `AGENTS`; the rest is common to all.
"""

from __future__ import annotations

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
from softcount.roles.actor import Actor, num_places
from softcount.roles.evaluator import Evaluator
from softcount.roles.inference import Inference
from softcount.roles.learner import Learner
from softcount.roles.replay_server import ReplayServer
from softcount.taxonomy import Recipe, parse
from softcount.tensors import to_arrays
from softcount.types import ActionSpec, Array, ObservationSpec, Source, VectorEnv


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


class Specs(NamedTuple):
    """What roles need to know of a world before they see it."""

    observation: ObservationSpec
    action: ActionSpec
    task_names: tuple[str, ...]


class Makers(NamedTuple):
    """What an agent brings, each part made apart from the others: they may live in different processes."""

    agent: Callable[[RunConfig, Specs, Seeds], Agent]
    network: Callable[[RunConfig, Specs], ActingNetwork]
    behaviour: Callable[[RunConfig, Specs, Seeds, Array], Behaviour]  # of the environments with these numbers
    source: Callable[[RunConfig, Specs, Seeds], Source]


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


def specs_of(env: VectorEnv) -> Specs:
    return Specs(env.observation_spec, env.action_spec, env.task_names)


def look_at_world(config: RunConfig) -> tuple[Specs, int | None]:
    """Returns specs and number of places of a world, from one copy of each task, which are closed again."""
    env = make_env(config, len(parse_tasks(config.env)), 0)
    try:
        return specs_of(env), num_places(env, env.reset(0))
    finally:
        env.close()


def build(config: RunConfig) -> Roles:
    """Builds all roles of a run, in one process."""
    check(config)
    env = make_env(config, config.num_envs, seeds_of(config.seed).env)
    specs = specs_of(env)
    inference = build_inference(config, specs)
    return Roles(
        actor=build_actor(config, specs, inference, env=env),
        inference=inference,
        memory=plan_of(config, specs, inference.dim).build(),
        replay=build_source(config, specs),
        learner=build_learner(config, specs),
    )


def check(config: RunConfig) -> None:
    """Refuses what cannot be trained."""
    recipe = parse_agent(config.agent)
    if config.meme.relabel and recipe.bonus in ("episodic", "ngu"):
        raise ValueError(
            f"relabel is on, but the pay of {config.agent} depends on the episode and cannot be asked later; "
            "switch it off with --meme.no-relabel"
        )


def build_inference(config: RunConfig, specs: Specs) -> Inference:
    """Networks that act; they wait for a learner's parameters."""
    recipe, seeds = parse_agent(config.agent), seeds_of(config.seed)
    network = AGENTS[str(recipe.agent)].network(config, specs)
    representation = build_representation(recipe, specs, config, seeds.representation)
    return Inference(network, representation, specs.action, config.device)


def build_actor(
    config: RunConfig,
    specs: Specs,
    inference: Inference,
    env_ids: Array | None = None,
    *,
    env: VectorEnv | None = None,
) -> Actor:
    """An actor of some environments, numbered among those of all actors, or of all of them.

    What each environment draws and plays follows from its number.
    """
    recipe, seeds = parse_agent(config.agent), seeds_of(config.seed)
    ids = np.arange(config.num_envs) if env_ids is None else np.asarray(env_ids)
    if env is None:
        env = make_env(config, len(ids), _seed_of_share(seeds.env, ids))
    actor = Actor(
        env,
        AGENTS[str(recipe.agent)].behaviour(config, specs, seeds, ids),
        state=inference.initial_state(len(ids)),
        feature_state=inference.initial_feature_state(len(ids)),
        seed=_seed_of_share(seeds.actor, ids),
        env_ids=ids,
    )
    if recipe.bonus == "place_count" and actor.timestep.place is None:
        raise ValueError(f"true counts need a world that knows its places; {config.env} does not")
    return actor


def _seed_of_share(seed: int, env_ids: Array) -> int:
    """The run's own seed for whoever holds the first environment, another for each of the others."""
    first = int(env_ids[0])
    return int(np.random.SeedSequence([seed, first]).generate_state(1)[0]) if first else seed


def plan_of(config: RunConfig, specs: Specs, dim: int | None) -> MemoryPlan:
    """What the memory that all actors share is made of; `dim` is the size of embeddings."""
    return plan_memory(config, parse_agent(config.agent), specs.task_names, dim, seeds_of(config.seed).memory)


def build_source(config: RunConfig, specs: Specs) -> Source:
    """Where the learner's batches come from."""
    return AGENTS[str(parse_agent(config.agent).agent)].source(config, specs, seeds_of(config.seed))


def build_learner(config: RunConfig, specs: Specs) -> Learner:
    """What learns: agent, representation, and a bonus that is paid in learning."""
    recipe, seeds = parse_agent(config.agent), seeds_of(config.seed)
    agent = AGENTS[str(recipe.agent)].agent(config, specs, seeds)
    representation = build_representation(recipe, specs, config, seeds.representation)
    trainer = None if representation is None else RepresentationTrainer(representation, config.trainer)
    bonus = None
    if recipe.bonus == "surprise":  # the only kind that may be paid in learning; one owner each
        bonus = plan_of(config, specs, None).make_bonus()
    return Learner(
        agent,
        trainer,
        bonus=bonus if bonus is not None and bonus.paid_in == "learning" else None,
        terminal_observations=config.terminal_observations,
    )


def _meme(config: RunConfig, specs: Specs, seeds: Seeds) -> Agent:
    return Meme(specs.observation, specs.action, config.meme, seed=seeds.agent, device=config.device)


def _acting_meme(config: RunConfig, specs: Specs) -> ActingNetwork:
    return ActingMeme(specs.observation, specs.action, config.meme)


def _mixture_behaviour(config: RunConfig, specs: Specs, seeds: Seeds, env_ids: Array) -> Behaviour:
    """A bandit and an ε for each environment."""
    meme = config.meme
    bandit_seeds = np.random.SeedSequence(seeds.bandits).generate_state(config.num_envs)[env_ids]
    return MixtureBehaviour(
        [Bandit(meme.network.num_mixtures, meme.bandit, seed=int(s)) for s in bandit_seeds],
        epsilon_ladder(config.num_envs, meme.epsilon_base, meme.epsilon_power)[env_ids],
        evaluation_epsilon=meme.evaluation_epsilon,
    )


def _replay(config: RunConfig, specs: Specs, seeds: Seeds) -> Source:
    meme = config.meme
    state = tuple(to_arrays(_acting_meme(config, specs).initial_state(1), copy=True))
    replay = SequenceReplay(meme.replay, config.num_envs, specs.observation, state=state)
    return ReplayServer(replay, meme.batch_size, seeds.replay, importance_exponent=meme.importance_exponent)


def _vmpo(config: RunConfig, specs: Specs, seeds: Seeds) -> Agent:
    return Vmpo(
        specs.observation,
        specs.action,
        config.vmpo,
        num_tasks=len(specs.task_names),
        seed=seeds.agent,
        device=config.device,
    )


def _acting_vmpo(config: RunConfig, specs: Specs) -> ActingVmpo:
    num_values = len(specs.task_names) if config.vmpo.value_per_task else 1
    return ActingVmpo(specs.observation, specs.action, config.vmpo.network, num_tasks=num_values)


def _sampling_behaviour(config: RunConfig, specs: Specs, seeds: Seeds, env_ids: Array) -> Behaviour:
    """A policy that actions are drawn from."""
    distribution = _acting_vmpo(config, specs).distribution
    greedy = config.vmpo.evaluation_greedy
    return SamplingBehaviour(distribution, len(env_ids), evaluates_greedily=greedy)


def _queue(config: RunConfig, specs: Specs, seeds: Seeds) -> Source:
    """A queue of fresh unrolls."""
    vmpo, num_tasks = config.vmpo, len(specs.task_names)
    queue = OnPolicyQueue(
        vmpo.unroll_length, vmpo.batch_size, config.num_envs, seed=seeds.replay, is_strict=vmpo.strict
    )
    tasks = np.repeat(np.arange(num_tasks), config.num_envs // num_tasks)
    queue.share_of(tasks)  # says now what the first batch would
    return queue


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


def build_representation(recipe: Recipe, specs: Specs, config: RunConfig, seed: int) -> Representation | None:
    """The representation that a name asks for; None where it asks for none."""
    if recipe.representation == "none":
        return None
    kind = recipe.representation_kind
    settings = config.representation
    module = make_representation(kind, specs.observation, specs.action, settings, seed=seed)
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


AGENTS = {
    "meme": Makers(_meme, _acting_meme, _mixture_behaviour, _replay),
    "vmpo": Makers(_vmpo, _acting_vmpo, _sampling_behaviour, _queue),
}
"""Who is special about what: the rest is common to all agents."""
