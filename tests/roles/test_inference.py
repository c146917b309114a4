"""The inference worker: what reaches the representation, with a history and without one."""

import numpy as np
import torch
from torch import nn

from softcount.roles.actor import Request
from softcount.roles.inference import Inference, Parameters
from softcount.types import DiscreteActions, Features

ACTIONS = DiscreteActions(5)


class Told(nn.Module):
    """A representation that answers with what it was told: whether first, the action before, its state."""

    dim = 3

    def initial_state(self, batch):
        return (torch.full((batch,), 7.0),)

    def represent(self, observation, prev_action, is_first, state):
        told = torch.stack((is_first.float(), prev_action.float(), state[0]), -1)
        return Features(told), (state[0] + 1,)


class Network(nn.Module):
    """A network that answers with all that it was told, one column for each part."""

    def evaluating(self):
        return self

    def act(self, inputs, condition, state):
        parts = (
            inputs.prev_action,
            inputs.reward,
            inputs.prev_intrinsic,
            inputs.is_first,
            condition,
            state[0],
        )
        return torch.stack([part.float() for part in parts], -1), (state[0] + 1,)


def worker():
    return Inference(Network(), Told(), ACTIONS)


def test_what_has_no_history_is_embedded_as_a_first_observation():
    features = worker().embed(np.zeros((4, 2), np.float32))
    np.testing.assert_array_equal(features.embedding, [[1, 0, 7]] * 4)


def request():
    rows = np.arange(3, dtype=np.float32)
    return Request(
        observation=np.zeros((3, 2), np.float32),
        prev_action=np.array([4, 0, 2]),
        reward=0.1 * rows,
        prev_intrinsic=0.5 + rows,
        is_first=np.array([False, True, False]),
        condition=np.array([7, 8, 9]),
        state=(10 * rows,),
        feature_state=(100 * rows,),
    )


def test_a_request_brings_its_history_to_the_network_and_takes_its_state_back():
    reply = worker()(request())
    told = [[4, 0, 0.5, 0, 7, 0], [0, 0.1, 1.5, 1, 8, 10], [2, 0.2, 2.5, 0, 9, 20]]
    np.testing.assert_allclose(reply.policy, told, rtol=1e-6)
    np.testing.assert_array_equal(reply.state[0], [1, 11, 21])


def test_a_request_brings_its_history_to_the_representation_and_takes_its_state_back():
    reply = worker()(request())
    np.testing.assert_array_equal(reply.features.embedding, [[0, 4, 0], [1, 0, 100], [0, 2, 200]])
    np.testing.assert_array_equal(reply.feature_state[0], [1, 101, 201])


def test_the_policy_that_was_loaded_last_acts_also_when_an_earlier_one_comes_back():
    network = nn.Linear(1, 1, bias=False)
    network.evaluating = lambda: network
    inference = Inference(network, None, ACTIONS)
    one, two = (Parameters({"weight": np.full((1, 1), x, np.float32)}, None) for x in (1.0, 2.0))
    for parameters, weight in ((one, 1), (one, 1), (two, 2), (one, 1), (two, 2)):
        inference.load(parameters)
        assert network.weight.item() == weight
