"""A representation on arrays gives what it gives on tensors, for observations that begin an episode."""

import numpy as np
import pytest
import torch

from softcount.representations import make_representation
from softcount.representations.acting import features_alone
from softcount.representations.make import GRID
from softcount.types import ArraySpec, DiscreteActions

SPEC, ACTIONS = ArraySpec((4, 4, 3), "uint8"), DiscreteActions(4)


@pytest.mark.parametrize("kind", ["ap", "casm", "rnd-on-ap"])
def test_features_of_arrays_are_those_of_tensors_at_a_start(kind):
    model = make_representation(kind, SPEC, ACTIONS, GRID, seed=0).eval()
    model.after_update()
    observation = np.random.default_rng(0).integers(0, 256, (5, *SPEC.shape), dtype=np.uint8)
    found = features_alone(model, observation, ACTIONS)
    with torch.no_grad():
        expected, _ = model.represent(
            torch.from_numpy(observation), torch.zeros(5).long(), torch.ones(5).bool(), model.initial_state(5)
        )
    for name in ("embedding", "surprise"):
        ours, theirs = getattr(found, name), getattr(expected, name)
        assert (ours is None) == (theirs is None)
        if theirs is not None:
            np.testing.assert_array_equal(ours, theirs.numpy())
    again = features_alone(model, observation[::-1].copy(), ACTIONS)
    np.testing.assert_allclose(again.embedding[::-1], found.embedding, rtol=1e-5, atol=1e-6)
