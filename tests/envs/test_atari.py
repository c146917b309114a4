"""The protocol, line by line, against ale-py itself."""

import cv2
import numpy as np
import pytest
from ale_py import ALEInterface, LoggerMode, roms
from gymnasium.utils import seeding

from softcount.envs.atari import Atari, AtariConfig, games
from softcount.envs.atari_places import MontezumaPlaces, PitfallPlaces
from softcount.envs.families import EIGHT_GAMES

NO_NOOPS = {"max_noops": 0}


def console(game):
    """A bare emulator, as ale-py's own documentation sets it up."""
    ale = ALEInterface()
    ale.setLoggerMode(LoggerMode.Error)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(roms.get_rom_path(game))
    ale.reset_game()
    return ale


def play(ale, action, repeat=4):
    """Holds an action frame by frame; returns reward and all frames seen."""
    reward, frames = 0, []
    for _ in range(repeat):
        reward += ale.act(ale.getLegalActionSet()[action])
        frames.append(ale.getScreenGrayscale())
        if ale.game_over():
            break
    return reward, frames


@pytest.mark.parametrize("game", ["montezuma_revenge", "qbert"])
def test_observations_and_rewards_are_those_of_the_bare_emulator(game):
    env, ale = Atari(AtariConfig(game=game)), console(game)
    observation, info = env.reset(seed=11)
    num_noops = int(seeding.np_random(11)[0].integers(1, 31))
    frames = [ale.getScreenGrayscale()]
    for _ in range(num_noops):
        frames += play(ale, 0, repeat=1)[1]
    assert info["frames"] == ale.getEpisodeFrameNumber()
    total = 0
    rng = np.random.default_rng(0)
    for _ in range(250):
        assert observation.shape == (210, 160, 1)
        assert observation.dtype == np.uint8
        assert np.array_equal(observation[..., 0], np.maximum(frames[-1], frames[-2]))
        assert np.array_equal(env.ale.getRAM(), ale.getRAM())
        action = int(rng.integers(18 if game == "montezuma_revenge" else 6))
        reward, frames = play(ale, action)
        observation, ours, terminated, truncated, info = env.step(action)
        assert ours == reward
        assert info["frames"] == ale.getEpisodeFrameNumber()
        assert (terminated, truncated) == (ale.game_over(), False)
        total += reward
    assert game == "montezuma_revenge" or total >= 25  # Q*bert pays 25 per cube, not clipped


def test_no_ops_are_1_to_30_single_frames():
    env = Atari()
    env.reset(seed=0)
    first = Atari(AtariConfig(**NO_NOOPS)).reset(seed=0)[1]["frames"]
    counts = [env.reset()[1]["frames"] - first for _ in range(120)]
    assert min(counts) == 1
    assert max(counts) == 30
    assert len(set(counts)) >= 27
    assert abs(np.mean(counts) - 15.5) < 3


def test_all_eighteen_actions_in_the_consoles_order_or_the_minimal_set():
    env = Atari(AtariConfig(game="qbert"))
    assert [action.value for action in env.actions] == list(range(18))
    small = Atari(AtariConfig(game="qbert", full_actions=False))
    assert small.action_space.n == 6
    assert small.actions == small.ale.getMinimalActionSet()


def test_actions_are_never_sticky_by_default_and_sticky_by_option():
    def play_through(**options):
        env = Atari(AtariConfig(game="pitfall", **NO_NOOPS, **options))
        runs = []
        for seed in (1, 2):
            env.reset(seed=seed)
            actions = np.random.default_rng(0).integers(18, size=60)
            runs.append(np.stack([env.step(int(action))[0] for action in actions]))
        return runs

    assert env_equal(play_through())
    assert not env_equal(play_through(sticky_probability=0.25))


def env_equal(runs):
    return np.array_equal(runs[0], runs[1])


def test_the_default_limit_is_27000_actions_or_108000_frames():
    config = AtariConfig()
    assert config.max_steps == 27_000
    assert config.max_steps * config.action_repeat == 108_000
    assert Atari().ale.getInt("max_num_frames_per_episode") == 0  # the emulator cuts nothing itself


@pytest.mark.slow
def test_a_game_that_nobody_plays_is_cut_after_exactly_27000_actions():
    env = Atari()
    env.reset(seed=0)
    for t in range(1, 27_001):
        _, _, terminated, truncated, _ = env.step(0)
        assert (terminated or truncated) == (t == 27_000)


