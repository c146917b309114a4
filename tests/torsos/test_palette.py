"""The dense layer over colours: the same numbers as the plain layer, by another way."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from oracles import palette as oracle
from torch import nn

from softcount.torsos import palette
from softcount.torsos.palette import Coloured, coloured, is_less_work

# rows, cells, colours, channels, units: blocks are of 8 cells, tiles of 128 units, colours go by four
SIZES = [(1, 1, 1, 1, 1), (5, 7, 3, 2, 3), (9, 8, 4, 4, 5), (6, 17, 5, 3, 16), (3, 9, 11, 2, 130)]


def drawn(rows, cells, colours, channels, units, seed=0):
    rng = np.random.default_rng(seed)
    index = torch.from_numpy(rng.integers(0, colours, (rows, cells), dtype=np.uint8))
    index[0, 0] = colours - 1
    table = torch.from_numpy(rng.normal(size=(colours, channels)).astype(np.float32)).requires_grad_()
    layer = nn.Linear(cells * channels, units)
    grad = torch.from_numpy(rng.normal(size=(rows, units)).astype(np.float32))
    return index, table, layer, grad


@pytest.mark.parametrize("sizes", SIZES)
def test_values_and_gradients_are_those_of_the_sum_over_cells(sizes):
    index, table, layer, grad = drawn(*sizes)
    out = Coloured.apply(index, table, layer.weight, layer.bias)
    out.backward(grad)
    plain = [x.tolist() for x in (index, table, layer.weight)]
    np.testing.assert_allclose(
        out.tolist(), oracle.forward(*plain, layer.bias.tolist()), rtol=1e-4, atol=1e-5
    )
    for ours, expected in zip(
        (table.grad, layer.weight.grad, layer.bias.grad), oracle.backward(*plain, grad.tolist()), strict=True
    ):
        np.testing.assert_allclose(ours.tolist(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("sizes", [*SIZES, (40, 100, 8, 4, 200)])
def test_processors_without_wide_instructions_give_the_same_bits(sizes):
    index, table, layer, grad = (x.detach() if isinstance(x, torch.Tensor) else x for x in drawn(*sizes))
    inputs = [x.detach().numpy() for x in (index, table, layer.weight)]
    results = []
    for only_baseline in (False, True):
        out = np.full(grad.shape, np.nan, np.float32)
        grads = np.full(inputs[1].shape, np.nan, np.float32), np.full(inputs[2].shape, np.nan, np.float32)
        palette._palette.forward(*inputs, layer.bias.detach().numpy(), out, only_baseline=only_baseline)
        palette._palette.backward(*inputs, grad.numpy(), *grads, only_baseline=only_baseline)
        results.append((out, *grads))
    for best, baseline in zip(*results, strict=True):
        assert np.isfinite(best).all()
        np.testing.assert_array_equal(best, baseline)


def test_it_is_used_where_it_is_less_work_and_changes_nothing():
    index, table, layer, grad = drawn(64, 30, 8, 4, 16)
    gradients = []
    for rows in (index, index.long()):
        for without in (False, True):
            with pytest.MonkeyPatch.context() as patch:
                if without:
                    patch.setattr(palette, "_palette", None)
                out = coloured(rows, table, layer)
            assert ("Coloured" in out.grad_fn.name()) == (not without)
            table.grad = None
            layer.zero_grad()
            out.backward(grad)
            gradients.append([out.detach(), table.grad, layer.weight.grad.clone(), layer.bias.grad.clone()])
    for other in gradients[1:]:
        for ours, theirs in zip(gradients[0], other, strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_colours_beyond_those_that_occur_get_no_gradient():
    index, _, layer, grad = drawn(64, 30, 8, 4, 16)
    table = torch.randn(256, 4, requires_grad=True)
    coloured(index, table, layer).backward(grad)
    assert table.grad.shape == (256, 4)
    assert (table.grad[:8] != 0).all()
    assert (table.grad[8:] == 0).all()


@pytest.mark.parametrize(
    ("rows", "colours", "channels", "expected"),
    [
        (64, 8, 4, True),
        (10, 8, 4, False),
        (64, 8, 1, False),
        (16, 8, 2, False),
        (17, 8, 2, True),
        (999, 33, 4, False),
    ],
)
def test_work_is_counted_in_products_and_sums(rows, colours, channels, expected):
    assert is_less_work(rows, colours, channels) == expected


def test_doubles_empty_batches_and_layers_without_bias_go_the_plain_way():
    index, table, layer, _ = drawn(64, 30, 8, 4, 16)
    for plain in (
        coloured(index, table.double(), layer.double()),
        coloured(index, table, nn.Linear(120, 16, bias=False)),
        coloured(index[:0], table, nn.Linear(120, 16)),
    ):
        assert "Coloured" not in plain.grad_fn.name()


def test_indices_beyond_the_table_and_shapes_that_do_not_fit_are_refused():
    index, table, layer, _ = drawn(64, 30, 8, 4, 16)
    with pytest.raises(ValueError, match="index goes beyond the table"):
        Coloured.apply(index, table[:7], layer.weight, layer.bias)
    with pytest.raises(ValueError, match="weight does not fit"):
        Coloured.apply(index[:, 1:].contiguous(), table, layer.weight, layer.bias)
    with pytest.raises(ValueError, match="index goes beyond the table"):
        coloured(index, table[:7], layer)
