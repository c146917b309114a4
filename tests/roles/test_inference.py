"""The inference worker: what reaches the representation, with a history and without one."""

import numpy as np
import torch
from torch import nn

from softcount.representations.features import TensorFeatures
from softcount.roles.actor import Request
from softcount.roles.inference import Inference
from softcount.types import DiscreteActions

ACTIONS = DiscreteActions(5)


class Told(nn.Module):
    """A representation that answers with what it was told: whether first, the action before, its state."""

    dim = 3

    def initial_state(self, batch):
        return (torch.full((batch,), 7.0),)

    def represent(self, observation, prev_action, is_first, state):
        told = torch.stack((is_first.float(), prev_action.float(), state[0]), -1)
        return TensorFeatures(told), (state[0] + 1,)


class Network(nn.Module):
    """A network that answers with its state."""

    def act(self, inputs, condition, state):
        return state[0][:, None], state


def worker():
    return Inference(Network(), Told(), ACTIONS)


def test_what_has_no_history_is_embedded_as_a_first_observation():
    features = worker().embed(np.zeros((4, 2), np.float32))
    np.testing.assert_array_equal(features.embedding, [[1, 0, 7]] * 4)


def test_a_request_brings_its_history_to_the_representation_and_takes_its_state_back():
    rows = np.arange(3, dtype=np.float32)
    request = Request(
        observation=np.zeros((3, 2), np.float32),
        prev_action=np.array([4, 0, 2]),
        reward=rows,
        prev_intrinsic=rows,
        is_first=np.array([False, True, False]),
        condition=np.zeros(3, np.int64),
        state=(10 * rows,),
        feature_state=(100 * rows,),
    )
    reply = worker()(request)
    np.testing.assert_array_equal(reply.features.embedding, [[0, 4, 0], [1, 0, 100], [0, 2, 200]])
    np.testing.assert_array_equal(reply.policy[:, 0], [0, 10, 20])
    np.testing.assert_array_equal(reply.state[0], [0, 10, 20])
    np.testing.assert_array_equal(reply.feature_state[0], [1, 101, 201])
