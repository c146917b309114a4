import numpy as np
import pytest
from oracles import bandit as oracle

from softcount import store
from softcount.agents.meme.bandit import Bandit, BanditConfig, best_arm, merge, upper_bounds

KINDS = [BanditConfig(kind="discounted", discount=0.9), BanditConfig(kind="window", window=7)]


@pytest.mark.parametrize("config", KINDS, ids=lambda config: config.kind)
def test_statistics_and_bounds_equal_those_of_the_whole_history(config):
    rng = np.random.default_rng(0)
    bandit, history = Bandit(4, config, seed=1), []
    for _ in range(60):
        arm, gain = int(rng.choice([0, 1, 3], p=[0.6, 0.3, 0.1])), float(rng.normal(3, 2))
        bandit.update(arm, gain)
        history.append((arm, gain))
        counts, sums = oracle.statistics(history, 4, config.kind, 0.9, 7)
        found = bandit.statistics()
        np.testing.assert_allclose(found.counts, counts)
        np.testing.assert_allclose(found.sums, sums)
        expected = oracle.bounds(history, 4, config.kind, 0.9, 7, bonus=2.0)
        np.testing.assert_allclose(upper_bounds(found, 2.0), expected)
    assert expected[2] == np.inf


@pytest.mark.parametrize("config", KINDS, ids=lambda config: config.kind)
def test_greedy_choices_take_the_highest_bound(config):
    config = BanditConfig(kind=config.kind, discount=0.9, window=7, epsilon=0.0)
    bandit, history = Bandit(3, config, seed=5), []
    for n in range(40):
        bounds = oracle.bounds(history, 3, config.kind, 0.9, 7, bonus=1.0)
        arm = bandit.choose()
        assert bounds[arm] == pytest.approx(max(bounds))
        gain = (0.2, 0.9, 0.5)[arm] + 0.1 * (n % 3)
        bandit.update(arm, gain)
        history.append((arm, gain))


def test_every_arm_is_pulled_once_before_any_is_pulled_twice():
    orders = set()
    for seed in range(6):
        bandit = Bandit(5, BanditConfig(epsilon=0.0), seed=seed)
        arms = []
        for _ in range(5):
            arms.append(bandit.choose())
            bandit.update(arms[-1], 100.0)
        assert sorted(arms) == [0, 1, 2, 3, 4]
        orders.add(tuple(arms))
    assert len(orders) > 1  # a fleet of bandits does not march in step


def test_epsilon_is_the_share_of_uniform_choices():
    bandit = Bandit(4, BanditConfig(epsilon=0.2, bonus=0.0), seed=0)
    for arm in range(4):
        bandit.update(arm, float(arm))
    arms = np.array([bandit.choose() for _ in range(8000)])
    np.testing.assert_allclose(np.bincount(arms, minlength=4) / 8000, [0.05, 0.05, 0.05, 0.85], atol=0.02)


def test_both_kinds_follow_a_change_of_the_best_arm():
    for config in (
        BanditConfig(discount=0.95, epsilon=0.2),
        BanditConfig(kind="window", window=40, epsilon=0.2),
    ):
        bandit = Bandit(3, config, seed=2)
        for n in range(400):
            arm = bandit.choose()
            bandit.update(arm, 10.0 * (arm == (0 if n < 200 else 2)))
            if n == 199:
                assert bandit.best_arm() == 0
        assert bandit.best_arm() == 2


def test_normalisation_gives_the_bonus_the_scale_of_the_returns():
    bandit = Bandit(2, BanditConfig())
    for gain in (1000.0, 3000.0):
        bandit.update(0, gain)
    statistics = bandit.statistics()
    mean = statistics.sums[0] / statistics.counts[0]
    plain, scaled = upper_bounds(statistics, 1.0)[0], upper_bounds(statistics, 1.0, normalise=True)[0]
    assert plain == pytest.approx(mean + 1 / np.sqrt(statistics.counts[0]))
    assert scaled == pytest.approx(mean / 1000.0 + 1 / np.sqrt(statistics.counts[0]), rel=1e-4)


def test_the_evaluator_plays_the_best_mean_of_all_bandits_together():
    first, second = (Bandit(3, BanditConfig(discount=1.0), seed=n) for n in range(2))
    first.update(0, 5.0)
    for gain in (0.0, 0.0, 0.0):
        second.update(0, gain)
    second.update(2, 3.0)
    assert first.best_arm() == 0
    together = merge([first.statistics(), second.statistics()])
    np.testing.assert_allclose(together.counts, [4, 0, 1])
    np.testing.assert_allclose(together.sums, [5, 0, 3])
    assert best_arm(together) == 2


def test_without_pulls_and_in_ties_the_most_exploiting_arm_is_best():
    bandit = Bandit(3, BanditConfig(discount=1.0))
    assert bandit.best_arm() == 0
    for arm in (2, 1):
        bandit.update(arm, 0.0)
    assert bandit.best_arm() == 1


@pytest.mark.parametrize("config", KINDS, ids=lambda config: config.kind)
def test_a_restored_bandit_goes_on_alike(config, tmp_path):
    bandit = Bandit(4, config, seed=3)
    for _ in range(11):
        bandit.update(bandit.choose(), float(bandit.rng.random()))
    store.save(tmp_path / "bandit.safetensors", bandit.state_dict(), kind="bandit")
    other = Bandit(4, config, seed=99)
    other.load_state_dict(store.load(tmp_path / "bandit.safetensors", kind="bandit"))
    for _ in range(30):
        arm = bandit.choose()
        assert other.choose() == arm
        for one in (bandit, other):
            one.update(arm, float(arm))
    np.testing.assert_array_equal(bandit.statistics().sums, other.statistics().sums)


def test_wrong_settings_are_refused():
    with pytest.raises(ValueError, match="arm is 4; expected 0 to 3"):
        Bandit(4).update(4, 0.0)
    for wrong in ({"discount": 0.0}, {"window": 0}, {"epsilon": 1.5}, {"kind": "thompson"}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} is"):
            Bandit(2, BanditConfig(**wrong))
    with pytest.raises(ValueError, match="num_arms is 0"):
        Bandit(0)
