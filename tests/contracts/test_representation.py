"""One battery over every representation: finite, seeded, batch = one by one, inputs untouched."""

from __future__ import annotations

import copy

import pytest
import torch
from oracles.sequences import sample_sequence

from softcount.representations import KINDS, Frozen, Function, RepresentationTrainer, make_representation
from softcount.representations.make import GRID
from softcount.types import ArraySpec, ContinuousActions, DiscreteActions, MultiDiscreteActions, map_arrays

SPECS = {
    "rgb": ArraySpec((4, 4, 3), "uint8"),
    "palette": ArraySpec((4, 4), "uint8"),
    "dict": {"view": ArraySpec((4, 4, 3), "uint8"), "body": ArraySpec((3,), "float32")},
}
ACTIONS = {
    "discrete": DiscreteActions(4),
    "multi": MultiDiscreteActions((3, 2)),
    "continuous": ContinuousActions((-1.0, 0.0), (1.0, 2.0)),
}
ALL = [*KINDS, "casm+rnd", "frozen", "function"]


def build(kind, spec=SPECS["rgb"], actions=ACTIONS["discrete"], seed=0):
    if kind == "frozen":
        return Frozen(build("ap", spec, actions, seed))
    if kind == "function":
        return Function(
            lambda o: (o["body"] if isinstance(o, dict) else o.reshape(len(o), -1)[:, :3]) * 1.0, dim=3
        )
    model = make_representation(kind, spec, actions, GRID, seed=seed)
    model.after_update()  # RND says nothing before its first update
    return model


def represent(model, steps, t=0, rows=slice(None)):
    observation = map_arrays(lambda x: x[t, rows], steps.observation)
    batch = len(steps.is_first[t, rows])
    with torch.no_grad():
        arguments = (steps.prev_action[t, rows], steps.is_first[t, rows], model.initial_state(batch))
        return model.represent(observation, *arguments)[0]


@pytest.mark.parametrize("actions", ACTIONS)
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("kind", ALL)
def test_features_and_losses_are_finite_and_inputs_are_not_changed(kind, spec, actions):
    model = build(kind, SPECS[spec], ACTIONS[actions])
    sequence = sample_sequence(SPECS[spec], ACTIONS[actions])
    before = copy.deepcopy(sequence)
    features = represent(model, sequence.steps)
    loss, metrics = model.loss(sequence)
    RepresentationTrainer(model).update(sequence)
    map_arrays(lambda a, b: torch.testing.assert_close(a, b, rtol=0, atol=0), before, sequence)
    assert torch.isfinite(loss)
    assert loss.shape == ()
    assert all(torch.isfinite(value).all() for value in metrics.values())
    if model.dim is None:
        assert features.embedding is None
    else:
        assert features.embedding.shape == (3, model.dim)
        assert features.embedding.dtype == torch.float32
        assert torch.isfinite(features.embedding).all()
    if features.surprise is not None:
        assert features.surprise.shape == (3,)
        assert (features.surprise >= 0).all()


@pytest.mark.parametrize("kind", ALL)
def test_a_batch_is_its_rows_one_by_one(kind):
    model = build(kind).eval()
    steps = sample_sequence(SPECS["rgb"], ACTIONS["discrete"]).steps
    together = represent(model, steps)
    for i in range(3):
        alone = represent(model, steps, rows=slice(i, i + 1))
        for a, b in zip(alone, together, strict=True):
            if a is not None:
                torch.testing.assert_close(a[0], b[i], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ALL)
def test_embedding_a_sequence_is_embedding_its_rows(kind):
    model = build(kind).eval()
    steps = sample_sequence(SPECS["rgb"], ACTIONS["discrete"]).steps
    if model.dim is None:
        return
    with torch.no_grad():
        embedding = model.embed(steps.observation)
    torch.testing.assert_close(embedding[2], represent(model, steps, 2).embedding, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ALL)
def test_the_same_seed_learns_the_same(kind):
    metrics = []
    for _ in range(2):
        trainer = RepresentationTrainer(build(kind))
        metrics.append([trainer.update(sample_sequence(SPECS["rgb"], seed=i)) for i in range(2)])
    assert metrics[0] == metrics[1]


@pytest.mark.parametrize("kind", ALL)
def test_the_acting_side_loads_what_the_trainer_publishes(kind):
    trainer = RepresentationTrainer(build(kind))
    trainer.update(sample_sequence(SPECS["rgb"]))
    acting = build(kind, seed=9)
    acting.load_state_dict(trainer.acting_state())
    steps = sample_sequence(SPECS["rgb"], seed=5).steps
    ours, theirs = represent(acting.eval(), steps), represent(trainer.representation.eval(), steps)
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None and b is None) or torch.equal(a, b)


@pytest.mark.parametrize("kind", ["ap", "casm", "casnotm", "byol"])
def test_what_happens_in_another_trace_does_not_matter(kind):
    """Changing trace 1 changes no gradient with respect to the observations of trace 0."""
    model = build(kind, ArraySpec((4, 4, 3), "float32")).eval()
    gradients = []
    for change in (0.0, 3.0):
        sequence = sample_sequence(ArraySpec((4, 4, 3), "float32"), ACTIONS["discrete"])
        sequence.steps.observation[:, 1] += change
        observation = sequence.steps.observation.requires_grad_(True)
        model.loss(sequence)[0].backward()
        gradients.append(observation.grad[:, 0].clone())
    assert gradients[0].abs().max() > 0
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-3, atol=1e-6)
