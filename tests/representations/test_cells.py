"""AP by cells: its loss against the oracle, what tells nothing, and that it finds the agent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from oracles import cells as oracle
from oracles.networks import numbers
from oracles.sequences import sample_sequence

from softcount.optimiser import OptimiserConfig
from softcount.presets import LAPTOP_ATARI, suited
from softcount.representations import CellConfig, CellPrediction, RepresentationTrainer, TrainerConfig
from softcount.representations.make import RepresentationConfig, make_representation
from softcount.types import ArraySpec, DiscreteActions, MultiDiscreteActions, Sequence, Step

SPEC, ACTIONS = ArraySpec((7, 5, 2), "uint8"), DiscreteActions(4)
SMALL = CellConfig(kernel=3, stride=2, channels=(3, 4), evidence_cost=0.3, context=(2, 1))
CELLS = (4, 3)


def make(config=SMALL, spec=SPEC, actions=ACTIONS):
    """Weights are large, so that looks and evidence are far from even."""
    torch.manual_seed(0)
    ap = CellPrediction(spec, actions, config)
    with torch.no_grad():
        for parameter in ap.parameters():
            parameter *= 3
    return ap


def sample(**options):
    """Pictures with contrast; most pixels stay as they were, so that some cells see no change."""
    sequence = sample_sequence(SPEC, ACTIONS, **options)
    observation = sequence.steps.observation
    observation *= 40
    observation[1:, :, :, 2:] = observation[:1, :, :, 2:]
    return sequence


@pytest.mark.parametrize("kernel", [3, 4])
def test_the_loss_is_that_of_the_oracle(kernel):
    ap = make(replace(SMALL, kernel=kernel))
    steps = (sequence := sample()).steps
    rest = (x.tolist() for x in (steps.is_first, steps.is_last, steps.action))
    pictures = steps.observation.numpy() / 255
    expected = oracle.loss(numbers(ap.state_dict()), pictures, *rest, ap.cells, kernel, 2, 0.3)
    loss, metrics = ap.loss(sequence)
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    assert metrics["loss"] < loss


def test_the_embedding_is_the_sharpened_map_and_the_coarse_picture():
    ap = make(replace(SMALL, sharpness=3.0, context_weight=0.25))
    observation = sample().steps.observation
    embedding = ap.embed(observation)
    assert embedding.shape == (*observation.shape[:2], ap.dim)
    picture = observation[3, 1].numpy() / 255
    powers = np.exp(3 * oracle.log_looks(numbers(ap.state_dict()), picture, CELLS, 2))
    coarse = [picture[rows, :, c].mean() for c in (0, 1) for rows in (slice(0, 4), slice(3, 7))]
    expected = np.concatenate((powers / powers.sum(), 0.25 * np.array(coarse)))
    np.testing.assert_allclose(embedding[3, 1].detach(), expected, rtol=1e-5)
    alone = ap.represent(observation[3])[0].embedding
    torch.testing.assert_close(alone, embedding[3])
    torch.testing.assert_close(ap.attention(observation[3]).sum((1, 2)), torch.ones(3))
    bare = make(replace(SMALL, context_weight=0.0))
    assert bare.dim == bare.embed(observation).shape[-1] == 12


def test_logits_are_those_that_the_loss_reads():
    ap = make(replace(SMALL, evidence_cost=0.0))
    sequence = sample(time=2, ends=())
    steps = sequence.steps
    logits = ap.logits(steps.observation[0], steps.observation[1])
    expected = torch.nn.functional.cross_entropy(logits, steps.action[0])
    torch.testing.assert_close(ap.loss(sequence)[1]["loss"], expected.detach())


def test_a_step_that_changes_nothing_tells_nothing():
    ap = make()
    with torch.no_grad():
        ap.prior.copy_(torch.arange(4.0))
    observation = sample().steps.observation[0]
    torch.testing.assert_close(ap.logits(observation, observation), torch.arange(4.0).expand(3, 4))


def test_looking_does_not_move_the_evidence():
    ap = make(replace(SMALL, evidence_cost=0.0))
    sequence = sample()
    loss, _ = ap.loss(sequence)
    loss.backward()
    with_looking = ap.evidence[0].weight.grad.clone()
    ap.zero_grad()
    steps = sequence.steps
    is_step = ~steps.is_first[1:] & ~steps.is_last[:-1]
    logits = ap.logits(steps.observation[:-1][is_step], steps.observation[1:][is_step])
    torch.nn.functional.cross_entropy(logits, steps.action[:-1][is_step]).backward()
    torch.testing.assert_close(ap.evidence[0].weight.grad, with_looking)


def test_nothing_across_an_episodes_end_counts():
    ap = make()
    sequence = sample()  # row 5 of trace 1 is first and last of its episode
    before = ap.loss(sequence)[0].item()
    sequence.steps.observation[5, 1] += 30
    assert ap.loss(sequence)[0].item() == before
    alone = sample(time=2, batch=1, ends=((0, 0),))
    assert ap.loss(alone)[0].item() == 0.0


def test_actions_of_several_parts():
    actions = MultiDiscreteActions((3, 2))
    loss, _ = make(actions=actions).loss(sample_sequence(SPEC, actions))
    assert torch.isfinite(loss)


def test_what_is_no_picture_is_refused():
    with pytest.raises(ValueError, match="expected one picture"):
        make(spec=ArraySpec((5,), "float32"))
    with pytest.raises(ValueError, match=r"CellConfig\.stride is 0; expected at least 1"):
        CellConfig(stride=0)
    with pytest.raises(ValueError, match=r"CellConfig\.sharpness is 0"):
        CellConfig(sharpness=0.0)


def test_the_preset_for_atari_predicts_by_cells_and_nobody_else_does():
    config = suited(LAPTOP_ATARI, "MEME-RECODE-AP").representation
    spec = ArraySpec((42, 40, 2), "uint8")
    ap = make_representation("ap", spec, DiscreteActions(8), config)
    assert isinstance(ap.inner, CellPrediction)
    assert ap.inner.config == CellConfig()
    assert RepresentationConfig().action_prediction.by == "encoder"


MOVES = np.array([(0, 0), (-1, 0), (0, 1), (1, 0), (0, -1)])


def walk_beside_an_enemy(num_actions, time, batch, rng, side=12):
    """Pictures of an agent that moves as told, and of an enemy of its own mind; also where the agent is."""
    effect = np.arange(num_actions) % len(MOVES)
    place, enemy = rng.integers(1, side - 1, (2, batch, 2))
    rows = []
    for _ in range(time):
        picture = np.zeros((batch, side, side, 1), np.uint8)
        each = np.arange(batch)
        picture[each, enemy[:, 0], enemy[:, 1]] = 120
        picture[each, place[:, 0], place[:, 1]] = 250
        action = rng.integers(num_actions, size=batch)
        rows.append((picture, action, place))
        place = (place + MOVES[effect[action]]).clip(0, side - 1)
        enemy = (enemy + MOVES[rng.integers(1, len(MOVES), batch)]).clip(0, side - 1)
    picture, action, place = (torch.from_numpy(np.stack(column)) for column in zip(*rows))
    nothing, never = torch.zeros(time, batch), torch.zeros(time, batch, dtype=torch.bool)
    return Sequence(Step(picture, action, nothing, nothing, never, never, never, action, {}), ()), place


@pytest.mark.parametrize("num_actions", [5, 18])
def test_it_finds_the_agent_beside_an_enemy_however_many_actions_are_aliased(num_actions):
    rng = np.random.default_rng(0)
    torch.manual_seed(0)
    config = CellConfig(kernel=3, stride=1, channels=(8, 8), context_weight=0.0)
    ap = CellPrediction(ArraySpec((12, 12, 1), "uint8"), DiscreteActions(num_actions), config)
    trainer = RepresentationTrainer(
        ap, TrainerConfig(optimiser=OptimiserConfig(learning_rate=5e-3, weight_decay=0.0))
    )
    for _ in range(200):
        trainer.update(walk_beside_an_enemy(num_actions, 5, 12, rng)[0])
    sequence, place = walk_beside_an_enemy(num_actions, 2, 200, rng)
    looks = ap.attention(sequence.steps.observation[0]).flatten(1).argmax(-1)
    found = torch.stack((looks // 12, looks % 12), -1)
    assert ((found - place[0]).abs().amax(-1) <= 1).float().mean() > 0.9
