"""The learner: what reaches the agent, what goes back, and what is paid while learning."""

import numpy as np
import pytest
import torch
from oracles.bonuses import prioritised
from oracles.sequences import sample_sequence

from softcount.bonuses.normalise import NormaliserConfig
from softcount.bonuses.per_task import PerTask
from softcount.bonuses.surprise import BYOL_EXPLORE, Surprise
from softcount.roles.learner import Learner
from softcount.tensors import to_arrays
from softcount.types import Sample

IDS, WEIGHTS = np.array([7, 3, 12]), np.array([1.0, 0.1, 0.4], np.float32)
PRIORITIES = np.array([0.5, 2.0, 1.5])


class Agent:
    """Remembers what it was given to learn from."""

    def __init__(self):
        self.asked = []

    def update(self, sequence, weights=None, intrinsic_targets=None):
        self.asked.append((to_arrays(sequence, copy=True), weights, intrinsic_targets))
        return PRIORITIES, {"loss": 0.25}

    def parameters(self):
        return {"policy": np.arange(3.0)}


class Trainer:
    """Learns nothing; its representation is as surprised as the extrinsic reward is large."""

    def __init__(self):
        self.representation = self
        self.representation = torch.nn.Identity()
        self.asked = []

    def update(self, sequence):
        self.asked.append(to_arrays(sequence, copy=True))
        return {"accuracy": 0.75}

    def surprise(self, sequence):
        return torch.as_tensor(sequence.steps.reward).abs()

    def acting_state(self):
        return {"embedder": torch.ones(2)}


def sample_of(seed=0):
    """Traces that start with an episode, and hold others."""
    sequence = to_arrays(sample_sequence(seed=seed), copy=True)
    reward = np.random.default_rng(seed).normal(size=(7, 3)).astype(np.float32)
    sequence.steps.is_first[0] = True
    return Sample(sequence._replace(steps=sequence.steps._replace(reward=reward)), IDS, WEIGHTS)


def test_the_weights_of_a_batch_reach_the_agent_also_where_there_are_none():
    agent = Agent()
    learner, sample = Learner(agent, None), sample_of()
    learner(sample)
    learner(sample._replace(weights=None))
    np.testing.assert_array_equal(agent.asked[0][1], WEIGHTS)
    assert agent.asked[1][1] is None


def test_agent_and_representation_learn_from_the_batch_as_it_was_sampled():
    agent, trainer, sample = Agent(), Trainer(), sample_of()
    Learner(agent, trainer)(sample)
    for seen in (agent.asked[0][0], trainer.asked[0]):
        for name in ("observation", "prev_action", "reward", "is_first", "is_last", "action"):
            np.testing.assert_array_equal(
                getattr(seen.steps, name), getattr(sample.sequence.steps, name), err_msg=name
            )


def test_priorities_go_back_with_the_ids_they_belong_to_and_metrics_with_their_origin():
    update = Learner(Agent(), Trainer())(sample_of())
    np.testing.assert_array_equal(update.ids, IDS)
    np.testing.assert_array_equal(update.priorities, PRIORITIES)
    assert update.metrics["losses/loss"] == 0.25
    assert update.metrics["representation/accuracy"] == 0.75


def test_relabelled_pay_reaches_the_targets_and_without_it_the_stored_one_counts():
    agent = Agent()
    learner = Learner(agent, Trainer())
    targets = np.random.default_rng(1).random((7, 3)).astype(np.float32)
    learner(sample_of(), targets)
    learner(sample_of())
    np.testing.assert_array_equal(agent.asked[0][2], targets)
    assert agent.asked[1][2] is None


def test_what_is_paid_while_learning_is_dated_by_the_row_that_surprised():
    agent = Agent()
    learner = Learner(agent, Trainer(), bonus=Surprise(BYOL_EXPLORE))
    samples = [sample_of(seed) for seed in range(3)]
    for sample in samples:
        learner(sample)
    is_first = samples[0].sequence.steps.is_first
    surprises = [np.abs(sample.sequence.steps.reward)[~is_first] for sample in samples]
    expected = prioritised([x.astype(float).tolist() for x in surprises], step=0.01)
    for (_, _, targets), paid in zip(agent.asked, expected, strict=True):
        np.testing.assert_allclose(targets[~is_first], paid, rtol=1e-5, atol=1e-7)
        assert (targets[is_first] == 0).all()
        assert targets.max() > 0


def test_the_rows_of_one_trace_are_one_environment_to_what_is_paid_while_learning():
    """A discounted sum per environment runs along a trace, not across the batch."""
    agent, sample = Agent(), sample_of()
    config = NormaliserConfig(kind="return_std", num_gathered=0, return_discount=0.5)
    learner = Learner(
        agent, Trainer(), bonus=Surprise(type(BYOL_EXPLORE)(normaliser=config, paid_in="learning"))
    )
    learner(sample)
    surprise, is_first = np.abs(sample.sequence.steps.reward), sample.sequence.steps.is_first
    sums, seen = np.zeros(3), []
    for t in range(7):
        for b in range(3):
            if is_first[t, b]:
                continue
            sums[b] = 0.5 * sums[b] + surprise[t, b]
            seen.append(sums[b])
            std = np.sqrt(np.mean((np.array(seen) - np.mean(seen)) ** 2))
            scale = max(std, 0.01 * np.mean(seen))
            assert agent.asked[0][2][t, b] == pytest.approx(surprise[t, b] / scale, rel=1e-4), (t, b)


def test_each_task_is_paid_by_its_own_bonus_also_while_learning():
    agent, sample, tasks = Agent(), sample_of(), np.array([1, 0, 1])
    extras = {"task": np.broadcast_to(tasks, (7, 3)).copy()}
    sequence = sample.sequence._replace(steps=sample.sequence.steps._replace(extras=extras))
    bonus = PerTask([Surprise(BYOL_EXPLORE), Surprise(BYOL_EXPLORE)], ["one", "two"])
    Learner(agent, Trainer(), bonus=bonus)(sample._replace(sequence=sequence))
    targets, is_first = agent.asked[0][2], sample.sequence.steps.is_first
    surprise = np.abs(sample.sequence.steps.reward).astype(float)
    for task in (0, 1):
        is_own = ~is_first & (tasks == task)
        expected = prioritised([surprise[is_own].tolist()], step=0.01)[0]
        np.testing.assert_allclose(targets[is_own], expected, rtol=1e-5, atol=1e-7)
        assert targets[is_own].max() > 0
    assert (targets[is_first] == 0).all()


def test_what_is_published_is_the_agents_policy_and_the_copy_that_embeds():
    published = Learner(Agent(), Trainer()).parameters()
    np.testing.assert_array_equal(published.policy["policy"], [0, 1, 2])
    np.testing.assert_array_equal(published.representation["embedder"], [1, 1])
    assert Learner(Agent(), None).parameters().representation is None
