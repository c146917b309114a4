"""What small machines need of the emulator: stacks, chosen actions, skipped deaths, true counts of frames."""

import itertools

import numpy as np
import pytest

from softcount.envs.atari import Atari, AtariConfig
from softcount.envs.make import make

SMALL = {
    "size": (42, 40),
    "stack": 2,
    "actions": ("NOOP", "LEFT", "RIGHT", "RIGHTFIRE", "LEFTFIRE", "DOWN"),
    "life_loss_is_terminal": True,
    "skip_deaths": True,
    "clip_rewards": True,
}


class Counted:
    """An emulator whose frames are counted as they are played."""

    def __init__(self, ale):
        self._ale, self.num_played = ale, 0

    def __getattr__(self, name):
        return getattr(self._ale, name)

    def act(self, action):
        self.num_played += 1
        return self._ale.act(action)


def random_actions(env, num, seed=0):
    """Holds each action for a few steps: Montezuma's first room kills whoever walks."""
    rng = np.random.default_rng(seed)
    return np.repeat(rng.integers(env.action_space.n, size=num // 4 + 1), 4)[:num].tolist()


def play(env, num, seed=0):
    """Plays; returns rows (observation, reward, is_terminal, info) with resets between."""
    observation, info = env.reset(seed=1)
    rows = [(observation, 0.0, False, info)]
    for action in random_actions(env, num, seed):
        if rows[-1][2]:
            observation, info = env.reset()
            rows.append((observation, 0.0, False, info))
        observation, reward, is_terminal, _, info = env.step(action)
        rows.append((observation, reward, is_terminal, info))
    return rows


@pytest.mark.parametrize("colour", [False, True])
@pytest.mark.parametrize("num", [2, 3])
def test_a_stack_holds_the_last_pictures_with_the_newest_last(colour, num):
    options = {"colour": colour, "size": (21, 20)}
    single, stacked = Atari(AtariConfig(**options)), Atari(AtariConfig(stack=num, **options))
    channels = 3 if colour else 1
    assert stacked.observation_space.shape == (21, 20, num * channels)
    observation, _ = stacked.reset(seed=5)
    pictures = [single.reset(seed=5)[0]] * num
    assert np.array_equal(observation, np.concatenate(pictures, -1))
    for action in random_actions(single, 12):
        pictures = [*pictures[1:], single.step(action)[0]]
        assert np.array_equal(stacked.step(action)[0], np.concatenate(pictures, -1))
    first = single.reset()[0]
    assert np.array_equal(stacked.reset()[0], np.concatenate([first] * num, -1))


def test_an_observation_stays_what_it_was():
    env = Atari(AtariConfig(stack=2, size=(21, 20)))
    observation, _ = env.reset(seed=0)
    kept = observation.copy()
    env.step(3)
    assert np.array_equal(observation, kept)


def test_chosen_actions_are_numbered_as_they_are_named():
    chosen, every = Atari(AtariConfig(actions=("LEFTFIRE", "NOOP", "DOWN"))), Atari()
    assert chosen.action_space.n == 3
    for number, of_all in ((0, 12), (2, 5), (1, 0), (0, 12)):
        chosen.reset(seed=3), every.reset(seed=3)
        for _ in range(6):
            assert np.array_equal(chosen.step(number)[0], every.step(of_all)[0])
        assert np.array_equal(chosen.ale.getRAM(), every.ale.getRAM())


def test_no_ops_are_no_ops_whatever_the_first_action_is():
    chosen, every = Atari(AtariConfig(actions=("LEFT", "RIGHT"))), Atari()
    assert np.array_equal(chosen.reset(seed=4)[0], every.reset(seed=4)[0])


def test_a_death_is_no_place():
    rows = play(Atari(AtariConfig()), 400)
    lives = [info["lives"] for *_, info in rows]
    deaths = [t for t in range(1, len(rows) - 15) if 0 < lives[t] < lives[t - 1]]
    places = [info["place"] for *_, info in rows]
    assert len(deaths) >= 2
    for t in deaths:
        assert places[t : t + 12] == [-1] * 12  # 46 to 54 frames
        assert places[t + 15] >= 0
        assert places[t - 1] >= 0
    assert places.count(-1) <= 14 * (len(deaths) + 2)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_skipped_deaths_are_never_seen(is_terminal):
    env = Atari(AtariConfig(skip_deaths=True, life_loss_is_terminal=is_terminal))
    rows = play(env, 500)
    lives = [info["lives"] for *_, info in rows]
    assert min(lives) <= 1  # all lives of a game were lost, the last of which ends otherwise than the others
    alive = [info["place"] >= 0 for _, _, is_over, info in rows if not is_over]
    assert all(alive)
    ends = sum(is_over for _, _, is_over, _ in rows)
    losses = sum(now < before for before, now in itertools.pairwise(lives))
    assert ends == (losses if is_terminal else lives.count(0))


def test_after_a_skipped_death_the_next_life_stands_at_the_entrance():
    env = Atari(AtariConfig(**SMALL, max_noops=0))
    start = env.reset(seed=0)[1]["place"]
    while not env._is_over:
        env.step(1)
    observation, info = env.reset()
    assert info["place"] == start
    assert info["lives"] == 5
    assert np.array_equal(observation[..., 0], observation[..., 1])


def test_every_frame_is_counted_skipped_ones_and_no_ops_too():
    env = Atari(AtariConfig(**SMALL))
    env.ale = counted = Counted(env.ale)
    play(env, 150)
    assert env.num_frames == counted.num_played
    assert env.num_frames > 4 * 150 + 52


def test_a_vector_adds_the_frames_of_its_copies():
    env = make("atari/montezuma_revenge", num_envs=3, seed=0, max_noops=0)
    env.reset()
    assert env.num_frames == 0
    env.step(np.zeros(3, np.int64))
    assert env.num_frames == 12
    noisy = make("noisy-atari/montezuma_revenge,noisy-atari/pitfall", num_envs=4, seed=0, max_noops=0)
    noisy.reset()
    noisy.step(np.zeros(4, np.int64))
    assert noisy.num_frames == 16
    mixed = make("disco-maze", num_envs=2, size=7)
    assert getattr(mixed, "num_frames", None) is None


def test_points_are_counted_before_they_are_clipped():
    env = Atari(AtariConfig(game="qbert", clip_rewards=True, max_noops=0))
    env.reset(seed=0)
    total = 0.0
    for action in random_actions(env, 200):
        _, reward, is_terminal, _, _ = env.step(action)
        total += reward
        if is_terminal:
            env.reset()
    assert set(env.points) == {25}
    assert env.points[25] == total > 0


def test_all_of_it_is_saved_and_restored():
    env, other = Atari(AtariConfig(**SMALL)), Atari(AtariConfig(**SMALL))
    play(env, 60)
    rng = np.random.default_rng(2)
    for _ in range(4):
        for action in rng.integers(6, size=20).tolist():
            if env._is_over:
                env.reset()
            env.step(action)
        other.set_state(env.get_state())
        for action in rng.integers(6, size=25).tolist():
            if env._is_over:
                ours, theirs = env.reset(), other.reset()
            else:
                ours, theirs = env.step(action), other.step(action)
            assert np.array_equal(ours[0], theirs[0])
            assert ours[1:] == theirs[1:]
        assert (env.num_frames, env.points) == (other.num_frames, other.points)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"size": 84}, "size is 84; expected a height and a width, such as 84,84"),
        ({"size": (84,)}, r"size is \(84,\); expected a height and a width"),
        ({"size": (0, 84)}, r"size is \(0, 84\)"),
        ({"stack": 0}, "stack is 0; expected at least 1"),
        ({"stack": "a"}, "AtariConfig.stack is 'a'; expected a whole number"),
        ({"skip_deaths": "no"}, "AtariConfig.skip_deaths is 'no'; expected True or False"),
        ({"max_steps": 2.5}, r"AtariConfig.max_steps is 2\.5; expected a whole number"),
        ({"actions": "NOOP"}, "actions is 'NOOP'; expected names, such as NOOP,LEFT,RIGHT"),
    ],
)
def test_wrong_options_are_named(options, says):
    with pytest.raises(ValueError, match=says):
        AtariConfig(**options)


def test_an_unknown_action_or_death_is_named():
    with pytest.raises(ValueError, match="no action is called 'LFET'; did you mean 'LEFT'"):
        Atari(AtariConfig(actions=("NOOP", "LFET")))
    with pytest.raises(ValueError, match="how hero shows a death is not known; expected montezuma"):
        Atari(AtariConfig(game="hero", skip_deaths=True))
