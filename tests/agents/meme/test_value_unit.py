"""Values in a running unit: what the network says stays when the unit changes, and its moments follow."""

from dataclasses import replace

import numpy as np
import torch
from oracles.sequences import sample_sequence

from softcount.agents.body import inputs_of
from softcount.agents.meme.agent import UNIT_OF_SIZE, Meme, MemeConfig, change_unit
from softcount.agents.meme.network import NetworkConfig
from softcount.types import ArraySpec, DiscreteActions

CONFIG = MemeConfig(
    network=NetworkConfig(torso="mlp", core="none", head_size=8, num_mixtures=3, value_unit="running"),
    target_update_period=4,
)


def agent_of():
    return Meme(ArraySpec((5,), "float32"), DiscreteActions(4), CONFIG, seed=1)


def batch_of(seed=0, scale=1e-4):
    sequence = sample_sequence(seed=seed)
    rng = np.random.default_rng(seed)
    shape = tuple(sequence.steps.reward.shape)
    reward, intrinsic = (torch.tensor(scale * rng.random(shape), dtype=torch.float32) for _ in range(2))
    extras = {"mixture": torch.zeros(shape, dtype=torch.int64), "prev_intrinsic": torch.zeros(shape)}
    steps = sequence.steps._replace(reward=reward, intrinsic=intrinsic, extras=extras)
    return sequence._replace(steps=steps)


def test_the_first_unit_is_ten_times_the_size_of_the_first_rewards_in_both_networks():
    agent, batch = agent_of(), batch_of()
    agent.update(batch)
    reward = batch.steps.reward + CONFIG.loss.beta_max * batch.steps.intrinsic
    expected = UNIT_OF_SIZE * float(reward.square().mean().sqrt())
    for network in (agent.online, agent.target):
        assert abs(float(network.value_unit) - expected) < 1e-6 * expected
    assert agent.unit == float(agent.online.value_unit)


def test_a_change_of_unit_changes_nothing_that_the_network_says_and_scales_the_moments():
    agent, batch = agent_of(), batch_of()
    agent.update(batch)
    before, _ = agent.online(inputs_of(batch), ())
    layer = agent.online.advantage_out[1].weight
    hidden = agent.online.value_hidden.weight
    kept = {p: {k: v.clone() for k, v in agent.optimiser.state[p].items()} for p in (layer, hidden)}
    weight, unit = layer.detach().clone(), agent.unit
    change_unit(agent.online, agent.optimiser, 5 * unit)
    after, _ = agent.online(inputs_of(batch), ())
    torch.testing.assert_close(after.q_extrinsic, before.q_extrinsic, rtol=1e-5, atol=1e-10)
    torch.testing.assert_close(after.q_intrinsic, before.q_intrinsic, rtol=1e-5, atol=1e-10)
    torch.testing.assert_close(layer.detach(), weight / 5)
    moments = agent.optimiser.state[layer]
    torch.testing.assert_close(moments["exp_avg"], 5 * kept[layer]["exp_avg"])
    torch.testing.assert_close(moments["exp_avg_sq"], 25 * kept[layer]["exp_avg_sq"])
    torch.testing.assert_close(agent.optimiser.state[hidden]["exp_avg"], kept[hidden]["exp_avg"])


def test_the_unit_follows_the_returns_when_the_target_network_does():
    agent = agent_of()
    units = []
    for seed in range(9):
        agent.update(batch_of(seed))
        units.append(agent.unit)
    assert units[0] == units[2] != units[3] == units[6] != units[7]
    assert float(agent.target.value_unit) == units[7]
    twin = agent_of()
    twin.load_state_dict(agent.state_dict())
    assert (twin.unit, twin.return_size.value) == (agent.unit, agent.return_size.value)


def test_with_a_unit_of_one_there_is_none():
    plain = replace(CONFIG, network=replace(CONFIG.network, value_unit="one"))
    agent = Meme(ArraySpec((5,), "float32"), DiscreteActions(4), plain, seed=1)
    assert agent.unit == 1.0
    assert "value_unit" not in agent.parameters()