@pytest.mark.parametrize(("limit_is_terminal", "ends"), [(True, (True, False)), (False, (False, True))])
def test_the_limit_counts_actions_and_ends_as_configured(limit_is_terminal, ends):
    env = Atari(AtariConfig(max_steps=7, limit_is_terminal=limit_is_terminal))
    env.reset(seed=0)
    assert [env.step(0)[2:4] for _ in range(7)] == [(False, False)] * 6 + [ends]
    with pytest.raises(RuntimeError, match="call reset"):
        env.step(0)


def random_until(env, condition, limit=3000):
    rng = np.random.default_rng(0)
    for _ in range(limit):
        result = env.step(int(rng.integers(18)))
        if condition(result):
            return result
    raise AssertionError("it did not happen")


def test_losing_a_life_does_not_end_the_episode_but_game_over_does():
    env = Atari(AtariConfig(game="qbert"))
    _, info = env.reset(seed=0)
    lives = info["lives"]
    result = random_until(env, lambda result: result[4]["lives"] < lives)
    assert not result[2]
    result = random_until(env, lambda result: result[2])
    assert env.ale.game_over()
    assert result[4]["lives"] == 0


def test_a_life_can_be_an_episode_and_the_game_goes_on_with_the_rest():
    env = Atari(AtariConfig(game="qbert", life_loss_is_terminal=True))
    _, info = env.reset(seed=0)
    assert info["lives"] == 4
    result = random_until(env, lambda result: result[2])
    assert result[4]["lives"] == 3
    assert not env.ale.game_over()
    _, info = env.reset()
    assert info["lives"] == 3
    assert env.reset(seed=1)[1]["lives"] == 4


def test_rewards_are_clipped_only_by_option():
    env = Atari(AtariConfig(game="qbert", clip_rewards=True))
    env.reset(seed=0)
    assert random_until(env, lambda result: result[1] != 0)[1] == 1.0


def test_without_pooling_the_last_frame_is_seen_and_resizing_averages_areas():
    bare, small = (Atari(AtariConfig(**NO_NOOPS, **o)) for o in ({"max_pool": False}, {"size": (84, 84)}))
    pooled, ale = Atari(AtariConfig(**NO_NOOPS)), console("montezuma_revenge")
    for env in (bare, small, pooled):
        env.reset(seed=0)
    for action in np.random.default_rng(3).integers(18, size=30).tolist():
        _, frames = play(ale, action)
        assert np.array_equal(bare.step(action)[0][..., 0], frames[-1])
        whole = pooled.step(action)[0]
        expected = cv2.resize(whole, (84, 84), interpolation=cv2.INTER_AREA)[..., None]
        assert np.array_equal(small.step(action)[0], expected)


def test_colour_is_the_maximum_of_two_colour_frames():
    env, ale = Atari(AtariConfig(colour=True, **NO_NOOPS)), console("montezuma_revenge")
    env.reset(seed=0)
    frames = []
    for _ in range(4):
        ale.act(ale.getLegalActionSet()[3])
        frames.append(ale.getScreenRGB())
    assert np.array_equal(env.step(3)[0], np.maximum(frames[-1], frames[-2]))


def num_differences_after_restores(game, num_restores):
    """Restores into another console at random moments and counts frames that differ in three steps."""
    config = AtariConfig(game=game, action_repeat=1)
    env, other = Atari(config), Atari(config)
    env.reset(seed=0)
    rng = np.random.default_rng(1)
    differences = 0
    for _ in range(num_restores):
        for _ in range(int(rng.integers(1, 9))):
            _, _, terminated, truncated, _ = env.step(int(rng.integers(18)))
            if terminated or truncated:
                env.reset()
        other.set_state(env.get_state())
        for _ in range(3):
            action = int(rng.integers(18))
            ours, theirs = env.step(action), other.step(action)
            is_equal = np.array_equal(ours[0], theirs[0]) and ours[1:] == theirs[1:]
            differences += not (is_equal and np.array_equal(env.ale.getRAM(), other.ale.getRAM()))
            if ours[2] or ours[3]:
                env.reset()
                break
    return differences


def test_qbert_is_restored_exactly_into_another_console_at_many_moments():
    # ale-py's own restore goes wrong here: Q*bert draws partial frames and that is not in its state.
    assert num_differences_after_restores("qbert", 25) == 0


