import numpy as np
import pytest
import torch

from softcount.agents.lstm import ResetLstm

T, B, INPUTS, SIZE = 7, 4, 3, 5


def make(seed=0):
    torch.manual_seed(seed)
    core = ResetLstm(INPUTS, SIZE).double()
    inputs = torch.randn(T, B, INPUTS, dtype=torch.float64)
    state = tuple(torch.randn(B, SIZE, dtype=torch.float64) for _ in range(2))
    is_first = torch.rand(T, B) < 0.3
    is_first[0, 1] = is_first[0, 2] = True
    is_first[0, 0] = is_first[1:, 3] = False
    return core, inputs, state, is_first


def reference(core):
    """torch's LSTM with the same weights; its gates are in the order i, f, n, o."""
    lstm = torch.nn.LSTM(INPUTS, SIZE).double()
    with torch.no_grad():
        for ours, theirs in (
            (core.input_weight, lstm.weight_ih_l0),
            (core.hidden_weight, lstm.weight_hh_l0),
            (core.bias, lstm.bias_ih_l0),
        ):
            o, i, f, n = ours.chunk(4)
            theirs.copy_(torch.cat((i, f, n, o)))
        lstm.bias_hh_l0.zero_()
    return lstm


def test_without_resets_it_is_torchs_lstm():
    core, inputs, state, is_first = make()
    outputs, (hidden, cell) = core(inputs, state, torch.zeros_like(is_first))
    expected, (h, c) = reference(core)(inputs, tuple(x[None] for x in state))
    torch.testing.assert_close(outputs, expected)
    torch.testing.assert_close(hidden, h[0])
    torch.testing.assert_close(cell, c[0])


def test_resets_are_those_of_a_loop_over_cells():
    core, inputs, state, is_first = make()
    outputs, (hidden, cell) = core(inputs, state, is_first)
    lstm = reference(core)
    h, c = state
    for t in range(T):
        keep = (~is_first[t]).double()[:, None]
        _, (h, c) = lstm(inputs[t : t + 1], ((h * keep)[None], (c * keep)[None]))
        h, c = h[0], c[0]
        torch.testing.assert_close(outputs[t], h)
    torch.testing.assert_close(hidden, h)
    torch.testing.assert_close(cell, c)


def test_gradients_equal_finite_differences_also_across_resets():
    core, inputs, state, is_first = make()
    names = [name for name, _ in core.named_parameters()]

    def unroll(x, h, c, *parameters):
        outputs, (_, cell) = torch.func.functional_call(
            core, dict(zip(names, parameters, strict=True)), (x, (h, c), is_first)
        )
        return outputs, cell

    leaves = [x.detach().requires_grad_() for x in (inputs, *state, *core.parameters())]
    assert torch.autograd.gradcheck(unroll, leaves)


def test_nothing_passes_through_a_reset():
    core, inputs, state, is_first = make()
    is_first[:] = False
    is_first[3] = True
    inputs.requires_grad_()
    outputs, _ = core(inputs, state, is_first)
    outputs[3:].sum().backward()
    assert (inputs.grad[:3] == 0).all()
    assert (inputs.grad[3:] != 0).all()


def test_a_single_step_without_gradients_equals_the_unroll():
    core, inputs, state, is_first = make()
    core, inputs, state = core.float(), inputs.float(), tuple(x.float() for x in state)
    expected, last = core(inputs, state, is_first)
    with torch.inference_mode():
        for t in range(T):
            before = [x.clone() for x in state]
            outputs, new_state = core(inputs[t : t + 1], state, is_first[t : t + 1])
            np.testing.assert_array_equal(
                torch.stack(state), torch.stack(before)
            )  # the caller's state is his
            np.testing.assert_allclose(outputs[0], expected[t].detach(), atol=1e-6)
            state = new_state
    np.testing.assert_allclose(state[1], last[1].detach(), atol=1e-6)


@pytest.mark.parametrize("size", [1, 8])
def test_the_forget_gates_start_open(size):
    core = ResetLstm(2, size)
    assert core.bias.view(4, size).tolist() == [[0.0] * size, [0.0] * size, [1.0] * size, [0.0] * size]
    assert all((x == 0).all() for x in core.initial_state(3))
