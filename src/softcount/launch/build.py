"""From a configuration to roles: the one place where everything is put together."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from torch import nn

from softcount.agents.meme.agent import Meme
from softcount.agents.meme.bandit import Bandit
from softcount.agents.meme.network import MemeNetwork
from softcount.agents.meme.policies import epsilon_ladder
from softcount.config import RunConfig
from softcount.envs.make import make
from softcount.launch.local import Roles
from softcount.replay.sequences import SequenceReplay
from softcount.representations.make import make_representation
from softcount.representations.trainer import RepresentationTrainer
from softcount.roles.actor import Actor
from softcount.roles.evaluator import Evaluator
from softcount.roles.inference import Inference
from softcount.roles.learner import Learner
from softcount.roles.memory_server import MemoryServer
from softcount.roles.replay_server import ReplayServer
from softcount.taxonomy import Recipe, make_bonus, parse
from softcount.types import VectorEnv


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


def seeds_of(seed: int) -> Seeds:
    states = np.random.SeedSequence(seed).generate_state(len(Seeds._fields))
    return Seeds(*(int(state) for state in states))


def parse_agent(name: str) -> Recipe:
    """Reads the agent's name and makes sure that it can be trained here."""
    recipe = parse(name)
    if recipe.agent != "meme":
        what = "V-MPO is not there yet" if recipe.agent == "vmpo" else "the name has no agent"
        raise ValueError(f"{name!r} cannot be trained: {what}; expected a name like 'MEME-RECODE-AP'")
    return recipe


def make_env(config: RunConfig, num_envs: int, seed: int) -> VectorEnv:
    return make(config.env, num_envs=num_envs, seed=seed, **config.env_options)


def build(config: RunConfig) -> Roles:
    """Builds all roles of a run."""
    recipe, seeds = parse_agent(config.agent), seeds_of(config.seed)
    if config.relabel and recipe.bonus in ("episodic", "ngu"):
        raise ValueError(
            f"relabel is on, but the pay of {config.agent} depends on the episode and cannot be asked later; "
            "switch it off with --no-relabel"
        )
    env = make_env(config, config.num_envs, seeds.env)
    agent = Meme(env.observation_spec, env.action_spec, config.meme, seed=seeds.agent)
    representation = _make_representation(recipe, env, config, seeds.representation)
    trainer = None
    dim = None
    if representation is not None:
        trainer = RepresentationTrainer(representation, config.trainer)
        dim = trainer.representation.dim
    bonus = make_bonus(
        recipe,
        dim=dim,
        num_envs=config.num_envs,
        seed=seeds.memory,
        memory=config.memory,
        normaliser=config.normaliser,
    )
    inference = Inference(
        MemeNetwork(env.observation_spec, env.action_spec, config.meme.network),
        copy.deepcopy(representation),
        config.meme,
    )
    bandit_seeds = np.random.SeedSequence(seeds.bandits).generate_state(config.num_envs)
    actor = Actor(
        env,
        bandits=[Bandit(config.meme.network.num_mixtures, config.bandit, seed=int(s)) for s in bandit_seeds],
        epsilon=epsilon_ladder(config.num_envs, config.epsilon_base, config.epsilon_power),
        state=inference.initial_state(config.num_envs),
        feature_state=inference.initial_feature_state(config.num_envs),
        seed=seeds.actor,
    )
    replay = SequenceReplay(
        config.replay, config.num_envs, env.observation_spec, state=inference.initial_state(1)
    )
    return Roles(
        actor=actor,
        inference=inference,
        memory=MemoryServer(bonus, config.terminal_observations, keeps_exemplars=config.reembed_every > 0),
        replay=ReplayServer(replay, config.batch_size, seeds.replay),
        learner=Learner(
            agent,
            trainer,
            bonus=bonus,
            terminal_observations=config.terminal_observations,
            importance_exponent=config.importance_exponent,
        ),
    )


def _make_representation(recipe: Recipe, env: VectorEnv, config: RunConfig, seed: int) -> nn.Module | None:
    if recipe.representation == "none":
        return None
    kind = (
        recipe.representation if recipe.surprise == "none" else f"{recipe.representation}+{recipe.surprise}"
    )
    return make_representation(kind, env.observation_spec, env.action_spec, config.representation, seed=seed)


def build_evaluator(config: RunConfig, inference: Inference) -> Evaluator:
    """Builds an evaluator with environments of its own that plays the distilled policy of what acts."""
    env = make_env(config, config.evaluation_episodes, seeds_of(config.seed).evaluation)
    if config.meme.loss.distillation_weight > 0:
        steady = replace(config.meme, act_on="policy")
        inference = Inference(inference.network, inference.representation, steady)
    return Evaluator(env, inference, epsilon=config.evaluation_epsilon)
