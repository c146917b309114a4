"""The evaluator: one episode per environment, nothing changed."""

from dataclasses import replace

import numpy as np
from launch.test_local import TINY, assert_same, everything, loop_of

from softcount.launch.build import build_evaluator


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
