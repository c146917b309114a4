"""The evaluator: one episode per environment, nothing changed."""

from dataclasses import replace

import numpy as np
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


def test_without_distillation_there_is_no_policy_to_play():
    meme = replace(TINY.meme, act_on="values", loss=replace(TINY.meme.loss, distillation_weight=0.0))
    config = replace(TINY, meme=meme)
    loop = loop_of(config, False)
    assert build_evaluator(config, loop.roles.inference).inference.config.act_on == "values"


def one_step(request):
    asked = to_tensors(request)
    rows = (asked.observation, asked.prev_action, asked.reward, asked.prev_intrinsic, asked.is_first)
    return Inputs(*(x[None] for x in rows))
