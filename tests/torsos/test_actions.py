"""Actions as classes and as vectors, for all three kinds of spaces."""

from __future__ import annotations

import math

import pytest
import torch
from oracles.representations import cross_entropy

from softcount.torsos.actions import ActionCoding
from softcount.types import ContinuousActions, DiscreteActions, MultiDiscreteActions


def test_discrete_actions_are_one_categorical():
    coding = ActionCoding(DiscreteActions(3))
    logits = torch.tensor([[0.1, -1.0, 2.0], [0.0, 0.5, 0.2]])
    action = torch.tensor([1, 1])
    expected = [cross_entropy(row, a) for row, a in zip(logits.tolist(), action.tolist(), strict=True)]
    assert coding.cross_entropy(logits, action).tolist() == pytest.approx(expected, abs=1e-6)
    assert coding.accuracy(logits, action).tolist() == [0.0, 1.0]
    assert coding.vectors(action).tolist() == [[0, 1, 0], [0, 1, 0]]
    assert (coding.num_logits, coding.num_inputs) == (3, 3)


def test_multi_discrete_actions_add_the_losses_of_their_choices():
    coding = ActionCoding(MultiDiscreteActions((2, 3)))
    logits = torch.tensor([[0.3, -0.3, 1.0, 0.0, -2.0]])
    action = torch.tensor([[1, 0]])
    expected = cross_entropy([0.3, -0.3], 1) + cross_entropy([1.0, 0.0, -2.0], 0)
    assert coding.cross_entropy(logits, action).item() == pytest.approx(expected, abs=1e-6)
    assert coding.accuracy(logits, action).item() == 0.5
    assert coding.vectors(action).tolist() == [[0, 1, 1, 0, 0]]


def test_continuous_actions_fall_into_equal_bins_per_dimension():
    coding = ActionCoding(ContinuousActions((-1.0, 0.0), (1.0, 10.0)), num_bins=4)
    action = torch.tensor([[-1.0, 0.0], [-0.51, 2.4], [-0.49, 2.6], [1.0, 10.0], [5.0, -3.0]])
    assert coding.classes(action).tolist() == [[0, 0], [0, 0], [1, 1], [3, 3], [3, 0]]
    torch.testing.assert_close(coding.vectors(action)[1], torch.tensor([-0.51, -0.52]))
    logits = torch.zeros(5, 8)
    assert coding.cross_entropy(logits, action).tolist() == pytest.approx([2 * math.log(4)] * 5, rel=1e-6)


def test_unbounded_actions_are_refused():
    with pytest.raises(ValueError, match="finite bounds"):
        ActionCoding(ContinuousActions((-math.inf,), (math.inf,)))


def test_leading_axes_are_kept():
    coding = ActionCoding(MultiDiscreteActions((2, 3)))
    action = torch.zeros(4, 5, 2, dtype=torch.long)
    assert coding.cross_entropy(torch.zeros(4, 5, 5), action).shape == (4, 5)
    assert coding.vectors(action).shape == (4, 5, 5)
