"""The one object for any loop: streams, pay, schedule, state, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from integrations.worlds import LENGTHS, Counter

from softcount import store
from softcount.bonuses import NormaliserConfig
from softcount.integrations import IntrinsicReward, IntrinsicRewardConfig, Linear
from softcount.memory import RecodeConfig
from softcount.representations.compose import Function
from softcount.representations.trainer import TrainerConfig

NUM_ENVS = 3
SMALL = IntrinsicRewardConfig(
    memory=RecodeConfig(size=50, neighbours=3, warmup_atoms=10),
    normaliser=NormaliserConfig(kind="mean"),
    steps_per_update=15,
    first_update=30,
    batch_size=4,
    sequence_length=5,
    window=5,
    history_size=300,
)
NAMES = ["RECODE-AP", "RECODE-CASM", "RECODE-BYOL", "RND", "RNDonAP", "NGU-AP", "EMM-AP", "BYOL-Explore"]


def make(name="RECODE-AP", num_envs=NUM_ENVS, **options):
    options = {"config": SMALL, "seed": 0, "autoreset_mode": "same_step", **options}
    return IntrinsicReward(
        name, Counter.observation_space, Counter.action_space, num_envs=num_envs, **options
    )


class Loop:
    """A hand-written loop over `Counter`s that restarts environments at once."""

    def __init__(self, seed=0):
        self.envs = [Counter(i) for i in range(NUM_ENVS)]
        self.rng = np.random.default_rng(seed)
        self.obs = np.stack([env.reset()[0] for env in self.envs])

    def step(self, bonus):
        actions = self.rng.integers(0, 3, NUM_ENVS)
        results = [env.step(a) for env, a in zip(self.envs, actions)]
        arrived = np.stack([result[0] for result in results])
        terminated, truncated = (np.array([result[i] for result in results]) for i in (2, 3))
        rewards = bonus.step(self.obs, actions, arrived, terminated, truncated)
        self.obs = arrived.copy()
        for row in np.flatnonzero(terminated | truncated):
            self.obs[row] = self.envs[row].reset()[0]
        return rewards


class Nothing:
    def step(self, *arguments):
        return np.zeros(NUM_ENVS)


def run(bonus, loop, steps):
    return np.stack([loop.step(bonus) for _ in range(steps)])


@pytest.mark.parametrize("name", NAMES)
def test_every_bonus_pays_finite_rewards_after_its_representation_has_learnt(name):
    bonus = make(name)
    rewards = run(bonus, Loop(), 80)
    assert rewards.shape == (80, NUM_ENVS)
    assert rewards.dtype == np.float32
    assert np.isfinite(rewards).all()
    assert (rewards[:10] == 0).all()
    assert bonus.trainer.num_updates > 5
    if name not in ("RND", "NGU-AP", "EMM-AP"):  # which need 100 rewards, and 10 steps of an episode, first
        assert rewards[20:].max() > 0


@pytest.mark.parametrize("name", ["RECODE-AP", "NGU-AP", "BYOL-Explore"])
def test_a_saved_bonus_continues_bit_for_bit(name, tmp_path):
    bonus, loop, same = make(name), Loop(), Loop()
    run(bonus, loop, 45)
    bonus.save(tmp_path / "bonus")
    other = make(name, seed=1).load(tmp_path / "bonus")
    for _ in range(45):
        same.step(Nothing())  # brings the other loop to the same place
    np.testing.assert_array_equal(run(bonus, loop, 40), run(other, same, 40))


def test_a_loaded_bonus_knows_which_environments_are_about_to_restart(tmp_path):
    bonus, no = make(autoreset_mode="next_step"), np.zeros(NUM_ENVS, bool)
    obs, action = np.zeros((NUM_ENVS, 3), np.float32), np.ones(NUM_ENVS, int)
    bonus.step(obs, action, obs + 1, np.array([True, False, False]), no)
    bonus.save(tmp_path / "bonus")
    other = make(autoreset_mode="next_step", seed=1).load(tmp_path / "bonus")
    other.step(obs + 1, action, obs + 2, no, no)
    newest = other.history.latest(np.arange(NUM_ENVS), 1).steps
    assert newest.is_first[0].tolist() == [True, False, False]
    assert newest.prev_action[0].tolist() == [0, 1, 1]


def test_equal_seeds_pay_equally_and_other_seeds_do_not():
    one, two, other = (run(make(seed=seed), Loop(), 60) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one, two)
    assert (one != other).any()


def test_the_callers_random_numbers_are_left_alone():
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    expected = torch.rand(3), np.random.rand(3)  # noqa: NPY002
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    for name in ("RECODE-CASM", "NGU-AP"):
        run(make(name), Loop(), 40)
    assert torch.equal(torch.rand(3), expected[0])
    np.testing.assert_array_equal(np.random.rand(3), expected[1])  # noqa: NPY002


def test_streams_hold_each_observation_once_with_the_flags_of_its_episode():
    bonus = make()
    run(bonus, Loop(), 40)
    for copy in range(NUM_ENVS):
        num = int(bonus.history.num_rows[copy])
        steps = bonus.history.latest(np.array([copy]), num).steps
        rows = steps.observation[:, 0]
        expected = [
            (copy, episode, time)
            for episode in range(30)
            for time in range(LENGTHS[(episode + copy) % 3] + 1)
        ]
        assert [tuple(row) for row in rows] == expected[:num]
        length = np.array([LENGTHS[(int(episode) + copy) % 3] for episode in rows[:, 1]])
        np.testing.assert_array_equal(steps.is_first[:, 0], rows[:, 2] == 0)
        np.testing.assert_array_equal(steps.is_last[:, 0], rows[:, 2] == length)
        np.testing.assert_array_equal(steps.is_terminal[:, 0], (rows[:, 2] == length) & (rows[:, 1] % 2 == 0))


def test_the_next_step_mode_sees_the_same_streams():
    same_step, next_step = make(), make(autoreset_mode="next_step")
    run(same_step, Loop(), 40)
    envs, obs = [Counter(i) for i in range(NUM_ENVS)], None
    obs, is_dead = np.stack([env.reset()[0] for env in envs]), np.zeros(NUM_ENVS, bool)
    for t in range(60):
        arrived, ended, cut = obs.copy(), np.zeros(NUM_ENVS, bool), np.zeros(NUM_ENVS, bool)
        for i, env in enumerate(envs):
            if is_dead[i]:
                arrived[i] = env.reset()[0]
            else:
                arrived[i], _, ended[i], cut[i], _ = env.step(0)
        rewards = next_step.step(obs, np.full(NUM_ENVS, t % 3), arrived, ended, cut)
        assert (rewards[is_dead] == 0).all()
        obs, is_dead = arrived, ended | cut
    for copy in range(NUM_ENVS):
        num = int(min(same_step.history.num_rows[copy], next_step.history.num_rows[copy]))
        one, two = (
            b.history._gather(np.array([copy]), np.array([0]), num).steps for b in (same_step, next_step)
        )
        assert num > 40
        np.testing.assert_array_equal(one.observation, two.observation)
        for flag in ("is_first", "is_last", "is_terminal"):
            np.testing.assert_array_equal(getattr(one, flag), getattr(two, flag))
        assert (two.prev_action[two.is_first] == 0).all()


def test_the_weight_follows_its_schedule():
    plain, weighted = make(), make(weight=Linear(1.0, 0.0, first_step=0, last_step=240))
    expected, rewards = run(plain, Loop(), 90), run(weighted, Loop(), 90)
    factors = np.clip(1 - np.arange(90) * NUM_ENVS / 240, 0, 1)[:, None]
    np.testing.assert_allclose(rewards, expected * factors, rtol=1e-5)
    assert weighted.metrics()["weight"] == 0


def test_score_changes_nothing():
    bonus, twin, loop, other = make(), make(), Loop(), Loop()
    run(bonus, loop, 60), run(twin, other, 60)
    scores = bonus.score(np.array([[0, 1, 1], [900, 900, 900]], np.float32))
    assert scores.shape == (2,)
    np.testing.assert_array_equal(scores, bonus.score(np.array([[0, 1, 1], [900, 900, 900]], np.float32)))
    np.testing.assert_array_equal(run(bonus, loop, 20), run(twin, other, 20))


def test_byol_explore_cannot_score_single_observations():
    with pytest.raises(ValueError, match="is surprised by sequences"):
        make("BYOL-Explore").score(np.zeros((1, 3), np.float32))


def test_a_representation_of_ones_own_stands_in_for_the_name():
    function = Function(lambda obs: obs[:, :2], dim=2)
    bonus = make(encoder=function)
    rewards = run(bonus, Loop(), 30)
    assert bonus.is_paying
    assert (rewards[10:] > 0).any()
    atoms = bonus.bonus.memory.atoms
    assert atoms.shape[1] == 2
    assert set(atoms[:10, 0].round().astype(int)) <= {0, 1, 2}


def test_an_encoder_of_ones_own_is_trained():
    encoder = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.ReLU())
    encoder.out_features = 8
    before = encoder[0].weight.detach().clone()
    run(make(encoder=encoder), Loop(), 40)
    assert not torch.equal(before, encoder[0].weight)


def test_channels_first_images_dicts_and_other_action_spaces_are_taken():
    rng, none = np.random.default_rng(0), np.zeros(2, bool)
    cases = [
        (spaces.Box(0, 255, (3, 40, 40), np.uint8), spaces.Discrete(2), lambda: np.array([0, 1])),
        (
            spaces.Box(0, 255, (7, 7, 3), np.uint8),
            spaces.MultiDiscrete([2, 3]),
            lambda: np.zeros((2, 2), int),
        ),
        (
            spaces.Dict(x=spaces.Box(-1, 1, (4,)), image=spaces.Box(0, 255, (8, 8, 3), np.uint8)),
            spaces.Box(-1, 1, (2,)),
            lambda: rng.uniform(-1, 1, (2, 2)).astype(np.float32),
        ),
    ]
    for space, action_space, act in cases:
        bonus = IntrinsicReward(
            "RECODE-AP", space, action_space, num_envs=2, config=SMALL, autoreset_mode="same_step"
        )
        obs = _sample_two(space)
        for _ in range(30):
            arrived = _sample_two(space)
            rewards = bonus.step(obs, act(), arrived, none, none)
            obs = arrived
        assert np.isfinite(rewards).all()
        assert bonus.trainer.num_updates > 0


def test_channels_first_images_are_turned_and_not_cut_up():
    space = spaces.Box(0, 255, (3, 4, 5), np.uint8)
    bonus = IntrinsicReward("RECODE-AP", space, spaces.Discrete(2), num_envs=2, encoder="mlp", config=SMALL)
    image = np.arange(120, dtype=np.uint8).reshape(2, 3, 4, 5)
    turned = bonus.inputs.observation(image, "obs", 2)
    assert turned.shape == (2, 4, 5, 3)
    for copy, channel, row, column in np.ndindex(image.shape):
        assert turned[copy, row, column, channel] == image[copy, channel, row, column]


def _sample_two(space):
    if isinstance(space, spaces.Dict):
        return {key: _sample_two(part) for key, part in space.spaces.items()}
    return np.stack([space.sample(), space.sample()])


def test_tensors_are_taken_like_arrays():
    one, two, none = make(), make(), torch.zeros(NUM_ENVS, dtype=torch.bool)
    obs, arrived = torch.zeros(NUM_ENVS, 3), torch.ones(NUM_ENVS, 3)
    action = torch.zeros(NUM_ENVS, dtype=torch.long)
    a = one.step(obs, action, arrived, none, none)
    b = two.step(obs.numpy(), action.numpy(), arrived.numpy(), none.numpy(), none.numpy())
    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(one.history.observation, two.history.observation)


OBS, NONE, ACT = np.zeros((NUM_ENVS, 3), np.float32), np.zeros(NUM_ENVS, bool), np.zeros(NUM_ENVS, int)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((OBS[:2], ACT, OBS, NONE, NONE), r"obs has shape \(2, 3\); expected \(3, 3\)"),
        ((OBS, ACT, OBS[:, :2], NONE, NONE), r"next_obs has shape \(3, 2\); expected \(3, 3\)"),
        (
            (OBS, ACT[:1], OBS, NONE, NONE),
            r"actions are int64 of shape \(1,\); expected int64 of shape \(3,\)",
        ),
        ((OBS, ACT + 0.5, OBS, NONE, NONE), "actions are float64"),
        ((OBS, ACT, OBS, NONE[:2], NONE), r"terminated is bool of shape \(2,\); expected 3 booleans"),
        ((OBS, ACT, OBS, NONE, np.array(False)), r"truncated is bool of shape \(\)"),
        ((OBS, ACT, OBS, np.full(3, 0.5), NONE), "terminated is float64"),
        ((OBS, ACT, OBS * np.nan, NONE, NONE), "next_obs holds NaN"),
        (({"a": OBS}, ACT, OBS, NONE, NONE), "obs has"),
    ],
)
def test_a_step_that_does_not_fit_is_refused_and_changes_nothing(arguments, says):
    bonus, twin = make(), make()
    with pytest.raises((ValueError, TypeError), match=says):
        bonus.step(*arguments)
    np.testing.assert_array_equal(run(bonus, Loop(), 30), run(twin, Loop(), 30))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": "RECORD-AP"}, "did you mean 'RECODE'"),
        ({"name": "MEME"}, "pays no bonus from observations"),
        ({"num_envs": 0}, "num_envs is 0"),
        ({"autoreset_mode": "sometimes"}, "expected 'next_step' or 'same_step'"),
        ({"encoder": "resnet"}, "torso is 'resnet'"),
    ],
)
def test_bad_arguments_are_refused(change, says):
    with pytest.raises((ValueError, TypeError), match=says):
        make(**change)


def test_a_batched_or_missing_space_is_explained():
    with pytest.raises(TypeError, match=r"envs\.single_observation_space"):
        IntrinsicReward("RND", None, Counter.action_space, num_envs=1)
    with pytest.raises(TypeError, match="cannot act in"):
        IntrinsicReward("RND", Counter.observation_space, spaces.Text(3), num_envs=1)


def test_mixed_up_streams_are_noticed():
    bonus = make(autoreset_mode="next_step")
    bonus.step(OBS, ACT, OBS + 1, ~NONE, NONE)
    with pytest.raises(ValueError, match=r"obs of environment 0 after its episode's end .*'same_step'"):
        bonus.step(OBS, ACT, OBS + 1, NONE, NONE)  # already restarted: the loop is a same-step one
    with pytest.raises(ValueError, match="environment 0 ended twice in a row"):
        bonus.step(OBS + 1, ACT, OBS, ~NONE, NONE)
    bonus.reset()
    bonus.step(OBS + 7, ACT, OBS, NONE, NONE)  # after a reset anything may come


def test_resuming_begins_episodes_only_where_the_observation_is_another():
    bonus = make()
    bonus.step(OBS, ACT, OBS + 1, NONE, NONE)
    changed = OBS + 1
    changed[1] = 5
    bonus.resume(changed)
    bonus.step(changed, ACT, OBS + 2, NONE, NONE)
    assert bonus.history.num_rows.tolist() == [3, 4, 3]
    steps = bonus.history.latest(np.array([1]), 4).steps
    assert steps.is_first[:, 0].tolist() == [True, False, True, False]


def test_a_file_of_another_bonus_is_refused(tmp_path):
    make().save(tmp_path / "bonus")
    with pytest.raises(store.StoreError, match="was saved with name RECODE-AP; this one has RECODE-CASM"):
        make("RECODE-CASM").load(tmp_path / "bonus")
    with pytest.raises(store.StoreError, match="num_envs 3; this one has 2"):
        make(num_envs=2).load(tmp_path / "bonus")


def test_a_slow_copy_embeds_other_than_the_net_in_training():
    slow = make(config=IntrinsicRewardConfig(**{**vars(SMALL), "trainer": TrainerConfig(acting="slow")}))
    latest = make(config=IntrinsicRewardConfig(**{**vars(SMALL), "trainer": TrainerConfig(acting="latest")}))
    run(slow, Loop(), 60), run(latest, Loop(), 60)
    trained = slow.trainer.representation.state_dict()
    acting = slow._acting.state_dict()
    assert any(not torch.equal(trained[key], acting[key]) for key in trained)
    published = slow.trainer.acting_state()
    assert all(torch.equal(acting[key], published[key]) for key in published)
    assert latest._acting is latest.trainer.representation


def test_metrics_are_plain_numbers():
    bonus = make("NGU-CASM")
    run(bonus, Loop(), 40)
    metrics = bonus.metrics()
    assert {"weight", "steps", "bonus/reward", "representation/gradient_norm"} <= set(metrics)
    assert all(type(value) is float for value in metrics.values())


def test_updates_come_on_schedule_and_the_first_makes_up_for_those_before():
    bonus, loop = make(), Loop()
    counts = []
    for _ in range(30):
        loop.step(bonus)
        counts.append(bonus.trainer.num_updates)
    steps = NUM_ENVS * np.arange(1, 31)
    np.testing.assert_array_equal(counts, np.where(steps >= 30, steps // 15, 0))
    eager = make(config=IntrinsicRewardConfig(**{**vars(SMALL), "first_updates": 7}))
    run(eager, Loop(), 10)
    assert eager.trainer.num_updates == 7


@pytest.mark.parametrize("name", ["RND", "NGU-AP"])
def test_observation_statistics_begin_with_all_that_was_seen(name):
    bonus, loop = make(name), Loop()
    while bonus.trainer.num_updates == 0:
        before = bonus.bonus.state_dict()
        assert (run(bonus, loop, 1) == 0).all()
    seen = np.concatenate([np.asarray(part) for part in bonus.history.observations()])
    assert len(seen) == bonus.history.num_rows.sum() >= SMALL.first_update
    assert (before["num_errors"] if name == "NGU-AP" else before["normaliser"]["average"]["weight"]) == 0
    fresh = make(name)
    for part in bonus.history.observations():
        fresh.trainer.learn_statistics(part)
    parts = [bonus.trainer.representation, fresh.trainer.representation]
    ours, expected = ((part.surprising if name == "NGU-AP" else part).normaliser for part in parts)
    assert int(expected.count) == len(seen)
    np.testing.assert_allclose(expected.mean, seen.astype(np.float64).mean(0), rtol=1e-9)
    assert int(ours.count) >= len(seen)  # updates that were made up for have added their batches


def test_what_is_asked_before_the_first_update_is_worth_nothing():
    bonus = make("RND")
    assert bonus.score(Loop().obs).tolist() == [0, 0, 0]


@pytest.mark.parametrize(("rule", "is_paid"), [("paid", True), ("unpaid", False), ("skipped", False)])
def test_byol_explore_pays_deaths_as_the_settings_say(rule, is_paid):
    bonus, loop = make("BYOL-Explore", config=replace(SMALL, terminal_observations=rule)), Loop()
    paid, counted = [], []
    observe = bonus.bonus.observe
    bonus.bonus.observe = lambda features, *rest: (
        counted.append(len(features.surprise)),
        observe(features, *rest),
    )[1]
    take_in = bonus.take_in

    def remember(obs, actions, arrived, terminated, truncated, env_ids=None):
        rewards = take_in(obs, actions, arrived, terminated, truncated)
        paid.extend(rewards[terminated].tolist())
        return rewards

    bonus.take_in = remember
    run(bonus, loop, 400)
    assert len(paid) > 20
    assert (max(paid) > 0) == is_paid
    assert sum(counted) > 0


def test_what_was_reported_is_reported_after_loading(tmp_path):
    bonus, loop = make(), Loop()
    run(bonus, loop, 60)
    bonus.save(tmp_path / "bonus")
    other = make(seed=3).load(tmp_path / "bonus")
    assert "representation/loss" in bonus.metrics()
    assert other.metrics() == bonus.metrics()


def test_a_time_step_of_the_memory_is_one_of_all_environments():
    assert make(num_envs=5).bonus.config.memory.embeddings_per_step == 5


def test_it_says_once_that_nothing_is_paid_yet_and_once_that_it_is(caplog):
    bonus, loop = make(), Loop()
    paid, was_paying = [], []
    for _ in range(30):
        was_paying.append(bonus.is_paying)
        paid.append(loop.step(bonus))
    lines = [record.getMessage() for record in caplog.records if record.name == "softcount"]
    assert len(lines) == 2
    assert lines[0].startswith("RECODE-AP pays nothing for about the first 40 steps")  # 30 and 10 atoms
    first = next(i for i in range(30) if paid[i].max() > 0)
    assert lines[1].startswith("RECODE-AP pays from step ")
    assert abs(int(lines[1].split()[4]) - 3 * first) <= 6
    assert not any(was_paying[:first])
    assert all(was_paying[first + 2 :])
    assert bonus.metrics()["is_paying"] == 1.0


def test_environments_that_step_one_by_one_have_the_streams_of_those_that_step_together():
    together, one_by_one = make(num_envs=2), make(num_envs=2)
    obs = np.zeros((2, 3), np.float32)
    no = np.zeros(2, bool)
    for t in range(8):
        new, actions = np.full((2, 3), t + 1, np.float32), np.array([t % 3, 1])
        is_over = np.array([t == 4, False])
        together.step(obs, actions, new, is_over, no)
        for i in (1, 0):
            one = slice(i, i + 1)
            one_by_one.step(obs[one], actions[one], new[one], is_over[one], no[one], env_ids=[i])
        obs = np.where(is_over[:, None], 0, new).astype(np.float32)
    assert together.num_steps == one_by_one.num_steps == 16
    for name in ("observation", "prev_action", "action", "flags", "num_rows"):
        np.testing.assert_array_equal(getattr(together.history, name), getattr(one_by_one.history, name))
    for wrong in ([0, 0], [2], [], [0.5]):
        with pytest.raises(ValueError, match="env_ids are"):
            together.step(obs[:1], [0], obs[:1], [False], [False], env_ids=wrong)


def test_atoms_follow_the_representation_where_they_are_told_to():
    distances = {}
    for every in (0, 5):
        bonus, loop = make(config=replace(SMALL, reembed_every=every)), Loop()
        run(bonus, loop, 200)
        assert bonus.trainer.num_updates % 5 == 0
        (memory,) = bonus.bonus.memories().values()
        if every:
            founding = bonus.bonus.founding_observations(0, len(memory))
            state = bonus._acting.initial_state(len(memory))
            none, first = np.zeros(len(memory), np.int64), np.ones(len(memory), bool)
            features, _ = bonus._represent(founding, none, first, state)
            distances[every] = np.abs(memory.atoms - features.embedding).max()
    assert distances[5] < 1e-5


def test_a_pickled_bonus_pays_on_as_if_nothing_had_happened():
    import pickle

    bonus, loop = make(), Loop()
    run(bonus, loop, 60)
    other = pickle.loads(pickle.dumps(bonus))
    one, two = Loop(5), Loop(5)
    for each, own in ((bonus, one), (other, two)):
        each.reset()
        own.paid = [own.step(each) for _ in range(20)]
    np.testing.assert_array_equal(one.paid, two.paid)
    assert np.max(one.paid) > 0


@pytest.mark.parametrize(
    ("space", "value"),
    [
        (spaces.Discrete(4, start=1), np.array([1, 4])),
        (spaces.MultiDiscrete([2, 3]), np.array([[0, 2], [1, 0]])),
        (spaces.Tuple((spaces.Discrete(2), spaces.MultiBinary(3))), (np.array([0, 1]), np.ones((2, 3)))),
    ],
)
@pytest.mark.parametrize("name", ["RECODE-AP", "RND", "NGU-CASM"])
def test_categories_are_learnt_from_and_paid(space, value, name):
    config = replace(SMALL, first_update=12, batch_size=2, sequence_length=3)
    actions = spaces.Discrete(3, start=-1)
    bonus = IntrinsicReward(name, space, actions, num_envs=2, config=config, autoreset_mode="same_step")
    no = np.zeros(2, bool)
    for _ in range(20):
        rewards = bonus.step(value, np.array([-1, 1]), value, no, no)
    assert bonus.trainer.num_updates > 0
    assert np.isfinite(rewards).all()
    assert set(np.unique(bonus.history.action)) <= {0, 2}


def test_spaces_that_cannot_be_read_are_refused_when_the_bonus_is_made():
    for space in (spaces.Text(3), spaces.Sequence(spaces.Discrete(2)), spaces.Discrete(10**6)):
        with pytest.raises(TypeError, match="cannot observe"):
            IntrinsicReward("RND", space, spaces.Discrete(2), num_envs=1)
    with pytest.raises(TypeError, match="cannot act in"):
        IntrinsicReward("RND", spaces.Discrete(2), spaces.Text(3), num_envs=1)
