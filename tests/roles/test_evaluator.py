"""The evaluator: one episode per environment, nothing changed."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from launch.test_local import TINY, assert_same, everything, loop_of

from softcount.agents.meme.network import Inputs
from softcount.launch.build import build_evaluator
from softcount.tensors import to_tensors


def test_every_environment_plays_one_episode_and_training_is_untouched():
    loop = loop_of(TINY, False)
    for _ in range(40):
        loop.step()
    before = everything(loop)
    evaluator = build_evaluator(replace(TINY, evaluation_episodes=4), loop.roles.inference)
    evaluation = evaluator(2, loop.roles.memory.scorer(), seed=3, keep_frames=True)
    assert len(evaluation.episodes) == 4
    assert {episode.mixture for episode in evaluation.episodes} == {2}
    assert all(1 <= episode.length <= 500 for episode in evaluation.episodes)
    assert evaluation.frames[0].shape == (7, 7, 3)
    assert evaluation.places
    assert_same(before, everything(loop))


def test_the_same_seed_plays_the_same_episodes():
    loop = loop_of(TINY, False)
    plays = []
    for _ in range(2):
        evaluator = build_evaluator(TINY, loop.roles.inference)
        plays.append(evaluator(0, loop.roles.memory.scorer(), seed=5, keep_frames=True))
    assert plays[0].episodes == plays[1].episodes
    np.testing.assert_array_equal(plays[0].frames, plays[1].frames)
    assert plays[0].mean_return == np.mean([e.extrinsic_return for e in plays[0].episodes])


def test_the_evaluator_plays_the_distilled_policy_whatever_the_actors_act_on():
    config = replace(TINY, meme=replace(TINY.meme, act_on="values"))
    loop = loop_of(config, False)
    evaluator = build_evaluator(config, loop.roles.inference)
    assert evaluator.inference.network is loop.roles.inference.network
    assert (evaluator.inference.config.act_on, loop.roles.inference.config.act_on) == ("policy", "values")
    request = loop.roles.actor.request()
    with torch.no_grad():
        outputs, _ = loop.roles.inference.network(one_step(request), to_tensors(request.state))
    logits = outputs.logits[0, range(len(request.mixture)), request.mixture].numpy()
    np.testing.assert_array_equal(evaluator.inference(request).logits, logits)
    assert (loop.roles.inference(request).logits != logits).any()


class Overheard:
    """An inference worker that remembers what it was asked and what it answered."""

    def __init__(self, inference):
        self.inference, self.heard = inference, []

    def __getattr__(self, name):
        return getattr(self.inference, name)

    def __call__(self, request):
        reply = self.inference(request)
        self.heard.append((request, reply))
        return reply


def overheard(config, arm, num_times):
    """Every (request, reply, score, next request) of some evaluations."""
    loop = loop_of(config, False)
    for _ in range(30):
        loop.step()
    evaluator = build_evaluator(config, loop.roles.inference)
    evaluator.inference = worker = Overheard(evaluator.inference)
    score, scores, moves = loop.roles.memory.scorer(), [], []
    for seed in range(num_times):
        worker.heard.clear()
        scores.clear()
        evaluator(arm, lambda *asked: scores.append(score(*asked)) or scores[-1], seed=seed)
        pairs = zip(worker.heard, scores, strict=True)
        for ((request, reply), paid), ((later, _), _) in itertools.pairwise(pairs):
            moves.append((request, reply, paid, later))
    return moves


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_it_plays_the_arm_it_was_given_greedily_but_for_the_configured_noise(epsilon):
    moves = overheard(replace(TINY, evaluation_epsilon=epsilon, evaluation_episodes=4), 3, num_times=25)
    others = []
    for request, reply, _, later in moves:
        assert (request.mixture == 3).all()
        goes_on = ~later.is_first
        others += (later.prev_action != reply.logits.argmax(-1))[goes_on].tolist()
    share = 0.75 * epsilon  # a random action is another one three times of four
    assert len(others) > 100
    assert abs(np.mean(others) - share) <= 3.5 * math.sqrt(share * (1 - share) / len(others))


def test_the_network_sees_what_the_memory_would_pay_one_step_late():
    moves = overheard(replace(TINY, evaluation_epsilon=1.0, evaluation_episodes=4), 0, num_times=15)
    for _, _, paid, later in moves:
        np.testing.assert_array_equal(later.prev_intrinsic, np.where(later.is_first, 0, paid))
    assert any(later.prev_intrinsic.any() for *_, later in moves)


def test_without_distillation_there_is_no_policy_to_play():
    meme = replace(TINY.meme, act_on="values", loss=replace(TINY.meme.loss, distillation_weight=0.0))
    config = replace(TINY, meme=meme)
    loop = loop_of(config, False)
    assert build_evaluator(config, loop.roles.inference).inference.config.act_on == "values"


def one_step(request):
    asked = to_tensors(request)
    rows = (asked.observation, asked.prev_action, asked.reward, asked.prev_intrinsic, asked.is_first)
    return Inputs(*(x[None] for x in rows))
