"""Compositions do what their parts do, and nothing more."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from oracles.sequences import sample_sequence

from softcount.representations import (
    ActionPrediction,
    Both,
    Byol,
    EmbeddingConfig,
    Frozen,
    Function,
    Random,
    RandomDistillation,
    RepresentationTrainer,
    RndConfig,
)
from softcount.types import ArraySpec, DiscreteActions, Features

SPEC, ACTIONS = ArraySpec((5,), "float32"), DiscreteActions(4)
EMBEDDING = EmbeddingConfig(torso="mlp", dim=3)


def ap():
    torch.manual_seed(0)
    return ActionPrediction(SPEC, ACTIONS, embedding=EMBEDDING)


def rnd():
    torch.manual_seed(1)
    return RandomDistillation(SPEC, config=RndConfig(torso="mlp", outputs=4))


def test_both_takes_one_feature_from_each_and_adds_the_losses():
    one, two = ap(), rnd().eval()
    both = Both(embedding=one, surprise=two).eval()
    sequence = sample_sequence(SPEC, ACTIONS)
    observation = sequence.steps.observation[0]
    assert both.represent(observation, None, None, both.initial_state(3))[0] == Features()
    both.after_update()
    features, _ = both.represent(observation, None, None, both.initial_state(3))
    assert torch.equal(features.embedding, one.represent(observation)[0].embedding)
    assert torch.equal(features.surprise, two.represent(observation)[0].surprise)
    loss, metrics = both.loss(sequence)
    assert loss.item() == pytest.approx((one.loss(sequence)[0] + two.loss(sequence)[0]).item())
    assert set(metrics) == {"embedding_loss", "embedding_accuracy", "surprise_loss"}
    assert both.dim == 3


def test_both_passes_updates_and_sequences_on():
    byol = Byol(SPEC, ACTIONS, embedding=EMBEDDING)
    both = Both(embedding=ap(), surprise=byol)
    sequence = sample_sequence(SPEC, ACTIONS)
    byol.eval()
    assert torch.equal(both.surprise(sequence), byol.surprise(sequence))
    byol.embedder.linear.weight.data += 1.0
    before = byol.target.linear.weight.clone()
    both.after_update()
    assert not torch.equal(byol.target.linear.weight, before)


def test_both_shows_all_there_is_to_the_part_that_normalises():
    two = rnd()
    both = Both(embedding=ap(), surprise=two)
    assert both.needs_statistics
    both.learn_statistics(torch.full((4, *SPEC.shape), 3.0))
    assert two.normaliser.count == 4
    assert not both.needs_statistics
    assert not Both(embedding=ap(), surprise=Function(lambda x: x[:, 0])).needs_statistics


def test_both_needs_an_embedding():
    with pytest.raises(ValueError, match="RandomDistillation gives no embedding"):
        Both(embedding=rnd(), surprise=rnd())


def test_frozen_embeds_as_before_and_never_learns():
    inner = ap()
    sequence = sample_sequence(SPEC, ACTIONS)
    before = inner.represent(sequence.steps.observation[0])[0].embedding.detach().clone()
    frozen = Frozen(inner)
    assert RepresentationTrainer(frozen).update(sequence) == {}
    frozen.train()
    assert not inner.training
    assert torch.equal(frozen.represent(sequence.steps.observation[0])[0].embedding, before)
    assert not any(p.requires_grad for p in frozen.parameters())


def test_random_is_an_encoder_that_does_not_learn():
    random = Random(SPEC, embedding=EMBEDDING)
    assert RepresentationTrainer(random).update(sample_sequence(SPEC, ACTIONS)) == {}
    assert random.represent(torch.randn(2, 5))[0].embedding.shape == (2, 3)


def test_a_function_gets_arrays_and_its_shape_is_checked():
    seen = []

    def first_two(observation):
        seen.append(type(observation))
        return observation[:, :2] * 2

    function = Function(first_two, dim=2)
    embedding = function.represent(torch.arange(10.0).reshape(2, 5))[0].embedding
    assert embedding.tolist() == [[0, 2], [10, 12]]
    assert seen == [np.ndarray]
    assert function.embed(torch.zeros(4, 3, 5)).shape == (4, 3, 2)
    with pytest.raises(ValueError, match=r"shape \(2, 2\); expected \(2, 7\)"):
        Function(first_two, dim=7).represent(torch.zeros(2, 5))


def test_a_function_may_give_surprises_of_dict_observations():
    function = Function(lambda o: o["x"].sum(1))
    features, _ = function.represent({"x": torch.ones(2, 3)})
    assert features.surprise.tolist() == [3, 3]
    assert function.dim is None
