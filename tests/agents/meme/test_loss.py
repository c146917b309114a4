from dataclasses import replace

import numpy as np
import pytest
import torch
from oracles import meme_loss as oracle

from softcount.agents.meme import loss as meme
from softcount.agents.meme.loss import Batch, Ladders, LossConfig, RunningMoments, meme_loss
from softcount.agents.meme.network import Outputs
from softcount.agents.returns import rescale, unrescale
from softcount.types import is_transition

T, B, N, A = 6, 4, 3, 4
BETA, DISCOUNT = [0.0, 0.4, 1.0], [0.99, 0.9, 0.6]
LADDERS = Ladders(torch.tensor(BETA, dtype=torch.float64), torch.tensor(DISCOUNT, dtype=torch.float64))
CONFIG = LossConfig(trust_region=0.5, kl_limit=0.4, soft_tolerance=0.3, trace_discount=0.9, sigma_step=0.1)
ZERO = RunningMoments(*(torch.zeros(n, dtype=torch.float64) for n in (N, N, ())))


def make(seed=0):
    g = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64)

    online = Outputs(*(normal(T + 1, B, N, A).requires_grad_() for _ in range(3)))
    target = Outputs(*(x.detach() + 0.8 * normal(T + 1, B, N, A) for x in online))
    is_last = torch.rand(T + 1, B, generator=g) < 0.2
    is_first = torch.zeros_like(is_last)
    is_first[1:] = is_last[:-1]
    batch = Batch(
        action=torch.randint(A, (T + 1, B), generator=g),
        mixture=torch.randint(N, (T + 1, B), generator=g),
        reward=normal(T + 1, B),
        intrinsic=normal(T + 1, B).abs(),
        is_first=is_first,
        is_last=is_last,
        is_terminal=is_last & (torch.rand(T + 1, B, generator=g) < 0.5),
        weights=torch.rand(B, generator=g, dtype=torch.float64) + 0.5,
    )
    return online, target, batch


def gradients(online, target, batch, config, moments=ZERO):
    found = meme_loss(online, target, batch, LADDERS, moments, config)
    grads = torch.autograd.grad(found.loss, list(online), allow_unused=True)
    return found, [torch.zeros_like(x) if g is None else g for g, x in zip(grads, online, strict=True)]


def ask_oracle(online, target, batch, moments, config):
    rows = {
        "action": batch.action,
        "mixture": batch.mixture,
        "reward": batch.reward,
        "intrinsic": batch.intrinsic,
        "first": batch.is_first,
        "last": batch.is_last,
        "terminal": batch.is_terminal,
        "weights": batch.weights,
    }
    return oracle.meme_loss(
        [x.tolist() for x in online],
        [x.tolist() for x in target],
        {name: x.tolist() for name, x in rows.items()},
        BETA,
        DISCOUNT,
        tuple(x.tolist() for x in moments),
        vars(config),
    )


@pytest.mark.parametrize("seed", range(5))
def test_loss_gradients_priorities_and_moments_equal_the_oracles(seed):
    online, target, batch = make(seed)
    moments = ZERO
    if seed % 2:  # a running σ that is larger than the batch's for some mixtures
        moments = RunningMoments(
            *(torch.tensor(x, dtype=torch.float64) for x in ([0.1, 0, -0.2], [0.1, 2.0, 0.3], 0.3))
        )
    found, grads = gradients(online, target, batch, CONFIG, moments)
    expected = ask_oracle(online, target, batch, moments, CONFIG)
    assert found.loss.item() == pytest.approx(expected["loss"], rel=1e-9)
    np.testing.assert_allclose(found.priorities, expected["priorities"], rtol=1e-9)
    for found_moment, expected_moment in zip(found.moments, expected["moments"], strict=True):
        np.testing.assert_allclose(found_moment, expected_moment, rtol=1e-9, atol=1e-12)
    for found_grad, expected_grad in zip(grads, expected["gradients"], strict=True):
        np.testing.assert_allclose(found_grad, expected_grad, rtol=1e-8, atol=1e-12)
    assert min(expected["masked"]) > 0  # both limits were at work


def test_priorities_of_all_mixtures_equal_the_oracles_and_change_nothing_else():
    online, target, batch = make(3)
    config = replace(CONFIG, priority_of="all")
    found, grads = gradients(online, target, batch, config)
    expected = ask_oracle(online, target, batch, ZERO, config)
    np.testing.assert_allclose(found.priorities, expected["priorities"], rtol=1e-9)
    usual, usual_grads = gradients(online, target, batch, CONFIG)
    assert (found.priorities != usual.priorities).all()
    for a, b in zip([found.loss, *grads], [usual.loss, *usual_grads], strict=True):
        assert (a == b).all()


