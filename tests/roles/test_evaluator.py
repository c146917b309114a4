"""The evaluator: one episode per environment, nothing changed."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from launch.test_local import TINY, assert_same, everything, loop_of

from softcount.agents.meme.acting import FixedMixture
from softcount.agents.protocols import Inputs
from softcount.config import with_fields
from softcount.launch.build import build_evaluator
from softcount.tensors import to_tensors


def test_every_environment_plays_one_episode_and_training_is_untouched():
    loop = loop_of(TINY, False)
    for _ in range(40):
        loop.step()
    before = everything(loop)
    evaluator = build_evaluator(replace(TINY, evaluation_episodes=4), loop.roles.inference)
    evaluation = evaluator(FixedMixture(2, 1, 0.01), loop.roles.memory, seed=3, keep_frames=True)
    assert len(evaluation.episodes) == 4
    assert {episode.condition for episode in evaluation.episodes} == {2}
    assert {episode.task for episode in evaluation.episodes} == {0}
    assert all(1 <= episode.length <= 500 for episode in evaluation.episodes)
    assert evaluation.frames[0].shape == (7, 7, 3)
    assert len(evaluation.frames) == len(evaluation.intrinsics)
    assert evaluation.places
    assert_same(before, everything(loop))


class Elsewhere:
    """Environments that make up where their copies are, and remember it with which rows ended an episode."""

    def __init__(self, env):
        self.env, self.rows, self.rng = env, [], np.random.default_rng(0)

    def __getattr__(self, name):
        return getattr(self.env, name)

    def reset(self, seed=None):
        return self._placed(self.env.reset(seed))

    def step(self, actions):
        return self._placed(self.env.step(actions))

    def _placed(self, timestep):
        places = self.rng.integers(-1, 1000, self.env.num_envs)
        places[self.rng.random(self.env.num_envs) < 0.3] = -1
        self.rows.append((places.tolist(), timestep.is_last.tolist()))
        return timestep._replace(place=places)


def test_places_are_those_of_the_episodes_that_count_and_nowhere_is_none():
    loop = loop_of(TINY, False)
    evaluator = build_evaluator(replace(TINY, evaluation_episodes=4), loop.roles.inference)
    evaluator.env = elsewhere = Elsewhere(evaluator.env)
    evaluation = evaluator(FixedMixture(0, 1, 1.0), loop.roles.memory, seed=0)
    counted, is_over = set(), [False] * 4
    for places, ends in elsewhere.rows:
        counted |= {place for place, over in zip(places, is_over) if not over and place != -1}
        is_over = [over or end for over, end in zip(is_over, ends)]
    assert evaluation.places == counted
    everywhere = {place for places, _ in elsewhere.rows for place in places}
    assert everywhere - counted > {-1}  # nowhere, and what copies saw after their first episode


def test_the_same_seed_plays_the_same_episodes():
    loop = loop_of(TINY, False)
    plays = []
    for _ in range(2):
        evaluator = build_evaluator(TINY, loop.roles.inference)
        plays.append(evaluator(FixedMixture(0, 1, 0.01), loop.roles.memory, seed=5, keep_frames=True))
    assert plays[0].episodes == plays[1].episodes
    assert plays[0].intrinsics == plays[1].intrinsics
    np.testing.assert_array_equal(plays[0].frames, plays[1].frames)
    assert plays[0].mean_return == np.mean([e.extrinsic_return for e in plays[0].episodes])


def test_the_evaluator_plays_the_distilled_policy_whatever_the_actors_act_on():
    config = replace(TINY, meme=replace(TINY.meme, act_on="values"))
    loop = loop_of(config, False)
    acting, always = loop.roles.inference, loop.roles.actor.request()
    seen = []
    for _ in range(2):  # before and after learning
        request = loop.roles.actor.request()
        with torch.no_grad():
            outputs, _ = acting.network(one_step(request), to_tensors(request.state))
        logits = outputs.logits[0, range(len(request.condition)), request.condition].numpy()
        np.testing.assert_array_equal(acting.evaluate(request).policy, logits)
        assert (acting(request).policy != logits).any()
        seen.append(acting.evaluate(always).policy)
        while loop.num_updates < 2:
            loop.step()
    assert (seen[0] != seen[1]).any()


class Overheard:
    """An inference worker that remembers what it was asked and what it answered."""

    def __init__(self, inference):
        self.inference, self.heard = inference, []

    def __getattr__(self, name):
        return getattr(self.inference, name)

    def evaluate(self, request):
        reply = self.inference.evaluate(request)
        self.heard.append((request, reply))
        return reply


class OverheardMemory:
    """A memory server that remembers what it told an evaluator it would pay."""

    def __init__(self, memory):
        self.memory, self.paid = memory, []

    def begin_evaluation(self):
        self.paid.clear()
        self.memory.begin_evaluation()

    def evaluate(self, *asked):
        self.paid.append(self.memory.evaluate(*asked))
        return self.paid[-1]


def overheard(config, arm, num_times):
    """Every (request, reply, pay, next request) of some evaluations of actors that find an arm the best."""
    loop = loop_of(config, False)
    for _ in range(30):
        loop.step()
    for bandit in loop.roles.actor.behaviour.bandits:
        bandit.update(arm, 1000.0)
    evaluator = build_evaluator(config, loop.roles.inference)
    evaluator.inference = worker = Overheard(loop.roles.inference)
    memory, moves = OverheardMemory(loop.roles.memory), []
    for seed in range(num_times):
        worker.heard.clear()
        evaluation = evaluator(loop.roles.actor.behaviour, memory, seed=seed)
        firsts = [float(paid[0]) for paid in memory.paid]
        assert evaluation.intrinsics == firsts[: len(evaluation.intrinsics)]
        pairs = zip(worker.heard, memory.paid, strict=True)
        for ((request, reply), paid), ((later, _), _) in itertools.pairwise(pairs):
            moves.append((request, reply, paid, later))
    return moves


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_it_plays_the_best_arm_greedily_but_for_the_configured_noise(epsilon):
    moves = overheard(
        with_fields(TINY, {"meme.evaluation_epsilon": epsilon, "evaluation_episodes": 4}), 3, num_times=25
    )
    others = []
    for request, reply, _, later in moves:
        assert (request.condition == 3).all()
        goes_on = ~later.is_first
        others += (later.prev_action != reply.policy.argmax(-1))[goes_on].tolist()
    share = 0.75 * epsilon  # a random action is another one three times of four
    assert len(others) > 100
    assert abs(np.mean(others) - share) <= 3.5 * math.sqrt(share * (1 - share) / len(others))


def test_the_network_sees_what_the_memory_would_pay_one_step_late():
    moves = overheard(
        with_fields(TINY, {"meme.evaluation_epsilon": 1.0, "evaluation_episodes": 4}), 0, num_times=15
    )
    for _, _, paid, later in moves:
        np.testing.assert_array_equal(later.prev_intrinsic, np.where(later.is_first, 0, paid))
    assert any(later.prev_intrinsic.any() for *_, later in moves)


def test_without_distillation_there_is_no_policy_to_play():
    meme = replace(TINY.meme, act_on="values", loss=replace(TINY.meme.loss, distillation_weight=0.0))
    config = replace(TINY, meme=meme)
    loop = loop_of(config, False)
    request = loop.roles.actor.request()
    acting = loop.roles.inference
    np.testing.assert_array_equal(acting.evaluate(request).policy, acting(request).policy)


def one_step(request):
    asked = to_tensors(request)
    rows = (asked.observation, asked.prev_action, asked.reward, asked.prev_intrinsic, asked.is_first)
    return Inputs(*(x[None] for x in rows))
