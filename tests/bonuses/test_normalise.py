"""Each rule against its oracle, and what must hold whatever the rule."""

from __future__ import annotations

import numpy as np
import pytest
from oracles import bonuses as oracle

from softcount.bonuses.normalise import KINDS, NormaliserConfig, make_normaliser

RNG = np.random.default_rng(0)
REWARDS = RNG.gamma(0.5, 2.0, 60)
ENV_IDS = RNG.integers(0, 4, 60)


def run(config, rewards=REWARDS, env_ids=ENV_IDS, cuts=(60,)):
    normaliser = make_normaliser(config)
    start, paid = 0, []
    for size in cuts:
        paid.append(normaliser.normalise(rewards[start : start + size], env_ids[start : start + size]))
        start += size
    return np.concatenate(paid), normaliser


@pytest.mark.parametrize("step", [1e-5, 0.1, 1.0])
def test_reward_std_is_the_debiased_moving_deviation_of_the_rewards_so_far(step):
    paid, _ = run(NormaliserConfig(kind="reward_std", step=step, num_gathered=3))
    np.testing.assert_allclose(paid, oracle.reward_std(REWARDS.tolist(), step, 3), rtol=1e-6)


@pytest.mark.parametrize("discount", [0.0, 0.99])
def test_return_std_filters_forward_per_environment_and_never_resets(discount):
    paid, _ = run(NormaliserConfig(kind="return_std", return_discount=discount, num_gathered=2))
    expected = oracle.return_std(REWARDS.tolist(), ENV_IDS.tolist(), discount, 2)
    np.testing.assert_allclose(paid, expected, rtol=1e-9)


def test_mean_divides_by_the_moving_mean_of_the_rewards_so_far():
    paid, _ = run(NormaliserConfig(kind="mean", step=0.05))
    np.testing.assert_allclose(paid, oracle.by_mean(REWARDS.tolist(), 0.05), rtol=1e-9)


def test_prioritised_pays_what_exceeds_the_moving_mean_batch_by_batch():
    paid, _ = run(NormaliserConfig(kind="prioritised", step=0.01), cuts=(20, 7, 33))
    batches = [REWARDS[:20].tolist(), REWARDS[20:27].tolist(), REWARDS[27:].tolist()]
    np.testing.assert_allclose(paid, np.concatenate(oracle.prioritised(batches, 0.01)), rtol=1e-9, atol=1e-12)
    assert 0 < (paid == 0).mean() < 1


def test_none_pays_the_raw_reward():
    paid, _ = run(NormaliserConfig(kind="none"))
    np.testing.assert_array_equal(paid, REWARDS)


@pytest.mark.parametrize("kind", ["reward_std", "return_std", "mean", "none"])
def test_where_a_stream_is_cut_into_batches_changes_no_bit(kind):
    config = NormaliserConfig(kind=kind, num_gathered=5)
    whole, _ = run(config)
    pieces, _ = run(config, cuts=(1, 9, 30, 20))
    np.testing.assert_array_equal(whole, pieces)


@pytest.mark.parametrize("kind", KINDS)
def test_apply_uses_the_statistics_and_leaves_them_alone(kind):
    _, normaliser = run(NormaliserConfig(kind=kind, num_gathered=5))
    before = normaliser.state_dict()
    first, second = normaliser.apply(REWARDS), normaliser.apply(REWARDS)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_equal(normaliser.state_dict(), before)
    if kind != "prioritised":
        np.testing.assert_allclose(first, REWARDS / normaliser.scale)


@pytest.mark.parametrize("kind", KINDS)
def test_a_loaded_normaliser_continues_bit_for_bit(kind):
    config = NormaliserConfig(kind=kind, num_gathered=5)
    _, normaliser = run(config)
    other = make_normaliser(config)
    other.load_state_dict(normaliser.state_dict())
    more = RNG.gamma(1.0, 1.0, 10)
    ids = RNG.integers(0, 6, 10)
    np.testing.assert_array_equal(normaliser.normalise(more, ids), other.normalise(more, ids))
    np.testing.assert_equal(normaliser.state_dict(), other.state_dict())


@pytest.mark.parametrize("kind", ["reward_std", "return_std"])
def test_nothing_is_paid_until_enough_rewards_are_gathered(kind):
    paid, _ = run(NormaliserConfig(kind=kind, num_gathered=10))
    assert (paid[:10] == 0).all()
    assert (paid[10:] > 0).all()


@pytest.mark.parametrize("kind", ["reward_std", "return_std", "prioritised"])
def test_constant_rewards_do_not_explode(kind):
    constant = np.full(400, 0.7)
    paid, _ = run(NormaliserConfig(kind=kind), rewards=constant, env_ids=np.zeros(400, int), cuts=(400,))
    assert paid.max() <= 100 * (1 + 1e-9)


def test_rewards_of_zero_stay_zero():
    for kind in KINDS:
        paid, _ = run(
            NormaliserConfig(kind=kind), rewards=np.zeros(200), env_ids=np.zeros(200, int), cuts=(200,)
        )
        assert (paid == 0).all()


@pytest.mark.parametrize(
    ("field", "value"),
    [("kind", "rms"), ("step", 0.0), ("floor", 0.0), ("return_discount", 1.0), ("num_gathered", -1)],
)
def test_a_bad_setting_is_refused_by_name(field, value):
    with pytest.raises(ValueError, match=f"NormaliserConfig.{field} is"):
        NormaliserConfig(**{field: value})