@pytest.mark.parametrize("floor", [0.01, 3.0])
def test_in_units_of_their_size_values_and_rewards_of_any_size_give_the_same_loss(floor):
    config = replace(CONFIG, sigma_floor=floor, rescale_epsilon=None)
    online, target, batch = make(3)
    usual = meme_loss(online, target, batch, LADDERS, ZERO, config)

    def small(outputs):
        return outputs._replace(
            q_extrinsic=outputs.q_extrinsic.detach() * 1e-4, q_intrinsic=outputs.q_intrinsic.detach() * 1e-4
        )

    little = batch._replace(reward=batch.reward * 1e-4, intrinsic=batch.intrinsic * 1e-4)
    found = meme_loss(small(online), small(target), little, LADDERS, ZERO, config, value_unit=1e-4)
    np.testing.assert_allclose(found.priorities, usual.priorities.detach(), rtol=1e-9)
    for name in ("loss", "value_loss", "trusted"):
        assert found.metrics[name].item() == pytest.approx(usual.metrics[name].item(), rel=1e-9)
    assert 0 < usual.metrics["trusted"].item() < 1
    swallowed = meme_loss(small(online), small(target), little, LADDERS, ZERO, config)
    assert swallowed.priorities.max() < 0.1 * usual.priorities.max()


def test_the_last_row_only_bootstraps():
    online, target, batch = make()
    _, grads = gradients(online, target, batch, CONFIG)
    assert all((g[-1] == 0).all() for g in grads)
    online.q_extrinsic.data[-1] += 3
    found, _ = gradients(online, target, batch, CONFIG)
    assert found.loss != gradients(*make(), CONFIG)[0].loss


def test_pairs_across_an_episode_end_count_nowhere():
    online, target, batch = make()
    ends = batch.is_last[:-1]
    assert ends.any()
    _, grads = gradients(online, target, batch, CONFIG)
    assert all((g[:-1][ends] == 0).all() for g in grads)
    batch.action[:-1][ends] = (batch.action[:-1][ends] + 1) % A
    batch.mixture[:-1][ends] = (batch.mixture[:-1][ends] + 1) % N
    assert gradients(online, target, batch, CONFIG)[0].loss == gradients(*make(), CONFIG)[0].loss


def test_trust_region_masks_only_what_pushes_further_out():
    q, far_below, near = torch.tensor(5.0), torch.tensor(1.0), torch.tensor(4.5)
    up, down, radius = torch.tensor(9.0), torch.tensor(0.0), torch.tensor(2.0)
    assert meme.leaves_trust_region(q, far_below, up, radius)
    assert not meme.leaves_trust_region(q, far_below, down, radius)  # brings q back
    assert not meme.leaves_trust_region(q, near, up, radius)  # still inside
    assert meme.leaves_trust_region(-q, -far_below, -up, radius)


def test_trust_region_off_restores_the_masked_gradients():
    online, target, batch = make()
    _, limited = gradients(online, target, batch, CONFIG)
    _, free = gradients(online, target, batch, replace(CONFIG, trust_region=None))
    changed = limited[0] != free[0]
    assert changed.any()
    assert (limited[0][changed] == 0).all()
    torch.testing.assert_close(limited[2], free[2])


def test_kl_limit_off_restores_the_masked_distillation():
    online, target, batch = make()
    _, limited = gradients(online, target, batch, CONFIG)
    _, free = gradients(online, target, batch, replace(CONFIG, kl_limit=None))
    changed = (limited[2] != free[2]).any(-1)
    assert changed.any()
    assert (limited[2][changed] == 0).all()
    torch.testing.assert_close(limited[0], free[0])


def test_distillation_alone_trains_the_policy_and_nothing_else_does():
    online, target, batch = make()
    _, on = gradients(online, target, batch, CONFIG)
    _, off = gradients(online, target, batch, replace(CONFIG, distillation_weight=0.0))
    assert on[2].abs().max() > 0
    assert off[2].abs().max() == 0
    torch.testing.assert_close(on[0], off[0])
    _, double = gradients(online, target, batch, replace(CONFIG, distillation_weight=2.0))
    torch.testing.assert_close(double[2], 2 * on[2])


