"""The trainer: AdamW by hand, schedules, the slow copy, and states that continue identically."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from oracles.sequences import sample_sequence
from torch import nn

from softcount import store
from softcount.optimiser import OptimiserConfig, parameter_groups
from softcount.representations import TrainerConfig, make_representation
from softcount.representations.features import Representation
from softcount.representations.make import GRID
from softcount.representations.trainer import RepresentationTrainer
from softcount.torsos import make_torso
from softcount.types import ArraySpec, DiscreteActions, Features

SPEC, ACTIONS = ArraySpec((4, 4, 3), "uint8"), DiscreteActions(4)


class Quadratic(Representation):
    """loss = Σ c·w, so that gradients are known."""

    dim = 1

    def __init__(self, accuracy=0.0):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[1.0, 2.0]]))
        self.bias = nn.Parameter(torch.tensor([3.0]))
        self.accuracy = accuracy
        self.num_after = 0

    def initial_state(self, batch):
        return ()

    def represent(self, observation, prev_action, is_first, state):
        return Features(), state

    def loss(self, sequence):
        value = 3 * self.weight[0, 0] + 4 * self.weight[0, 1] + 0 * self.bias.sum()
        return value, {"loss": value.detach(), "accuracy": torch.tensor(self.accuracy)}

    def after_update(self):
        self.num_after += 1


def adam(**settings):
    return TrainerConfig(optimiser=OptimiserConfig(**settings))


def test_one_step_of_adamw_by_hand():
    model = Quadratic()
    trainer = RepresentationTrainer(model, adam(learning_rate=0.1, weight_decay=0.5, max_grad_norm=None))
    metrics = trainer.update(sample_sequence())
    # Adam's first step is lr·sign(g); decay multiplies by 1 − lr·decay before it, on the matrix only.
    expected = [[1.0 * 0.95 - 0.1, 2.0 * 0.95 - 0.1]]
    np.testing.assert_allclose(model.weight.detach(), expected, rtol=1e-5)
    assert model.bias.item() == pytest.approx(3.0)
    assert metrics["gradient_norm"] == pytest.approx(5.0)
    assert model.num_after == 1


def test_gradients_are_clipped_by_their_common_norm():
    model = Quadratic()
    trainer = RepresentationTrainer(model, adam(max_grad_norm=1.0))
    assert trainer.update(sample_sequence())["gradient_norm"] == pytest.approx(5.0)  # before clipping
    np.testing.assert_allclose(model.weight.grad, [[0.6, 0.8]], rtol=1e-5)


def test_biases_gains_and_vectors_do_not_decay():
    torso = make_torso("nfnet", ArraySpec((16, 16, 1), "uint8"))
    decayed, kept = parameter_groups(torso, 0.1)
    names = {id(p): name for name, p in torso.named_parameters()}
    assert decayed["weight_decay"] == 0.1
    assert kept["weight_decay"] == 0.0
    assert all(names[id(p)].endswith("weight") for p in decayed["params"])
    assert all(names[id(p)].endswith(("bias", "gain")) for p in kept["params"])
    assert len(decayed["params"]) + len(kept["params"]) == len(names)
    casm = make_representation("casm", SPEC, ACTIONS, GRID)
    _, kept = parameter_groups(casm, 0.1)
    names = {id(p): name for name, p in casm.named_parameters()}
    kept_names = {names[id(p)] for p in kept["params"]}
    assert {"no_state", "no_action", "transformer.content_bias", "transformer.position_bias"} <= kept_names


def test_the_linear_schedule_falls_to_zero():
    trainer = RepresentationTrainer(
        Quadratic(), replace(adam(learning_rate=1.0), schedule="linear", total_updates=4)
    )
    rates = [trainer.update(sample_sequence())["learning_rate"] for _ in range(6)]
    assert rates == pytest.approx([1.0, 0.75, 0.5, 0.25, 0.0, 0.0])


def test_the_rate_of_the_schedule_is_the_rate_that_is_taken():
    """The gradient never changes, so each of Adam's steps is as long as the rate."""
    model = Quadratic()
    config = adam(learning_rate=0.1, weight_decay=0.0, max_grad_norm=None)
    config = replace(config, schedule="linear", total_updates=4)
    trainer = RepresentationTrainer(model, config)
    walked = 0.0
    for rate in (0.1, 0.075, 0.05, 0.025, 0.0):
        trainer.update(sample_sequence())
        walked += rate
        np.testing.assert_allclose(model.weight.detach(), [[1.0 - walked, 2.0 - walked]], rtol=1e-4)


@pytest.mark.parametrize(("accuracy", "expected"), [(0.5, 1.0), (0.9, 1.0), (0.95, 0.5), (1.0, 0.05)])
def test_saturating_slows_down_in_proportion_to_the_error_left(accuracy, expected):
    trainer = RepresentationTrainer(
        Quadratic(accuracy), replace(adam(learning_rate=1.0), schedule="saturating")
    )
    assert trainer.update(sample_sequence())["learning_rate"] == 1.0  # nothing is known yet
    assert trainer.update(sample_sequence())["learning_rate"] == pytest.approx(expected)


