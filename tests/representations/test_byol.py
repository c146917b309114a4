"""BYOL-Explore's world model: alignment of horizons, cuts, the slow target."""

from __future__ import annotations

import pytest
import torch
from oracles import networks
from oracles.representations import byol_loss, byol_losses, byol_surprise
from oracles.sequences import sample_sequence

from softcount.representations import Byol, ByolConfig, EmbeddingConfig
from softcount.types import ArraySpec, DiscreteActions

SPEC, ACTIONS = ArraySpec((5,), "float32"), DiscreteActions(4)


def make(horizon=3):
    torch.manual_seed(0)
    config = ByolConfig(horizon=horizon, state_size=7, hidden_sizes=(6,))
    byol = Byol(SPEC, ACTIONS, embedding=EmbeddingConfig(torso="mlp", dim=4), config=config)
    for p in byol.target.parameters():
        p.data += 0.1 * torch.randn(p.shape)  # so that target and encoder differ
    return byol.eval()


def oracle(byol, sequence, b):
    """loss(t, i) of trace b, one GRU step after the other."""
    steps = sequence.steps
    is_first = steps.is_first[:, b].tolist()
    predict, target = networks.byol_predictions(
        networks.numbers(byol.state_dict()),
        steps.observation[:, b].numpy(),
        steps.action[:, b].tolist(),
        steps.prev_action[:, b].tolist(),
        is_first,
        num_actions=4,
    )
    return byol_losses(predict, target, is_first, byol.config.horizon)


@pytest.mark.parametrize("horizon", [1, 3, 8])
@torch.no_grad()
def test_losses_align_start_actions_and_target(horizon):
    byol = make(horizon)
    sequence = sample_sequence(SPEC, ACTIONS)
    per_trace = [oracle(byol, sequence, b) for b in range(3)]
    losses, is_valid = byol.prediction_losses(sequence)
    found = {(b, int(t), int(i) + 1) for i, t, b in is_valid.nonzero().tolist()}
    assert found == {(b, t, i) for b in range(3) for (t, i) in per_trace[b]}
    for b, t, i in found:
        assert losses[i - 1, t, b].item() == pytest.approx(per_trace[b][t, i], rel=1e-4)
    assert byol.loss(sequence)[0].item() == pytest.approx(byol_loss(per_trace), rel=1e-5)
    surprise = byol.surprise(sequence)
    for b in range(3):
        assert surprise[:, b].tolist() == pytest.approx(byol_surprise(per_trace[b], 7), rel=1e-4, abs=1e-7)


def test_which_predictions_exist_by_hand():
    byol = make(2)
    sequence = sample_sequence(SPEC, ACTIONS, time=4, batch=1, ends=((1, 0),))
    _, is_valid = byol.prediction_losses(sequence)
    assert is_valid[:, :, 0].tolist() == [[True, False, True, False], [False, False, False, False]]
    surprise = byol.surprise(sequence)[:, 0]
    assert (surprise > 0).tolist() == [False, True, False, True]


def test_nothing_crosses_an_episodes_end():
    byol = make()
    sequence = sample_sequence(SPEC, ACTIONS, batch=1, ends=((3, 0),))
    before = byol.surprise(sequence)
    changed = sequence.steps.observation.clone()
    changed[:4] += 3.0
    after = byol.surprise(sequence._replace(steps=sequence.steps._replace(observation=changed)))
    torch.testing.assert_close(after[4:], before[4:], rtol=0, atol=0)
    assert (after[1:4] != before[1:4]).all()
    changed = sequence.steps.observation.clone()
    changed[4:] += 3.0
    after = byol.surprise(sequence._replace(steps=sequence.steps._replace(observation=changed)))
    torch.testing.assert_close(after[:4], before[:4], rtol=0, atol=0)


def test_the_target_follows_the_encoder_slowly_and_gets_no_gradient():
    byol = make()
    slow = byol.target.linear.weight.clone()
    fast = byol.embedder.linear.weight
    byol.after_update()
    torch.testing.assert_close(byol.target.linear.weight.data, 0.99 * slow + 0.01 * fast.data)
    byol.loss(sample_sequence(SPEC, ACTIONS))[0].backward()
    assert fast.grad.abs().max() > 0
    assert all(p.grad is None for p in byol.target.parameters())


def test_the_target_starts_as_the_encoder():
    byol = Byol(SPEC, ACTIONS, embedding=EmbeddingConfig(torso="mlp", dim=4))
    x = torch.randn(3, 5)
    assert torch.equal(byol.target(x), byol.embedder(x))


def test_losses_lie_between_0_and_4():
    losses, is_valid = make().prediction_losses(sample_sequence(SPEC, ACTIONS))
    assert losses[is_valid].min() >= 0
    assert losses.max() <= 4


def test_gradients_agree_with_finite_differences():
    byol = make()
    sequence = sample_sequence(SPEC, ACTIONS)
    byol.loss(sequence)[0].backward()
    for parameter in (byol.embedder.linear.weight, byol.open.weight_hh, byol.closed.weight_ih):
        analytic = parameter.grad[1, 2].item()
        values = []
        for change in (1e-2, -1e-2):
            with torch.no_grad():
                parameter[1, 2] += change
                values.append(byol.loss(sequence)[0].item())
                parameter[1, 2] -= change
        assert (values[0] - values[1]) / 2e-2 == pytest.approx(analytic, rel=2e-2, abs=2e-5)


def test_wrong_horizons_are_refused():
    with pytest.raises(ValueError, match="horizon is 0"):
        ByolConfig(horizon=0)
