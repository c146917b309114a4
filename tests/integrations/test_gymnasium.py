"""The vector wrapper: every autoreset mode sees the same streams, and nothing of the game is changed."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from integrations.worlds import Counter, Lever, pulled

from softcount.bonuses import NormaliserConfig
from softcount.integrations import IntrinsicRewardConfig
from softcount.integrations.gymnasium import IntrinsicRewardWrapper
from softcount.memory import RecodeConfig
from softcount.representations.compose import Function

NUM_ENVS = 3
SMALL = IntrinsicRewardConfig(
    memory=RecodeConfig(size=50, neighbours=3, warmup_atoms=5),
    normaliser=NormaliserConfig(kind="none"),
    steps_per_update=15,
    first_update=30,
    batch_size=4,
    sequence_length=5,
    history_size=600,
)


def counters(mode):
    envs = [lambda i=i: Counter(i) for i in range(NUM_ENVS)]
    return SyncVectorEnv(envs, autoreset_mode=mode)


def drive(envs, mode, steps, seed=0):
    """Random actions; where nothing resets by itself, the loop does."""
    rng = np.random.default_rng(seed)
    seen = [envs.reset(seed=0)[0]]
    for _ in range(steps):
        obs, reward, terminated, truncated, info = envs.step(rng.integers(0, 3, NUM_ENVS))
        seen.append((obs.copy(), reward, terminated, truncated, info))
        over = terminated | truncated
        if mode == AutoresetMode.DISABLED and over.any():
            envs.reset(options={"reset_mask": over})
    return seen


def wrap(mode, **options):
    return IntrinsicRewardWrapper(counters(mode), "RECODE-AP", **{"config": SMALL, **options})


def test_every_autoreset_mode_gives_the_same_streams():
    histories = {}
    for mode in AutoresetMode:
        envs = wrap(mode)
        drive(envs, mode, 60)
        histories[mode] = envs.bonus.history
    for copy in range(NUM_ENVS):
        num = int(min(history.num_rows[copy] for history in histories.values()))
        assert num > 50
        one, two, three = (
            history._gather(np.array([copy]), np.array([0]), num).steps for history in histories.values()
        )
        rows = one.observation[:, 0]
        assert ((np.diff(rows[:, 2]) == 1) | (rows[1:, 2] == 0)).all()  # every time of every episode, once
        for other in (two, three):
            for name in ("observation", "is_first", "is_last", "is_terminal"):
                np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.parametrize("mode", AutoresetMode)
def test_the_game_is_left_as_it_is_and_info_has_both_rewards(mode):
    plain, wrapped = counters(mode), wrap(mode, reward="extrinsic")
    expected, seen = drive(plain, mode, 50), drive(wrapped, mode, 50)
    for one, two in zip(expected[1:], seen[1:]):
        for a, b in zip(one[:4], two[:4]):
            np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(two[4]["extrinsic_reward"], one[1])
        assert two[4]["_intrinsic_reward"].all()
        assert set(two[4]) - set(one[4]) == {
            "extrinsic_reward", "_extrinsic_reward", "intrinsic_reward", "_intrinsic_reward",
        }  # fmt: skip


@pytest.mark.parametrize(
    ("reward", "own", "bonus"), [("mixed", 1, 1), ("intrinsic", 0, 1), ("extrinsic", 1, 0)]
)
def test_the_returned_reward_is_the_one_asked_for(reward, own, bonus):
    seen = drive(wrap(AutoresetMode.NEXT_STEP, reward=reward), AutoresetMode.NEXT_STEP, 50)
    paid = 0.0
    for _, returned, _, _, info in seen[1:]:
        expected = own * info["extrinsic_reward"] + bonus * info["intrinsic_reward"]
        np.testing.assert_allclose(returned, expected, rtol=1e-6)
        paid += info["intrinsic_reward"].sum()
    assert paid > 0


def test_with_zero_extrinsic_reward_the_bonus_alone_makes_the_return():
    config = IntrinsicRewardConfig(normaliser=NormaliserConfig(kind="none"))
    lever = SyncVectorEnv([Lever, Lever])
    envs = IntrinsicRewardWrapper(lever, "RND", encoder=Function(pulled), config=config, weight=0.5)
    envs.reset()
    assert envs.step(np.array([0, 1]))[1].tolist() == [0.0, 0.5]
    assert envs.step(np.array([1, 0]))[1].tolist() == [0.5, 0.0]


def test_same_step_environments_with_dict_observations_give_their_final_ones():
    class Pair(Counter):
        observation_space = gymnasium.spaces.Dict(
            x=Counter.observation_space, y=gymnasium.spaces.Box(0, 9, (2,), np.float32)
        )

        def observe(self):
            return {"x": super().observe(), "y": np.full(2, self.time, np.float32)}

    envs = SyncVectorEnv([Pair, Pair], autoreset_mode=AutoresetMode.SAME_STEP)
    envs = IntrinsicRewardWrapper(envs, "RECODE-AP", config=SMALL)
    envs.reset()
    for _ in range(9):
        envs.step(np.zeros(2, int))
    steps = envs.bonus.history.latest(np.array([0]), 10).steps
    np.testing.assert_array_equal(steps.observation["x"][:, 0, 2], steps.observation["y"][:, 0, 0])
    assert steps.observation["x"][steps.is_last[:, 0], 0, 2].tolist() == [3, 1, 4]


def test_statistics_recorded_inside_stay_the_games_own():
    envs = gymnasium.wrappers.vector.RecordEpisodeStatistics(counters(AutoresetMode.NEXT_STEP))
    envs = IntrinsicRewardWrapper(envs, "RECODE-AP", config=SMALL, weight=1000.0)
    seen = drive(envs, AutoresetMode.NEXT_STEP, 60)
    returns = [
        r for *_, info in seen[1:] if "episode" in info for r in info["episode"]["r"][info["_episode"]]
    ]
    assert 0 < max(returns) <= 8  # four steps of at most 2


def test_a_saved_bonus_continues_beside_the_same_environments(tmp_path):
    envs = wrap(AutoresetMode.NEXT_STEP)
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 3, (80, NUM_ENVS))
    envs.reset(seed=0)
    for action in actions[:40]:
        envs.step(action)
    state = envs.get_state()
    rest = [envs.step(action)[4]["intrinsic_reward"] for action in actions[40:]]
    other = wrap(AutoresetMode.NEXT_STEP, seed=9)
    other.env.reset(seed=0)
    for action in actions[:40]:
        other.env.step(action)
    other.set_state(state)
    np.testing.assert_array_equal(rest, [other.step(a)[4]["intrinsic_reward"] for a in actions[40:]])


def test_a_bonus_loaded_after_a_reset_begins_new_episodes(tmp_path):
    envs = wrap(AutoresetMode.NEXT_STEP)
    envs.reset(seed=0)
    envs.step(np.zeros(NUM_ENVS, int))
    envs.step(np.zeros(NUM_ENVS, int))
    envs.save(tmp_path / "bonus")
    other = wrap(AutoresetMode.NEXT_STEP)
    other.reset(seed=0)
    other.load(tmp_path / "bonus")
    other.step(np.zeros(NUM_ENVS, int))
    rows = other.bonus.history.latest(np.array([2]), 2).steps
    assert rows.is_first[:, 0].tolist() == [True, False]
    assert rows.observation[:, 0, 2].tolist() == [0, 1]


def test_environments_that_do_not_say_how_they_restart_are_refused():
    envs = counters(AutoresetMode.NEXT_STEP)
    envs.metadata = {}
    with pytest.raises(ValueError, match="does not say how it restarts"):
        IntrinsicRewardWrapper(envs, "RND")
    envs.metadata = {"autoreset_mode": "never"}
    with pytest.raises(ValueError, match=r"is 'never'; expected one of AutoresetMode\.NEXT_STEP"):
        IntrinsicRewardWrapper(envs, "RND")


def test_bad_use_is_explained():
    with pytest.raises(ValueError, match="reward is 'both'"):
        wrap(AutoresetMode.NEXT_STEP, reward="both")
    with pytest.raises(RuntimeError, match="before reset"):
        wrap(AutoresetMode.NEXT_STEP).step(np.zeros(NUM_ENVS, int))


def test_gymnasiums_own_rules_for_vector_environments_hold():
    envs = IntrinsicRewardWrapper(gymnasium.make_vec("CartPole-v1", num_envs=4), "RECODE-AP", config=SMALL)
    obs, info = envs.reset(seed=1)
    assert obs in envs.observation_space
    assert isinstance(info, dict)
    for _ in range(40):
        obs, reward, terminated, truncated, info = envs.step(envs.action_space.sample())
        assert obs in envs.observation_space
        assert reward.shape == terminated.shape == truncated.shape == (4,)
        assert reward.dtype == info["extrinsic_reward"].dtype
        assert terminated.dtype == truncated.dtype == np.bool_
    assert envs.unwrapped.metadata == envs.metadata
    envs.close()


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_tuples_and_categories_keep_their_true_last_observations(mode):
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, SyncVectorEnv

    class Pair(Counter):
        observation_space = spaces.Tuple(
            (spaces.Discrete(6), spaces.Dict(t=spaces.Box(0, 9, (1,), np.float32)))
        )

        def observe(self):
            return int(self.time), {"t": np.array([self.time], np.float32)}

    envs = SyncVectorEnv([lambda i=i: Pair(i) for i in range(2)], autoreset_mode=AutoresetMode[mode])
    envs = IntrinsicRewardWrapper(envs, "RND")
    envs.reset(seed=0)
    for _ in range(30):
        envs.step(np.zeros(2, int))
    for copy in range(2):
        num = int(envs.bonus.history.num_rows[copy])
        rows = envs.bonus.history.latest(np.array([copy]), num).steps
        times = rows.observation["0"][:, 0].argmax(-1)
        np.testing.assert_array_equal(times, rows.observation["1/t"][:, 0, 0])
        np.testing.assert_array_equal(rows.is_first[:, 0], times == 0)
        assert ((np.diff(times) == 1) | (times[1:] == 0)).all()
        assert times.max() == 4
