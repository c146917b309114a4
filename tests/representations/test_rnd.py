"""RND: observation statistics, error, what learns; and on top of another representation."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from oracles import networks
from oracles.representations import normalised
from oracles.sequences import sample_sequence
from torch import nn

from softcount.optimiser import OptimiserConfig, parameter_groups
from softcount.representations import (
    ActionPrediction,
    EmbeddingConfig,
    RandomDistillation,
    RepresentationTrainer,
    RndConfig,
    TrainerConfig,
)
from softcount.representations.rnd import NGU_RND, EmbeddingRndConfig, Normaliser
from softcount.types import ArraySpec, DiscreteActions

SPEC, ACTIONS = ArraySpec((5,), "float32"), DiscreteActions(4)


def make(*, is_learned=True, **options):
    torch.manual_seed(0)
    rnd = RandomDistillation(SPEC, config=RndConfig(torso="mlp", outputs=6, hidden_sizes=(32,), **options))
    rnd.is_learned.fill_(is_learned)
    return rnd


def on_ap(*, is_learned=True):
    torch.manual_seed(0)
    ap = ActionPrediction(SPEC, ACTIONS, embedding=EmbeddingConfig(torso="mlp", dim=3))
    rnd = RandomDistillation(on=ap)
    rnd.is_learned.fill_(is_learned)
    return rnd


def test_statistics_are_those_of_all_observations_so_far_however_batched():
    normaliser = Normaliser(ArraySpec((1,), "float32"), clip=1.5)
    batches = [[1.0, 5.0, 2.0], [100.0], [3.0, 4.0]]
    for batch in batches:
        normaliser.learn(torch.tensor(batch)[:, None])
    queries = [3.0, -50.0, 80.0]
    expected = [normalised(batches, x, 1.5) for x in queries]
    assert normaliser(torch.tensor(queries)[:, None])[:, 0].tolist() == pytest.approx(expected, rel=1e-5)


def test_images_without_channels_and_dicts_are_normalised_per_pixel():
    spec = {"a": ArraySpec((2, 2), "uint8"), "b": ArraySpec((3,), "float32")}
    normaliser = Normaliser(spec, 5.0)
    assert normaliser.out_spec == {"a": ArraySpec((2, 2, 1), "float32"), "b": ArraySpec((3,), "float32")}
    observation = {"a": torch.randint(0, 9, (50, 2, 2), dtype=torch.uint8), "b": torch.randn(50, 3) * 7 + 3}
    normaliser.learn(observation)
    out = normaliser(observation)
    torch.testing.assert_close(out["b"].mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(out["a"].std(0, correction=0), torch.ones(2, 2, 1))


def test_the_surprise_is_the_mean_squared_error_and_the_loss_its_mean():
    rnd = make().eval()
    sequence = sample_sequence(SPEC, ACTIONS)
    rows = sequence.steps.observation.flatten(0, 1)
    errors = (
        (rnd.predictor(rows) - rnd.target(rows)).square().mean(-1)
    )  # no statistics yet, nothing beyond ±5
    torch.testing.assert_close(rnd.represent(rows)[0].surprise, errors)
    assert rnd.loss(sequence)[0].item() == pytest.approx(errors.mean().item(), rel=1e-5)
    assert rnd.dim is None


def test_only_the_predictor_learns_and_it_learns_what_it_sees():
    rnd = make()
    target = [p.clone() for p in rnd.target.parameters()]
    trainer = RepresentationTrainer(
        rnd, TrainerConfig(optimiser=OptimiserConfig(learning_rate=3e-3, weight_decay=0.0))
    )
    sequence = sample_sequence(SPEC, ACTIONS)
    first = trainer.update(sequence)["loss"]
    for _ in range(100):
        last = trainer.update(sequence)["loss"]
    assert last < 0.2 * first
    assert all(torch.equal(a, b) for a, b in zip(target, rnd.target.parameters(), strict=True))


def test_surprise_is_the_error_on_observations_normalised_by_all_that_was_learned_from():
    rnd = make(clip=1.5)
    trainer = RepresentationTrainer(rnd, TrainerConfig(optimiser=OptimiserConfig(learning_rate=3e-3)))
    sequences = [sample_sequence(SPEC, ACTIONS, seed=seed) for seed in range(4)]
    for sequence in sequences[:3]:
        steps = sequence.steps._replace(observation=3 * sequence.steps.observation + 7)
        trainer.update(sequence._replace(steps=steps))
    learned = np.concatenate([3 * s.steps.observation.flatten(0, 1).numpy() + 7 for s in sequences[:3]])
    learned = learned.astype(float)
    asked = 4 * sequences[3].steps.observation.flatten(0, 1) + 6
    p = networks.numbers(rnd.state_dict())
    x = np.clip((asked.numpy() - learned.mean(0)) / learned.std(0), -1.5, 1.5)
    expected = [networks.distillation_error(p, row) for row in x]
    with torch.no_grad():
        found = rnd.represent(asked)[0].surprise
    assert found.tolist() == pytest.approx(expected, rel=1e-4)
    assert (np.abs(x) == 1.5).any()


def test_only_training_adds_to_the_statistics():
    rnd = make()
    RepresentationTrainer(rnd, TrainerConfig()).update(sample_sequence(SPEC, ACTIONS))
    before = {name: x.clone() for name, x in rnd.normaliser.state_dict().items()}
    assert before["count"] == 21
    rnd.eval()
    rnd.loss(sample_sequence(SPEC, ACTIONS, seed=1))
    rnd.represent(torch.randn(9, 5))
    assert all(torch.equal(x, before[name]) for name, x in rnd.normaliser.state_dict().items())


def test_a_share_of_the_rows_learns():
    sequence = sample_sequence(SPEC, ACTIONS)
    rows = sequence.steps.observation.flatten(0, 1)
    rnd = make(share=0.5).eval()
    errors = rnd.represent(rows)[0].surprise
    is_used = torch.rand(7, 3, generator=rnd.draws.generator()).flatten() < 0.5
    assert 0 < is_used.sum() < 21
    assert rnd.loss(sequence)[0].item() == pytest.approx(errors[is_used].mean().item(), rel=1e-5)


def test_weights_start_orthogonal():
    rnd = RandomDistillation(ArraySpec((84, 84, 1), "uint8"))
    weight = rnd.predictor[3].weight
    assert weight.shape == (512, 512)
    torch.testing.assert_close(weight @ weight.T, 2 * torch.eye(512), atol=1e-4, rtol=1e-4)
    assert isinstance(rnd.target[0].body[1], nn.LeakyReLU)
    assert len(rnd.target) == 2
    assert [type(m) for m in rnd.predictor][1:] == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]


def test_on_an_embedding_the_error_does_not_train_the_embedding():
    rnd = on_ap()
    sequence = sample_sequence(SPEC, ACTIONS)
    alone = rnd.on.loss(sequence)[0]
    alone.backward()
    expected = rnd.on.embedder.linear.weight.grad.clone()
    rnd.zero_grad()
    loss, metrics = rnd.loss(sequence)
    loss.backward()
    torch.testing.assert_close(rnd.on.embedder.linear.weight.grad, expected)
    embedding = rnd.on.embed(sequence.steps.observation)
    error = (rnd.predictor(embedding) - rnd.target(embedding)).square().mean()
    assert metrics["distillation_loss"].item() == pytest.approx(error.item(), rel=1e-5)
    assert loss.item() == pytest.approx((alone + error).item(), rel=1e-5)
    features, _ = rnd.represent(sequence.steps.observation[0])
    torch.testing.assert_close(features.embedding, embedding[0])
    assert rnd.dim == 3


def test_sizes_on_an_embedding():
    rnd = on_ap()
    assert [m.out_features for m in rnd.target if isinstance(m, nn.Linear)] == [128, 128, 64]
    assert [m.out_features for m in rnd.predictor if isinstance(m, nn.Linear)] == [256, 256, 64]


def test_a_module_of_ones_own_is_not_shared_between_target_and_predictor():
    own = nn.Sequential(nn.Linear(5, 7), nn.ReLU())
    rnd = RandomDistillation(SPEC, config=RndConfig(torso=own, outputs=4, hidden_sizes=()))
    rnd.after_update()
    assert rnd.represent(torch.randn(3, 5))[0].surprise.min() > 0


@pytest.mark.parametrize("build", [make, on_ap])
def test_before_the_first_update_there_are_no_features(build):
    rnd = build(is_learned=False)
    observation = torch.randn(3, 5)
    features, _ = rnd.represent(observation, None, None, rnd.initial_state(3))
    assert features == (None, None, None)
    RepresentationTrainer(rnd).update(sample_sequence(SPEC, ACTIONS))
    assert rnd.represent(observation, None, None, rnd.initial_state(3))[0].surprise.shape == (3,)


def test_statistics_begin_with_all_that_was_shown_and_go_on_with_each_batch_after_the_first():
    rnd = make(is_learned=False)
    trainer = RepresentationTrainer(rnd)
    seen = torch.randn(400, 5) * 3 + 2
    first, second = (sample_sequence(SPEC, ACTIONS, seed=i) for i in (0, 1))
    assert trainer.needs_statistics
    for part in seen.split(150):
        trainer.learn_statistics(part.numpy())
    trainer.update(first)
    torch.testing.assert_close(rnd.normaliser.mean, seen.double().mean(0))
    torch.testing.assert_close(rnd.normaliser.square / 400, seen.double().var(0, correction=0))
    trainer.update(second)
    everything = torch.cat((seen, second.steps.observation.flatten(0, 1))).double()
    torch.testing.assert_close(rnd.normaliser.mean, everything.mean(0))
    torch.testing.assert_close(rnd.normaliser.square / len(everything), everything.var(0, correction=0))
    assert not trainer.needs_statistics


def test_where_nothing_was_shown_the_first_batch_begins_the_statistics():
    rnd = make(is_learned=False)
    sequence = sample_sequence(SPEC, ACTIONS)
    RepresentationTrainer(rnd).update(sequence)
    torch.testing.assert_close(rnd.normaliser.mean, sequence.steps.observation.flatten(0, 1).double().mean(0))


def test_a_large_batch_is_taken_in_by_parts(monkeypatch):
    monkeypatch.setattr("softcount.representations.rnd.NUMBERS_AT_ONCE", 20)
    sizes = []
    add = Normaliser._add
    monkeypatch.setattr(Normaliser, "_add", lambda self, x: (sizes.append(x.numel()), add(self, x)))
    normaliser, x = Normaliser(SPEC, 5.0), torch.randn(43, 5) + 4
    normaliser.learn(x)
    assert max(sizes) <= 20 < sum(sizes) == x.numel()
    torch.testing.assert_close(normaliser.mean, x.double().mean(0))
    torch.testing.assert_close(normaliser.square, 43 * x.double().var(0, correction=0))


def test_the_predictor_is_not_decayed_and_what_it_stands_on_is():
    rnd = on_ap()
    decayed, kept = parameter_groups(rnd, 0.1)
    assert (decayed["weight_decay"], kept["weight_decay"]) == (0.1, 0.0)
    ids = {id(p) for p in decayed["params"]}
    assert not ids & {id(p) for p in rnd.predictor.parameters()}
    assert ids == {id(p) for p in rnd.on.parameters() if p.ndim >= 2}
    assert [group["weight_decay"] for group in parameter_groups(make(), 0.1)] == [0.0]


def test_ngus_predictor_has_ngus_sizes():
    rnd = RandomDistillation(ArraySpec((84, 84, 1), "uint8"), config=NGU_RND)
    for net in (rnd.target, rnd.predictor):
        assert [type(m) for m in net][1:] == [nn.Linear]
        assert net[1].out_features == 128
        assert isinstance(net[0].body[1], nn.ReLU)


def test_wrong_arguments_are_named():
    with pytest.raises(ValueError, match="observation_spec"):
        RandomDistillation()
    with pytest.raises(ValueError, match="RndConfig"):
        RandomDistillation(SPEC, config=EmbeddingRndConfig())
    with pytest.raises(ValueError, match="needs an embedding"):
        RandomDistillation(on=make())
