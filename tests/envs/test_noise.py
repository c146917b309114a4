import numpy as np
import pytest

from softcount.envs.disco_maze import DiscoMaze, DiscoMazeConfig
from softcount.envs.disco_maze_gym import DiscoMazeEnv
from softcount.envs.make import make, make_env
from softcount.envs.noise import DRIFT, NoisyVector
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


def panels_of(noise, actions, seed=0):
    env = make("noisy-disco-maze", num_envs=2, seed=seed, size=7, lethal=False, noise=noise)
    rows = [env.reset(seed=seed), *(env.step(np.array(pair)) for pair in actions)]
    return np.stack([row.observation[:, 7:] for row in rows]).astype(int), env


def test_kinds_of_noise_change_when_and_as_they_say():
    actions = [(1, 2), (0, 1), (3, 0), (2, 2)]
    still, _ = panels_of("still", actions)
    assert (still == still[0]).all()
    assert not np.array_equal(still[0, 0], still[0, 1])
    drift, _ = panels_of("drift", actions * 60)
    steps = np.abs(np.diff(drift, axis=0))
    assert steps.max() == DRIFT
    assert (steps > 0).mean() > 0.9
    assert drift.std() > 60  # it goes everywhere
    channel, _ = panels_of("channel", actions)
    is_new = (np.diff(channel, axis=0) != 0).mean((2, 3, 4)) > 0.9
    assert is_new.tolist() == [[False, False], [True, False], [False, True], [False, False]]


@pytest.mark.parametrize("noise", ["fresh", "drift", "channel", "still"])
def test_noise_of_every_kind_continues_where_it_was_saved(noise):
    _, env = panels_of(noise, [(0, 1), (1, 0)])
    state, actions = env.get_state(), [(0, 0), (2, 0), (1, 1)]
    rest = [env.step(np.array(pair)).observation for pair in actions]
    twin = make("noisy-disco-maze", num_envs=2, seed=9, size=7, lethal=False, noise=noise)
    twin.reset()
    twin.set_state(state)
    assert all(np.array_equal(twin.step(np.array(pair)).observation, x) for pair, x in zip(actions, rest))


def test_an_unknown_kind_of_noise_names_the_kinds():
    with pytest.raises(ValueError, match="noise is 'loud'; expected one of fresh, drift, channel, still"):
        make("noisy-disco-maze", noise="loud")
    assert make_env("noisy-disco-maze", size=7, noise="fresh").reset()[0].shape == (14, 7, 3)
    with pytest.raises(ValueError, match="expected `make` for noise of other kinds"):
        make_env("noisy-disco-maze", noise="drift")


def test_only_images_can_carry_noise():
    maze = DiscoMaze(DiscoMazeConfig(observation="palette"))
    with pytest.raises(ValueError, match="noise needs one uint8 image"):
        NoisyVector(maze)
    with pytest.raises(ValueError, match="noise needs one uint8 image"):
        NoisePanel(DiscoMazeEnv(DiscoMazeConfig(observation="palette")))
