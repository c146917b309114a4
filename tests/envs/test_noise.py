import numpy as np
import pytest

from softcount.envs.disco_maze import DiscoMaze, DiscoMazeConfig
from softcount.envs.disco_maze_gym import DiscoMazeEnv
from softcount.envs.make import make
from softcount.envs.noise import NoisyVector
from softcount.envs.noise_gym import NoisePanel


def test_noisy_montezuma_is_420_by_160_with_the_game_above_and_noise_below():
    noisy, plain = make("noisy-atari/montezuma_revenge", seed=3), make("atari/montezuma_revenge", seed=3)
    assert noisy.observation_spec.shape == (420, 160, 1)
    ours, theirs = noisy.reset(), plain.reset()
    panels = []
    for _ in range(10):
        assert np.array_equal(ours.observation[:, :210], theirs.observation)
        assert ours.observation.shape == (1, 420, 160, 1)
        panels.append(ours.observation[:, 210:])
        ours, theirs = noisy.step(np.array([3])), plain.step(np.array([3]))
    panels = np.stack(panels).astype(int)
    assert (panels.min(), panels.max()) == (0, 255)
    counts = np.bincount(panels.ravel(), minlength=256)
    expected = panels.size / 256
    assert ((counts - expected) ** 2 / expected).sum() < 350  # χ² with 255 degrees of freedom, p < 0.0001
    assert abs((panels[1:] == panels[:-1]).mean() - 1 / 256) < 0.001  # redrawn at every step
    assert abs(np.corrcoef(panels[:, :, :-1].ravel(), panels[:, :, 1:].ravel())[0, 1]) < 0.01


def test_noise_does_not_disturb_the_environment_and_passes_ground_truth_through():
    config = DiscoMazeConfig(size=11, lethal=False)
    noisy, plain = NoisyVector(DiscoMaze(config, num_envs=4), seed=0), DiscoMaze(config, num_envs=4)
    ours, theirs = noisy.reset(seed=2), plain.reset(seed=2)
    for action in np.random.default_rng(0).integers(4, size=(50, 4)):
        assert np.array_equal(ours.observation[:, :11], theirs.observation)
        assert np.array_equal(ours.place, theirs.place)
        ours, theirs = noisy.step(action), plain.step(action)
    assert noisy.num_places == 49
    assert noisy.task_names == ("disco-maze",)
    assert noisy.task_ids.tolist() == [0, 0, 0, 0]
    assert noisy.cell_of(3) == plain.cell_of(3)
    copies = ours.observation[:, 11:]
    assert not np.array_equal(copies[0], copies[1])


def test_the_gymnasium_wrapper_draws_the_same_kind_of_panel():
    env = NoisePanel(DiscoMazeEnv(DiscoMazeConfig(size=11, lethal=False)))
    first, _ = env.reset(seed=0)
    second = env.step(0)[0]
    again, _ = env.reset(seed=0)
    assert first.shape == env.observation_space.shape == (22, 11, 3)
    assert np.array_equal(first, again)
    assert (first[11:] != second[11:]).mean() > 0.98


def test_only_images_can_carry_noise():
    maze = DiscoMaze(DiscoMazeConfig(observation="palette"))
    with pytest.raises(ValueError, match="noise needs one uint8 image"):
        NoisyVector(maze)
    with pytest.raises(ValueError, match="noise needs one uint8 image"):
        NoisePanel(DiscoMazeEnv(DiscoMazeConfig(observation="palette")))
