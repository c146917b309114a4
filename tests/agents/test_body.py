"""What all networks see: the inputs picked out of traces, and what just happened, blank at a start."""

import numpy as np
import pytest
import torch

from softcount.agents.body import inputs_of, previous
from softcount.agents.protocols import Inputs
from softcount.agents.returns import rescale
from softcount.torsos.actions import ActionCoding
from softcount.types import DiscreteActions, Sequence, Step


def sequence(**extras):
    numbers = [torch.full((3, 2), float(i)) for i in range(7)]
    return Sequence(Step(torch.zeros(3, 2, 5), *numbers, extras=extras), ())


def test_inputs_are_the_stored_columns():
    own = torch.full((3, 2), 9.0)
    inputs = inputs_of(sequence(prev_intrinsic=own, mixture=own), "mixture")
    assert inputs.prev_action.unique().tolist() == [0.0]
    assert inputs.reward.unique().tolist() == [1.0]
    assert inputs.prev_intrinsic is own
    assert inputs.is_first.unique().tolist() == [3.0]
    assert inputs.observation.shape == (3, 2, 5)


def test_traces_that_lack_a_column_are_refused_with_its_name():
    with pytest.raises(ValueError, match=r"the extras \['task'\]; expected 'prev_intrinsic'$"):
        inputs_of(sequence(task=torch.zeros(3, 2)))
    with pytest.raises(ValueError, match="expected 'mixture' and 'prev_intrinsic'"):
        inputs_of(sequence(prev_intrinsic=torch.zeros(3, 2)), "mixture")


def test_what_just_happened_is_one_hot_and_squashed_and_blank_at_a_start():
    coding = ActionCoding(DiscreteActions(3))
    inputs = Inputs(
        torch.zeros(1, 2, 5),
        torch.tensor([[2, 2]]),
        torch.tensor([[8.0, 8.0]]),
        torch.tensor([[-1.0, -1.0]]),
        torch.tensor([[False, True]]),
    )
    seen = previous(inputs, coding)[0]
    rewards = rescale(torch.tensor([8.0, -1.0]))
    np.testing.assert_allclose(seen[0], [0, 0, 1, *rewards.tolist()], rtol=1e-6)
    assert seen[1].tolist() == [0.0] * 5
