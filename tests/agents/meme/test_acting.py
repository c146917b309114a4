"""How MEME acts: each row is answered for its own mixture."""

import numpy as np
import torch

from softcount.agents.meme.acting import ActingMeme, FixedMixture
from softcount.agents.meme.agent import MemeConfig
from softcount.agents.meme.network import NetworkConfig
from softcount.agents.protocols import Inputs
from softcount.types import ArraySpec, DiscreteActions


def test_each_row_is_answered_for_its_own_mixture():
    torch.manual_seed(0)
    sizes = NetworkConfig(torso="mlp", core_size=6, head_size=5, num_mixtures=3)
    network = ActingMeme(ArraySpec((2,), "float32"), DiscreteActions(4), MemeConfig(network=sizes))
    rows = torch.randn(5)
    inputs = Inputs(torch.randn(5, 2), torch.arange(5) % 4, rows, -rows, rows > 0)
    state = tuple(torch.randn(5, 6) for _ in range(2))
    with torch.no_grad():
        answer, after = network.act(inputs, torch.tensor([2, 0, 1, 2, 1]), state)
        one_step = Inputs(*(part[None] for part in inputs))
        logits, expected_after = network.policy(one_step, state)  # of all mixtures
    for row, mixture in enumerate([2, 0, 1, 2, 1]):
        torch.testing.assert_close(answer[row], logits[0, row, mixture])
    torch.testing.assert_close(after, expected_after)


def test_a_clip_is_called_by_the_mixture_of_the_copy_it_shows():
    assert FixedMixture(np.array([2, 0, 1]), 3, 0.1).describe() == "mixture 2"
