"""CASM: its loss by hand, what may reach a prediction, and the leak test."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from oracles import networks
from oracles.representations import cross_entropy
from oracles.sequences import sample_sequence

from softcount.optimiser import OptimiserConfig
from softcount.representations import Casm, CasmConfig, EmbeddingConfig, RepresentationTrainer, TrainerConfig
from softcount.representations.gated_transformer import GatedTransformerConfig
from softcount.representations.masking import draw_masks
from softcount.types import ArraySpec, DiscreteActions

SPEC, ACTIONS = ArraySpec((5,), "float32"), DiscreteActions(4)
SMALL = GatedTransformerConfig(width=16, num_heads=2, hidden_sizes=(16,), gate_bias=0.0)


def make(seed=0, **options):
    torch.manual_seed(seed)
    config = CasmConfig(transformer=SMALL, hidden_sizes=(8,), action_dim=6, **options)
    casm = Casm(SPEC, ACTIONS, embedding=EmbeddingConfig(torso="mlp", dim=4), config=config, seed=seed)
    return casm.eval()  # in evaluation the masks are the same at every call


def test_the_papers_table_is_the_default():
    config = CasmConfig()
    assert (config.mask_rate, config.num_masks, config.action_dim) == (0.8, 4, 32)
    assert config.hidden_sizes == (128,)
    assert config.target == "residual"


@pytest.mark.parametrize("options", [{}, {"target": "figure", "mask_rate": 0.5}, {"mask": False}])
def test_the_loss_predicts_each_action_from_the_right_difference(options):
    casm = make(**options)
    sequence = sample_sequence(SPEC, ACTIONS)
    steps = sequence.steps
    with torch.no_grad():
        embedding = casm.embed(steps.observation)
        if casm.config.mask:
            hides = draw_masks(steps.is_first, 4, casm.config.mask_rate, casm.draws.generator())
            z = casm._guess(embedding, steps.prev_action, steps.is_first, hides)
        else:
            hides = torch.zeros(1, 7, 3, dtype=torch.bool)
            z = casm._guess(embedding, steps.prev_action, steps.is_first, None)
        losses = []
        for n in range(len(z)):
            for t in range(6):
                for b in range(3):
                    if steps.is_first[t + 1, b] or steps.is_last[t, b]:
                        continue
                    if casm.config.target == "figure":
                        if hides[n, t + 1, b]:
                            continue
                        difference = z[n, t + 1, b] - z[n, t, b]
                    else:
                        difference = embedding[t + 1, b] - z[n, t, b]
                    losses.append(cross_entropy(casm.predictor(difference).tolist(), int(steps.action[t, b])))
    loss, _ = casm.loss(sequence)
    assert loss.item() == pytest.approx(sum(losses) / len(losses), rel=1e-5)


@pytest.mark.parametrize("options", [{}, {"target": "figure"}, {"mask": False}])
def test_the_whole_network_follows_its_equations(options, monkeypatch):
    """From observations to the loss, under masks that are drawn here."""
    casm = make(**options)
    sequence = sample_sequence(SPEC, ACTIONS)
    steps = sequence.steps
    hides = torch.rand(4, 7, 3, generator=torch.Generator().manual_seed(1)) < 0.6
    hides[:, 0] = False  # there the incoming action is not known, so the state is shown
    hides[:, steps.is_first] = False
    asked = []
    monkeypatch.setattr("softcount.representations.casm.draw_masks", lambda *a: asked.append(a) or hides)
    p = networks.numbers(casm.state_dict())
    losses = []
    for n in range(4 if casm.config.mask else 1):
        for b in range(3):
            mask = hides[n, :, b].tolist() if casm.config.mask else None
            is_first = steps.is_first[:, b].tolist()
            embedding, z = networks.casm_guesses(
                p, steps.observation[:, b].numpy(), steps.prev_action[:, b].tolist(), is_first, mask
            )
            for t in range(6):
                if is_first[t + 1] or (casm.config.target == "figure" and mask[t + 1]):
                    continue
                later = z[t + 1] if casm.config.target == "figure" else embedding[t + 1]
                logits = networks.mlp(networks.part(p, "predictor"), later - z[t])
                losses.append(cross_entropy(logits.tolist(), int(steps.action[t, b])))
    loss, _ = casm.loss(sequence)
    assert loss.item() == pytest.approx(sum(losses) / len(losses), rel=1e-6)
    if casm.config.mask:
        assert torch.equal(asked[0][0], steps.is_first)
        assert asked[0][1:3] == (casm.config.num_masks, casm.config.mask_rate) == (4, 0.8)


@pytest.mark.parametrize("options", [{}, {"mask": False}])
def test_a_guess_never_sees_the_action_it_helps_to_predict_nor_the_future(options):
    casm = make(**options)
    steps = sample_sequence(SPEC, ACTIONS, ends=()).steps
    hides = draw_masks(steps.is_first, 4, 0.5, torch.Generator().manual_seed(0)) if casm.config.mask else None

    def guess(observation, prev_action):
        with torch.no_grad():
            return casm._guess(casm.embed(observation), prev_action, steps.is_first, hides)

    before = guess(steps.observation, steps.prev_action)
    observation, prev_action = steps.observation.clone(), steps.prev_action.clone()
    observation[4:] += 10.0
    prev_action[4:] = (prev_action[4:] + 1) % 4  # a_3 is the incoming action of token 4
    after = guess(observation, prev_action)
    torch.testing.assert_close(after[:, :4], before[:, :4], rtol=0, atol=0)
    assert (after[:, 4:] - before[:, 4:]).abs().max() > 1e-4


def test_hidden_halves_have_no_influence():
    casm = make()
    steps = sample_sequence(SPEC, ACTIONS, ends=()).steps
    hides = torch.zeros(1, 7, 3, dtype=torch.bool)
    hides[0, 2] = True  # state 2 hidden, so its action shown; all other actions hidden

    def guess(observation, prev_action):
        with torch.no_grad():
            return casm._guess(casm.embed(observation), prev_action, steps.is_first, hides)

    before = guess(steps.observation, steps.prev_action)
    observation, prev_action = steps.observation.clone(), steps.prev_action.clone()
    observation[2] += 10.0
    prev_action[[0, 1, 3, 4, 5, 6]] = (prev_action[[0, 1, 3, 4, 5, 6]] + 1) % 4
    torch.testing.assert_close(guess(observation, prev_action), before, rtol=0, atol=0)
    prev_action[2] = (prev_action[2] + 1) % 4
    assert (guess(observation, prev_action)[:, 2] - before[:, 2]).abs().max() > 1e-4


@pytest.mark.parametrize("options", [{}, {"target": "figure"}, {"mask": False}])
def test_nothing_crosses_an_episodes_end(options):
    casm = make(**options)
    sequence = sample_sequence(SPEC, ACTIONS, batch=1, ends=((3, 0),))

    def gradient(rows):
        """How the predictions of the rows' transitions depend on each observation."""
        observation = sequence.steps.observation.clone().requires_grad_(True)
        is_last = sequence.steps.is_last.clone()
        is_last[[t for t in range(7) if t not in rows]] = True  # leaves only these transitions
        steps = sequence.steps._replace(observation=observation, is_last=is_last)
        casm.loss(sequence._replace(steps=steps))[0].backward()
        return observation.grad.abs().amax((1, 2))

    after = gradient([4, 5])
    assert (after[:4] == 0).all()
    assert after[4:].max() > 0
    assert (gradient([0, 1, 2])[4:] == 0).all()


