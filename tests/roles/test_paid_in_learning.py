"""The learner: what is paid in learning, with which model, for which rows; and whose statistics it shows."""

import copy
from typing import NamedTuple

import numpy as np
import pytest
import torch
from oracles.bonuses import prioritised
from oracles.sequences import sample_sequence

from softcount.bonuses import BYOL_EXPLORE, Surprise
from softcount.optimiser import OptimiserConfig
from softcount.representations import Byol, EmbeddingConfig, RepresentationTrainer, TrainerConfig
from softcount.roles.learner import Learner
from softcount.torsos import NfNetConfig
from softcount.torsos.nfnet import Block
from softcount.types import ArraySpec, DiscreteActions, Sample

SPEC, ACTIONS = ArraySpec((5,), "float32"), DiscreteActions(4)
TIME, BATCH = 9, 4


class Call(NamedTuple):
    sequence: object
    weights: object
    intrinsic_targets: object


class Recorder:
    """An agent that learns nothing and keeps what it was given."""

    def __init__(self):
        self.calls = []

    def update(self, sequence, weights, intrinsic_targets):
        self.calls.append(Call(sequence, weights, intrinsic_targets))
        return np.ones(BATCH), {}


def sample(seed=0, spec=SPEC):
    sequence = sample_sequence(spec, ACTIONS, time=TIME, batch=BATCH, seed=seed)
    return Sample(sequence, np.arange(BATCH), np.ones(BATCH))


def learner(rule="paid", spec=SPEC, torso="mlp"):
    torch.manual_seed(0)
    byol = Byol(spec, ACTIONS, embedding=EmbeddingConfig(torso=torso, dim=3))
    trainer = RepresentationTrainer(byol, TrainerConfig(optimiser=OptimiserConfig(learning_rate=0.05)))
    return Learner(Recorder(), trainer, bonus=Surprise(BYOL_EXPLORE), terminal_observations=rule)


def expected_pay(surprise, steps, rule):
    """BYOL-Explore's pay by the oracle: over the rows that count, row 0 and first rows never."""
    is_counted = ~steps.is_first.numpy()
    is_counted[0] = False
    is_terminal = steps.is_terminal.numpy()
    assert (is_terminal & is_counted).any()
    if rule == "skipped":
        is_counted &= ~is_terminal
    paid = np.zeros(surprise.shape)
    paid[is_counted] = prioritised([surprise[is_counted].tolist()], BYOL_EXPLORE.normaliser.step)[0]
    if rule == "unpaid":
        paid[is_terminal] = 0.0
    return paid


@pytest.mark.parametrize("rule", ["paid", "unpaid", "skipped"])
def test_a_batch_is_paid_by_the_model_as_the_batch_found_it_and_only_where_something_was_predicted(rule):
    learns = learner(rule)
    found = copy.deepcopy(learns.trainer.representation).eval()
    one = sample()
    surprise = found.surprise(one.sequence).numpy()
    learns(one)
    assert not torch.equal(found.predictor[0].weight, learns.trainer.representation.predictor[0].weight)
    targets = learns.agent.calls[0].intrinsic_targets
    np.testing.assert_allclose(targets, expected_pay(surprise, one.sequence.steps, rule), rtol=1e-5)
    assert (targets[0] == 0).all()
    assert targets.max() > 0


def test_pay_is_made_in_evaluation_mode():
    spec = ArraySpec((16, 16, 3), "uint8")
    torso = NfNetConfig(blocks=(4,), channels=(8,), strides=(1,), drop_rate=0.9)
    learns = learner(spec=spec, torso=torso)
    for block in learns.trainer.representation.embedder.torso.modules():
        if isinstance(block, Block):
            block.skip_gain.data.fill_(20.0)  # it starts at 0, where leaving a block out changes nothing
    learns.trainer.representation.train()
    found = copy.deepcopy(learns.trainer.representation).eval()
    one = sample(spec=spec)
    one.sequence.steps.observation.mul_(40)  # colours that can be told apart
    surprise = found.surprise(one.sequence)
    assert not torch.allclose(copy.deepcopy(found).train().surprise(one.sequence), surprise, rtol=1e-2)
    learns(one)
    expected = expected_pay(surprise.numpy(), one.sequence.steps, "paid")
    np.testing.assert_allclose(learns.agent.calls[0].intrinsic_targets, expected, rtol=1e-4, atol=1e-6)


def test_only_a_representation_that_normalises_is_shown_all_there_is():
    assert not learner().needs_statistics()
    assert not Learner(Recorder(), None).needs_statistics()