@pytest.mark.slow
@pytest.mark.parametrize("game", ["qbert", "tetris"])
def test_games_with_partial_frames_are_restored_exactly_600_times(game):
    assert num_differences_after_restores(game, 600) == 0


def test_the_eight_games_are_there_with_eighteen_actions():
    assert len(EIGHT_GAMES) == 8
    assert set(EIGHT_GAMES) <= set(games())
    assert "combat" not in games()  # ale-py brings the ROM but ends the process when it is loaded


def test_wrong_input_is_named():
    with pytest.raises(ValueError, match="state is of 'pitfall'; expected 'qbert'"):
        Atari(AtariConfig(game="qbert")).set_state(Atari(AtariConfig(game="pitfall")).get_state())
    with pytest.raises(ValueError, match="did you mean 'montezuma_revenge'"):
        Atari(AtariConfig(game="montezumas_revenge"))
    with pytest.raises(ValueError, match=r"sticky_probability is 1\.5"):
        AtariConfig(sticky_probability=1.5)
    env = Atari()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action 18 is illegal; expected 0 to 17"):
        env.step(18)


def test_montezuma_starts_in_the_middle_of_the_top_floor_and_places_follow_ram():
    env = Atari()
    _, info = env.reset(seed=0)
    ram = env.ale.getRAM()
    assert ram[3] == 1
    assert info["place"] == (1 * 14 + (255 - int(ram[43])) // 8) * 20 + int(ram[42]) // 8
    places = MontezumaPlaces()
    row, column = places.cell_of(info["place"])
    assert (row // 14, column // 20) == (0, 4)  # the apex of the pyramid is the middle of nine columns
    cells = [places.cell_of(room * 280) for room in range(24)]
    assert [(row // 14, column // 20) for row, column in cells] == [
        *((0, x) for x in range(3, 6)),
        *((1, x) for x in range(2, 7)),
        *((2, x) for x in range(1, 8)),
        *((3, x) for x in range(9)),
    ]


def test_montezuma_moving_left_moves_left_on_the_map():
    env = Atari(AtariConfig(**NO_NOOPS))
    _, info = env.reset(seed=0)
    for _ in range(3):
        place = env.step(4)[4]["place"]  # left along the top platform
    before, after = env.cell_of(info["place"]), env.cell_of(place)
    assert after[1] < before[1]
    assert after[0] == before[0]


def test_pitfalls_rooms_are_a_ring_that_the_game_itself_follows():
    places = PitfallPlaces()
    rooms = [room for room in range(256) if places.place({1: room}) >= 0]
    assert len(rooms) == places.num_places == 255
    assert sorted(places.place({1: room}) for room in rooms) == list(range(255))
    env = Atari(AtariConfig(game="pitfall", **NO_NOOPS))
    _, info = env.reset(seed=0)
    assert info["place"] == 0
    result = None
    for _ in range(120):  # run left: the first room has no pit on that side
        result = env.step(4)
        if result[4]["place"]:
            break
    assert result[4]["place"] == 254


class Film:
    """An emulator that shows the number of the frame and ends at a given one."""

    def __init__(self, last):
        self.frame, self.last = 0, last

    def act(self, action):
        self.frame += 1
        return 0.0

    def game_over(self):
        return self.frame == self.last

    def getScreenGrayscale(self, out):
        out[...] = 0
        out.reshape(-1)[self.frame] = 1  # a pixel a frame, so that a pooled picture tells its frames

    def lives(self):
        return 1

    def getEpisodeFrameNumber(self):
        return self.frame

    def getRAM(self):
        return np.zeros(128, np.uint8)


@pytest.mark.parametrize("repeat", [1, 2, 3, 4])
@pytest.mark.parametrize("num_before", [0, 1])
def test_whenever_a_game_ends_only_its_last_two_frames_are_seen(repeat, num_before):
    for length in range(1, repeat + 1):
        env = Atari(AtariConfig(action_repeat=repeat, **NO_NOOPS))
        env.reset(seed=0)
        env.ale = Film(last=num_before * repeat + length)
        env.places = None
        env._look()  # frame 0, as at a reset
        for _ in range(num_before):
            env.step(0)
        observation, _, is_terminal, _, _ = env.step(0)
        shown = set(np.flatnonzero(observation.reshape(-1)).tolist())
        last = num_before * repeat + length
        assert is_terminal
        was_looked_at = length in (1, repeat)  # the frame before the last: by the step before, or by this one
        assert shown == ({last - 1, last} if was_looked_at else {last}), (repeat, length)