def test_gradients_agree_with_finite_differences():
    casm = make()
    sequence = sample_sequence(SPEC, ACTIONS)
    casm.loss(sequence)[0].backward()
    for parameter, index in (
        (casm.embedder.linear.weight, (1, 2)),
        (casm.guess.weight, (0, 3)),
        (casm.no_state, (1,)),
    ):
        analytic = parameter.grad[index].item()
        values = []
        for change in (1e-2, -1e-2):
            with torch.no_grad():
                parameter[index] += change
                values.append(casm.loss(sequence)[0].item())
                parameter[index] -= change
        assert (values[0] - values[1]) / 2e-2 == pytest.approx(analytic, rel=2e-2, abs=2e-5)


def test_new_masks_at_every_training_loss_and_the_same_in_evaluation():
    casm = make()
    sequence = sample_sequence(SPEC, ACTIONS)
    held_out = casm.loss(sequence)[0].item()
    assert casm.loss(sequence)[0].item() == held_out
    casm.train()
    assert casm.loss(sequence)[0].item() != casm.loss(sequence)[0].item()
    casm.eval()  # no parameter has changed, only draws were made
    assert casm.loss(sequence)[0].item() == held_out


def test_figure_needs_masks():
    with pytest.raises(ValueError, match="needs mask=True"):
        CasmConfig(target="figure", mask=False)


def noise_sequence(seed, leak=False):
    """Observations that say nothing; actions with unequal frequencies, so that the baseline is not log 4."""
    sequence = sample_sequence(SPEC, ACTIONS, time=8, batch=24, seed=seed, ends=())
    rng = np.random.default_rng(seed)
    action = torch.from_numpy(rng.choice(4, (8, 24), p=[0.55, 0.15, 0.15, 0.15]))
    prev_action = torch.cat((torch.from_numpy(rng.integers(0, 4, (1, 24))), action[:-1]))
    steps = sequence.steps._replace(action=action, prev_action=action if leak else prev_action)
    return sequence._replace(steps=steps)


def held_out(casm, leak=False):
    """Trains on noise; returns accuracy and loss on new noise."""
    trainer = RepresentationTrainer(
        casm, TrainerConfig(optimiser=OptimiserConfig(learning_rate=5e-3, weight_decay=0.0))
    )
    for seed in range(100):
        trainer.update(noise_sequence(seed, leak))
    casm.eval()
    with torch.no_grad():
        results = [casm.loss(noise_sequence(10_000 + i, leak))[1] for i in range(20)]
    return tuple(float(np.mean([r[name] for r in results])) for name in ("accuracy", "loss"))


@pytest.mark.parametrize("options", [{}, {"target": "figure"}, {"mask": False}])
def test_on_noise_held_out_accuracy_stays_at_the_most_frequent_action(options):
    """Whatever leaks an action into its own prediction would push accuracy to 1 here."""
    accuracy, loss = held_out(make(**options))
    entropy = -(0.55 * math.log(0.55) + 0.45 * math.log(0.15))
    assert accuracy == pytest.approx(0.55, abs=0.04)
    assert loss > entropy - 0.03


def test_the_leak_test_would_see_a_leak():
    accuracy, _ = held_out(make(mask=False), leak=True)  # every token carries the action to predict
    assert accuracy > 0.8
