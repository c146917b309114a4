"""GTrXL: causality, cuts, gates, relative positions, memory."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from oracles import networks
from oracles.representations import gate, relative_attention, sinusoid

from softcount.representations.gated_transformer import (
    Gate,
    GatedTransformer,
    GatedTransformerConfig,
    RelativeAttention,
    shift,
    sinusoids,
    visible,
)

SMALL = GatedTransformerConfig(width=8, num_heads=2, hidden_sizes=(12,), gate_bias=0.0)


def make(config=SMALL, seed=0):
    torch.manual_seed(seed)
    net = GatedTransformer(config).double()
    for bias in (net.content_bias, net.position_bias):
        torch.nn.init.normal_(bias)
    return net


def tokens(time=6, batch=2, seed=1):
    return torch.randn(time, batch, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def no_cut(time=6, batch=2):
    return torch.zeros(time, batch, dtype=torch.bool)


def test_the_papers_table_is_the_default():
    config = GatedTransformerConfig()
    assert (config.num_layers, config.width, config.num_heads) == (2, 128, 4)
    assert config.hidden_sizes == (512,)
    assert config.gate_bias == 2.0


def test_no_output_depends_on_the_future_and_each_on_its_own_token():
    net, x = make(), tokens()
    before, _ = net(x, no_cut())
    changed = x.clone()
    changed[3] += 1.0
    after, _ = net(changed, no_cut())
    torch.testing.assert_close(after[:3], before[:3], rtol=0, atol=0)
    assert ((after[3:] - before[3:]).abs().amax(-1) > 1e-6).all()


def test_a_first_row_cuts_attention():
    net, x = make(), tokens()
    is_first = no_cut()
    is_first[3, 0] = True
    before, _ = net(x, is_first)
    changed = x.clone()
    changed[:3] += 1.0
    after, _ = net(changed, is_first)
    torch.testing.assert_close(after[3:, 0], before[3:, 0], rtol=0, atol=0)
    assert ((after[3:, 1] - before[3:, 1]).abs().amax(-1) > 1e-6).all()


def test_shifting_all_positions_changes_nothing():
    """An episode gives the same outputs alone and after another one: only distances count."""
    net, x = make(), tokens(time=4)
    alone, _ = net(x, no_cut(4))
    is_first = no_cut(9)
    is_first[5] = True
    packed, _ = net(torch.cat((tokens(5, seed=7), x)), is_first)
    torch.testing.assert_close(packed[5:], alone)


def test_distances_matter():
    net, x = make(), tokens(time=3, batch=1)
    swapped, _ = net(x[[1, 0, 2]], no_cut(3, 1))
    straight, _ = net(x, no_cut(3, 1))
    assert (swapped[2] - straight[2]).abs().max() > 1e-4


def test_a_large_gate_bias_makes_it_the_identity():
    net, x = make(GatedTransformerConfig(width=8, num_heads=2, hidden_sizes=(12,), gate_bias=30.0)), tokens()
    torch.testing.assert_close(net(x, no_cut())[0], x, rtol=1e-9, atol=1e-9)


def test_the_gate_follows_its_equations():
    torch.manual_seed(3)
    layer = Gate(3, 0.7).double()
    x, y = torch.randn(3, dtype=torch.float64), torch.randn(3, dtype=torch.float64)
    w = [part.tolist() for part in layer.from_new.weight.chunk(3)]
    u = [part.tolist() for part in layer.from_old.weight.chunk(2)]
    expected = gate(x.tolist(), y.tolist(), w, u, layer.from_reset.weight.tolist(), layer.bias.tolist())
    assert layer(x, y).tolist() == pytest.approx(expected, rel=1e-12)
    assert sum(p.numel() for p in layer.parameters()) == 6 * 9 + 3


def test_sinusoids_are_sines_then_cosines_of_the_distance():
    table = sinusoids(5, 6)
    for distance in range(5):
        assert table[distance].tolist() == pytest.approx(sinusoid(distance, 6), abs=1e-6)


def every_parameter_counts(net):
    """Norms start at 1 and 0, where a forgotten one would not show."""
    with torch.no_grad():
        for name, p in net.named_parameters():
            if "norm" in name or name.endswith("bias"):
                p += 0.5 * torch.randn(p.shape, dtype=p.dtype)
    return net


@pytest.mark.parametrize("cuts", [(), ((2, 0), (4, 1), (5, 1))])
def test_whole_layers_follow_their_equations(cuts):
    net, x, is_first = every_parameter_counts(make()), 2 * tokens(), no_cut()
    for t, b in cuts:
        is_first[t, b] = True
    found, inputs = net(x, is_first)  # distances are coded in float32, all else is float64
    p = networks.numbers(net.state_dict())
    assert len(inputs) == 2
    for b in range(2):
        expected, layers = networks.gated_transformer(p, x[:, b].numpy(), is_first[:, b].tolist())
        np.testing.assert_allclose(found[:, b].detach(), expected, rtol=0, atol=1e-7)
        np.testing.assert_allclose(inputs[1][:, b], layers[1], rtol=0, atol=1e-7)


def test_whole_layers_with_a_memory_follow_their_equations():
    net, x = every_parameter_counts(make()), tokens()
    memory = [tokens(3, seed=seed) for seed in (5, 6)]
    is_first = no_cut()
    is_first[4, 1] = True
    found, _ = net(x, is_first, memory)
    p = networks.numbers(net.state_dict())
    for b in range(2):
        past = [rows[:, b].numpy() for rows in memory]
        expected, _ = networks.gated_transformer(p, x[:, b].numpy(), is_first[:, b].tolist(), past)
        np.testing.assert_allclose(found[:, b].detach(), expected, rtol=0, atol=1e-7)


def test_the_gates_start_at_the_configured_bias():
    net = GatedTransformer(GatedTransformerConfig(width=8, num_heads=2, hidden_sizes=(12,)))
    for layer in net.layers:
        for one in (layer.gate_one, layer.gate_two):
            assert one.bias.tolist() == [2.0] * 8


@pytest.mark.parametrize("past", [0, 2])
def test_attention_follows_its_equation(past):
    torch.manual_seed(4)
    time, width = 4, 6
    attention = RelativeAttention(width, 1).double()
    context = torch.randn(past + time, 1, width, dtype=torch.float64)
    u, v = torch.randn(1, width, dtype=torch.float64), torch.randn(1, width, dtype=torch.float64)
    distances = sinusoids(past + time, width).double()
    is_first = torch.tensor([False, False, True, False])[:, None]
    is_visible = visible(is_first, past)
    k, values = attention.keys_values(context[:, 0]).chunk(2, -1)
    expected = relative_attention(
        attention.queries(context[past:, 0]).tolist(),
        k.tolist(),
        values.tolist(),
        attention.positions(distances).tolist(),
        u[0].tolist(),
        v[0].tolist(),
        past,
        is_visible[0].tolist(),
    )
    expected = torch.tensor(expected, dtype=torch.float64) @ attention.out.weight.T
    torch.testing.assert_close(attention(context, time, distances, is_visible, u, v)[:, 0], expected)


def test_visible_by_hand():
    is_first = torch.tensor([[False], [True], [False]])
    assert visible(is_first, 1)[0].tolist() == [
        [True, True, False, False],
        [False, False, True, False],
        [False, False, True, True],
    ]


def test_shift_by_hand():
    by_distance = torch.tensor([[10.0, 11, 12], [20.0, 21, 22]])[None, None]  # two queries after one past key
    shifted = shift(by_distance)[0, 0]
    assert shifted[0, :2].tolist() == [11, 10]
    assert shifted[1].tolist() == [22, 21, 20]


def test_a_memory_stands_for_the_tokens_it_was_made_of():
    net, x = make(), tokens(time=6)
    whole, _ = net(x, no_cut())
    _, memory = net(x[:4], no_cut(4))
    rest, _ = net(x[4:], no_cut(2), memory)
    torch.testing.assert_close(rest, whole[4:])
    assert not memory[1].requires_grad


def test_wrong_widths_are_refused():
    with pytest.raises(ValueError, match="width is 10"):
        GatedTransformerConfig(width=10, num_heads=4)
