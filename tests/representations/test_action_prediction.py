"""AP's loss against the oracle, and what it may not look at."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from oracles import networks
from oracles.representations import action_prediction_loss
from oracles.sequences import sample_sequence

from softcount.representations import ActionPrediction, ActionPredictionConfig, EmbeddingConfig
from softcount.types import ArraySpec, DiscreteActions

SPEC, ACTIONS = ArraySpec((5,), "float32"), DiscreteActions(4)


def make(**options):
    torch.manual_seed(0)
    config = ActionPredictionConfig(hidden_sizes=(6,), **options)
    return ActionPrediction(SPEC, ACTIONS, embedding=EmbeddingConfig(torso="mlp", dim=3), config=config)


@pytest.mark.parametrize("last", [None, 2])
def test_the_loss_is_the_mean_cross_entropy_over_transitions(last):
    ap = make(last_transitions=last)
    sequence = sample_sequence(SPEC, ACTIONS)
    steps = sequence.steps
    p = networks.numbers(ap.state_dict())
    expected = action_prediction_loss(
        [
            [networks.embed(networks.part(p, "embedder"), o).tolist() for o in row]
            for row in steps.observation
        ],
        steps.is_first.tolist(),
        steps.is_last.tolist(),
        steps.action.tolist(),
        lambda pair: networks.mlp(networks.part(p, "predictor"), np.array(pair)).tolist(),
        last,
    )
    loss, metrics = ap.loss(sequence)
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    assert metrics["loss"].item() == loss.item()


def test_logits_are_those_that_the_loss_reads():
    ap = make()
    sequence = sample_sequence(SPEC, ACTIONS, time=2, ends=())
    steps = sequence.steps
    logits = ap.logits(steps.observation[0], steps.observation[1])
    expected = torch.nn.functional.cross_entropy(logits, steps.action[0])
    torch.testing.assert_close(ap.loss(sequence)[0], expected)


def test_gradients_agree_with_finite_differences():
    ap = make()
    sequence = sample_sequence(SPEC, ACTIONS)
    loss, _ = ap.loss(sequence)
    loss.backward()
    weight = ap.embedder.linear.weight
    analytic = weight.grad[1, 2].item()
    values = []
    for change in (1e-2, -1e-2):
        with torch.no_grad():
            weight[1, 2] += change
            values.append(ap.loss(sequence)[0].item())
            weight[1, 2] -= change
    assert (values[0] - values[1]) / 2e-2 == pytest.approx(analytic, rel=2e-2, abs=1e-5)


def test_an_observation_between_two_ends_has_no_influence():
    ap = make()
    sequence = sample_sequence(SPEC, ACTIONS)  # row 5 of trace 1 is first and last of its episode
    before = ap.loss(sequence)[0].item()
    sequence.steps.observation[5, 1] += 100.0
    assert ap.loss(sequence)[0].item() == before
    sequence.steps.observation[4, 1] += 100.0
    assert ap.loss(sequence)[0].item() != before


def test_the_action_at_an_episodes_end_has_no_influence():
    ap = make()
    sequence = sample_sequence(SPEC, ACTIONS)
    before = ap.loss(sequence)[0].item()
    sequence.steps.action[2, 0] = (sequence.steps.action[2, 0] + 1) % 4
    assert ap.loss(sequence)[0].item() == before
    sequence.steps.action[1, 0] = (sequence.steps.action[1, 0] + 1) % 4
    assert ap.loss(sequence)[0].item() != before


def test_without_any_transition_the_loss_is_zero():
    sequence = sample_sequence(SPEC, ACTIONS, time=2, batch=1, ends=((0, 0),))
    loss, _ = make().loss(sequence)
    assert loss.item() == 0.0


def test_layer_norm_bounds_the_embedding_and_has_no_parameters():
    ap = ActionPrediction(SPEC, ACTIONS, embedding=EmbeddingConfig(torso="mlp", dim=8, layer_norm=True))
    embedding = ap.represent(100 * torch.randn(4, 5))[0].embedding
    torch.testing.assert_close(embedding.square().sum(-1), torch.full((4,), 8.0), rtol=1e-3, atol=0)
    assert not list(ap.embedder.norm.parameters())