def test_distillation_pulls_towards_the_greedy_action_of_the_combined_value():
    online, target, batch = make()
    _, grads = gradients(online, target, batch, replace(CONFIG, kl_limit=None))
    q = online.q_extrinsic + LADDERS.beta[:, None] * online.q_intrinsic
    greedy = torch.nn.functional.one_hot(q.argmax(-1), A).bool()
    real = grads[2].abs().sum(-1) > 0
    assert (grads[2][real][greedy[real]] < 0).all()
    assert (grads[2][real][~greedy[real]] > 0).all()


def test_normalisation_divides_gradients_by_sigma_squared():
    online, target, batch = make()
    config = replace(CONFIG, trust_region=None)
    found, on = gradients(online, target, batch, config)
    _, off = gradients(online, target, batch, replace(config, normalise=False))
    y = meme.td_targets(
        (online.q_extrinsic + LADDERS.beta[:, None] * online.q_intrinsic).detach(),
        online.logits.detach(), batch, LADDERS, config,
    )  # fmt: skip
    q = (online.q_extrinsic + LADDERS.beta[:, None] * online.q_intrinsic)[:-1]
    error = q.gather(-1, batch.action[:-1, :, None, None].expand(-1, -1, N, 1)).squeeze(-1) - y
    real = ~batch.is_last[:-1]
    sigma = torch.stack([error[..., j][real].std(correction=0) for j in range(N)])
    torch.testing.assert_close(on[0], off[0] / sigma[:, None] ** 2)
    assert found.metrics["sigma"].item() == pytest.approx(sigma.mean().item())


def test_sigma_is_the_largest_of_running_batch_and_floor():
    def scale(running, batch, floor):
        moments = RunningMoments(torch.zeros(1), torch.tensor([0.5 * running**2]), torch.tensor(0.5))
        return meme.td_scale(moments, (torch.ones(1), torch.tensor([batch**2 + 1.0])), floor).item()

    assert scale(3.0, 2.0, 0.01) == pytest.approx(3.0)
    assert scale(1.0, 2.0, 0.01) == pytest.approx(2.0)
    assert scale(0.001, 0.0, 0.01) == pytest.approx(0.01)


def test_running_sigma_has_no_start_up_bias():
    moments = ZERO
    for _ in range(3):
        batch = (torch.full((N,), 1.0), torch.full((N,), 5.0))
        moments = meme.update_moments(moments, batch, 0.01)
    quiet = (torch.zeros(N), torch.zeros(N))
    assert meme.td_scale(moments, quiet, 0.01).tolist() == pytest.approx([2.0] * N)


def test_cross_mixture_training_reaches_mixtures_that_did_not_act():
    online, target, batch = make()
    batch = batch._replace(mixture=torch.zeros_like(batch.mixture))
    config = replace(CONFIG, trust_region=None, kl_limit=None)
    _, on = gradients(online, target, batch, config)
    _, off = gradients(online, target, batch, replace(config, cross_mixture=False))
    assert on[0][:, :, 1:].abs().max() > 0
    assert off[0][:, :, 1:].abs().max() == 0
    torch.testing.assert_close(on[0][:, :, 0], (0.5 + 0.5 / N) * off[0][:, :, 0])
    _, more = gradients(online, target, batch, replace(config, behaviour_weight=0.8))
    torch.testing.assert_close(more[0][:, :, 0], (0.8 + 0.2 / N) * off[0][:, :, 0])


def test_the_exploiting_mixture_ignores_novelty_and_the_others_do_not():
    online, target, batch = make()
    config = replace(CONFIG, trust_region=None, normalise=False, kl_limit=None)
    _, before = gradients(online, target, batch, config)
    _, after = gradients(online, target, batch._replace(intrinsic=batch.intrinsic + 5), config)
    torch.testing.assert_close(before[0][:, :, 0], after[0][:, :, 0])
    assert (before[1][:, :, 0] == 0).all()
    assert (before[0][:, :, 2] - after[0][:, :, 2]).abs().max() > 1e-3


@pytest.mark.parametrize(
    "change",
    [
        {"trace_discount": 0.0},
        {"return_form": "watkins"},
        {"return_form": "peng"},
        {"soft_tolerance": 0.0},
        {"policy_temperature": 1.0},
        {"rescale_epsilon": None},
        {"rescale_epsilon": 0.1},
        {"combine": "raw"},
    ],
    ids=str,
)
def test_each_switch_of_the_targets_changes_the_value_gradient_and_not_the_distillation(change):
    online, target, batch = make()
    config = replace(CONFIG, trust_region=None)
    _, before = gradients(online, target, batch, config)
    _, after = gradients(online, target, batch, replace(config, **change))
    assert (before[0] - after[0]).abs().max() > 1e-4
    if "combine" not in change:
        torch.testing.assert_close(before[2], after[2])


