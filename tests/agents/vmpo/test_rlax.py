"""Agreement with rlax where its definitions are the paper's; skipped where rlax is not installed.

rlax ranks and averages masked rows too and clips multipliers inside the loss, so nothing is masked here.
"""

import numpy as np
import pytest
import torch

from softcount.agents.distributions import Categoricals
from softcount.agents.popart import PopArtConfig, Statistics, art
from softcount.agents.vmpo.loss import Episodes, LossConfig, Terms, returns_of, vmpo_loss

rlax = pytest.importorskip("rlax")
jax = pytest.importorskip("jax")
T, B, A = 6, 4, 3


@pytest.fixture(autouse=True)
def _double():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("seed", range(3))
def test_losses(seed):
    rng = np.random.default_rng(seed)
    logits, behaviour = rng.normal(size=(2, T, B, A))
    advantage, action = rng.normal(size=(T, B)), rng.integers(A, size=(T, B))
    eta, alpha, limit, kl_limit = 0.7, 5.0, 0.1, 0.002
    distribution = Categoricals((A,), is_scalar=True)
    ours = torch.tensor(logits, requires_grad=True)
    log_prob = distribution.log_prob(ours, torch.tensor(action))
    distances = distribution.distances(torch.tensor(behaviour), ours)
    nothing = torch.zeros(T, B, dtype=torch.float64)
    terms = Terms(
        nothing, nothing, torch.tensor(advantage), log_prob, distances, nothing == 0, nothing.long()
    )
    numbers = [torch.tensor(eta, dtype=torch.float64), torch.tensor([alpha], dtype=torch.float64)]
    config = LossConfig(temperature_limit=limit, kl_limit=kl_limit)
    losses, _ = vmpo_loss(terms, numbers[0], {"kl": numbers[1]}, config)
    loss, extra = rlax.vmpo_loss(
        sample_log_probs=jax.numpy.array(log_prob.detach().numpy()),
        advantages=jax.numpy.array(advantage),
        temperature_constraint=rlax.LagrangePenalty(jax.numpy.array(eta), limit),
        kl_constraints=[
            (
                jax.numpy.array(distances["kl"][..., 0].detach().numpy()),
                rlax.LagrangePenalty(jax.numpy.array(alpha), kl_limit),
            )
        ],
    )
    assert float(loss.mean()) == pytest.approx(sum(losses.values()).item(), rel=1e-7)
    assert float(extra.temperature_loss.mean()) == pytest.approx(losses["temperature"].item(), rel=1e-7)


def test_returns_within_an_episode():
    rng = np.random.default_rng(0)
    reward, value = rng.normal(size=(2, T + 1, 1))
    nowhere = torch.zeros(T + 1, 1, dtype=torch.bool)
    found = returns_of(
        torch.tensor(reward),
        torch.tensor(value),
        Episodes(nowhere, nowhere, nowhere),
        LossConfig(discount=0.9, trace_discount=0.8),
    )
    expected = rlax.lambda_returns(reward[1:, 0], np.full(T, 0.9), value[1:, 0], 0.8)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-9)


def test_statistics_agree_to_first_order():
    rng = np.random.default_rng(0)
    targets, step = rng.normal(2.0, 3.0, size=20), 1e-7
    zeros, ones = torch.zeros(1, dtype=torch.float64), torch.ones(1, dtype=torch.float64)
    old = Statistics(zeros, ones, ones)
    new = art(old, torch.tensor(targets), torch.zeros(20).long(), torch.ones(20) > 0, PopArtConfig(step=step))
    state = rlax.PopArtState(jax.numpy.zeros(1), jax.numpy.ones(1), jax.numpy.ones(1))
    theirs = rlax.art(state, targets, np.zeros(20, int), step, 1e-2, 1e6)
    np.testing.assert_allclose(new.mean, theirs.shift, rtol=1e-5)
    np.testing.assert_allclose(new.second, theirs.second_moment, rtol=1e-9)