def test_harmonic_learns_at_full_rate_first_and_then_as_one_over_n_down_to_the_floor():
    config = replace(adam(learning_rate=1.0), schedule="harmonic", full_updates=3, rate_floor=0.25)
    trainer = RepresentationTrainer(Quadratic(accuracy=1.0), config)  # whatever the accuracy is
    rates = [trainer.update(sample_sequence())["learning_rate"] for _ in range(14)]
    assert rates == pytest.approx([1.0, 1.0, 1.0, *(3 / n for n in range(4, 13)), 0.25, 0.25])


def test_every_nth_sequence_is_learned_from():
    model = Quadratic()
    trainer = RepresentationTrainer(model, TrainerConfig(update_every=3))
    assert [bool(trainer.update(sample_sequence())) for _ in range(7)] == [False, False, True] * 2 + [False]
    assert (trainer.num_calls, trainer.num_updates, model.num_after) == (7, 2, 2)


def test_the_slow_copy_is_a_mean_first_and_then_a_moving_average():
    model = Quadratic()
    trainer = RepresentationTrainer(model, replace(adam(learning_rate=0.1), acting="slow", slow_step=0.3))
    slow = model.weight.detach().clone()
    for num in (1, 2, 3, 4):
        trainer.update(sample_sequence())
        step = max(0.3, 1 / (num + 1))
        slow += step * (model.weight.detach() - slow)
        torch.testing.assert_close(trainer.acting_state()["weight"], slow)


def test_with_a_power_the_slow_copy_is_a_mean_that_forgets_the_start():
    """Against the mean written out: θ after update i weighs (i + 1)(i + 2), the start 2 (p = 3)."""
    model = Quadratic()
    config = replace(adam(learning_rate=0.1), acting="slow", slow_step=0.01, slow_power=3.0)
    trainer = RepresentationTrainer(model, config)
    seen = [model.weight.detach().clone()]
    for num in range(1, 6):
        trainer.update(sample_sequence())
        seen.append(model.weight.detach().clone())
        weights = torch.tensor([(i + 1.0) * (i + 2.0) for i in range(num + 1)])
        mean = (weights[:, None, None] * torch.stack(seen)).sum(0) / weights.sum()
        torch.testing.assert_close(trainer.acting_state()["weight"], mean)


def test_a_power_falls_no_lower_than_the_step():
    model = Quadratic()
    config = replace(adam(learning_rate=0.1), acting="slow", slow_step=0.6, slow_power=3.0)
    trainer = RepresentationTrainer(model, config)
    slow = model.weight.detach().clone()
    for step in (3 / 4, 0.6, 0.6):  # 3/5 is the step, 3/6 is less
        trainer.update(sample_sequence())
        slow += step * (model.weight.detach() - slow)
        torch.testing.assert_close(trainer.acting_state()["weight"], slow)


def test_the_latest_copy_is_a_copy():
    model = Quadratic()
    trainer = RepresentationTrainer(model)
    state = trainer.acting_state()
    assert torch.equal(state["weight"], model.weight)
    before = state["weight"].clone()
    trainer.update(sample_sequence())
    assert torch.equal(state["weight"], before)


@pytest.mark.parametrize("kind", ["ap", "casm", "casnotm", "byol", "rnd", "rnd-on-ap", "ap+rnd"])
def test_a_state_from_disk_continues_identically(kind, tmp_path):
    config = TrainerConfig(
        acting="slow", schedule="saturating" if "ap" in kind or "cas" in kind else "constant"
    )

    def build(seed):
        return RepresentationTrainer(make_representation(kind, SPEC, ACTIONS, GRID, seed=seed), config)

    sequences = [sample_sequence(SPEC, ACTIONS, seed=seed) for seed in range(4)]
    one, two = build(0), build(1)
    for sequence in sequences[:2]:
        one.update(sequence)
    store.save(tmp_path / "state", one.state_dict(), kind="trainer")
    two.load_state_dict(store.load(tmp_path / "state", kind="trainer"))
    for sequence in sequences[2:]:
        assert one.update(sequence) == two.update(sequence)
    a, b = one.acting_state(), two.acting_state()
    assert a.keys() == b.keys()
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_a_state_is_not_touched_by_further_updates():
    trainer = RepresentationTrainer(make_representation("ap", SPEC, ACTIONS, GRID))
    trainer.update(sample_sequence(SPEC, ACTIONS))
    state = trainer.state_dict()
    moment = state["optimiser"]["0"]["exp_avg"].copy()
    other = RepresentationTrainer(make_representation("ap", SPEC, ACTIONS, GRID))
    other.load_state_dict(state)
    trainer.update(sample_sequence(SPEC, ACTIONS))
    other.update(sample_sequence(SPEC, ACTIONS))
    np.testing.assert_array_equal(state["optimiser"]["0"]["exp_avg"], moment)


def test_arrays_are_as_good_as_tensors():
    from softcount.tensors import to_arrays

    sequence = sample_sequence(SPEC, ACTIONS)
    results = []
    for data in (sequence, to_arrays(sequence)):
        trainer = RepresentationTrainer(make_representation("ap", SPEC, ACTIONS, GRID))
        results.append(trainer.update(data))
    assert results[0] == results[1]


def test_wrong_values_are_named():
    with pytest.raises(ValueError, match="schedule is 'cosine'; expected one of 'constant', 'linear'"):
        TrainerConfig(schedule="cosine")
    with pytest.raises(ValueError, match="slow_step is 0"):
        TrainerConfig(slow_step=0)
    with pytest.raises(TypeError, match="Linear is no Representation"):
        RepresentationTrainer(nn.Linear(2, 2))