def test_retrace_uses_the_behaviours_probability():
    online, target, batch = make()
    config = replace(CONFIG, return_form="retrace")
    found = [
        meme_loss(
            online, target, batch._replace(behaviour_prob=p * torch.ones(T + 1, B)), LADDERS, ZERO, config
        ).loss
        for p in (1.0, 0.01)
    ]
    assert (found[0] - found[1]).abs() > 1e-4


def test_values_combined_between_the_rescalings():
    online, _, _ = make()
    found = meme.combine_values(online, LADDERS.beta, replace(CONFIG, combine="raw"))
    expected = rescale(unrescale(online.q_extrinsic) + LADDERS.beta[:, None] * unrescale(online.q_intrinsic))
    torch.testing.assert_close(found, expected)


def test_importance_weights_scale_each_traces_gradient():
    online, target, batch = make()
    _, before = gradients(online, target, batch, CONFIG)
    weights = batch.weights.clone()
    weights[1] *= 3
    _, after = gradients(online, target, batch._replace(weights=weights), CONFIG)
    torch.testing.assert_close(after[0][:, 1], 3 * before[0][:, 1])
    torch.testing.assert_close(after[2][:, 0], before[2][:, 0])


def test_priorities_mix_the_largest_and_the_mean_of_real_steps():
    error = torch.tensor([[1.0, 8.0], [4.0, 2.0], [100.0, 5.0]])
    valid = torch.tensor([[True, True], [True, True], [False, True]])
    found = meme.trace_priorities(error, valid, 0.9)
    np.testing.assert_allclose(found, [0.9 * 4 + 0.1 * 2.5, 0.9 * 8 + 0.1 * 5])


def test_a_trace_of_nothing_but_episode_ends_is_harmless():
    online, target, batch = make()
    nothing = batch._replace(is_last=torch.ones_like(batch.is_last), is_first=torch.ones_like(batch.is_first))
    found, grads = gradients(online, target, nothing, CONFIG)
    assert found.loss == 0
    assert all((g == 0).all() for g in grads)
    assert torch.isfinite(found.priorities).all()


def test_the_policys_gain_is_0_for_chance_1_for_greedy_and_negative_for_the_worst():
    q = torch.tensor([0.0, 1.0, 5.0]).expand(2, 1, 1, 3).clone()
    valid = torch.tensor([[True], [False]])
    q[1] = torch.tensor([9.0, 0.0, 0.0])  # does not count: it is no transition
    even, best, worst = torch.zeros(3), torch.tensor([0.0, 0.0, 50.0]), torch.tensor([50.0, 0.0, 0.0])
    for logits, gain in ((even, 0.0), (best, 1.0), (worst, -2 / 3)):
        found = meme.policy_gain(logits.expand(2, 1, 1, 3), q, valid, CONFIG)
        assert float(found) == pytest.approx(gain, abs=1e-6)
    mild = torch.log(torch.tensor([1.0, 1.0, 2.0])) * CONFIG.policy_temperature  # half of it on the best
    assert float(meme.policy_gain(mild.expand(2, 1, 1, 3), q, valid, CONFIG)) == pytest.approx(0.75 / 3)
    assert float(meme.policy_gain(even.expand(2, 1, 1, 3), torch.zeros(2, 1, 1, 3), valid, CONFIG)) == 0.0


def test_the_policys_gain_is_reported_and_trains_nothing():
    online, target, batch = make()
    found = meme_loss(online, target, batch, LADDERS, ZERO, CONFIG)
    valid = is_transition(batch.is_first, batch.is_last)
    q = (online.q_extrinsic + torch.tensor(BETA)[:, None] * online.q_intrinsic)[:-1]
    gain = found.metrics["policy_gain"]
    assert not gain.requires_grad
    assert float(gain) == pytest.approx(float(meme.policy_gain(online.logits[:-1], q, valid, CONFIG)))


def test_values_of_the_first_and_the_last_mixture_are_reported_over_all_real_steps():
    online, target, batch = make()
    metrics = meme_loss(online, target, batch, LADDERS, ZERO, CONFIG).metrics
    q = (online.q_extrinsic + torch.tensor(BETA)[:, None] * online.q_intrinsic).detach()
    rows = [(t, b) for t in range(T) for b in range(B) if not batch.is_last[t, b]]
    for name, mixture in (("q_exploit", 0), ("q_explore", N - 1)):
        expected = sum(float(q[t, b, mixture].max()) for t, b in rows) / len(rows)
        assert float(metrics[name]) == pytest.approx(expected), name
