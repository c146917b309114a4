"""The dense layer over colours: the same numbers as the plain layer, by another way."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from oracles import palette as oracle
from torch import nn

from softcount.torsos import GridConfig, GridTorso, palette
from softcount.torsos.palette import Coloured, coloured, is_less_work
from softcount.types import ArraySpec

native = pytest.importorskip("softcount.torsos._palette", reason="installed without a C++ compiler")

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


def names_of(node):
    """Returns the names of all that a gradient goes through."""
    return {node.name()}.union(*(names_of(before) for before, _ in node.next_functions if before is not None))


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
    index, table, layer, grad = drawn(*sizes)
    inputs = [x.detach().numpy() for x in (index, table, layer.weight)]
    *wider, baseline = native.kernel_names()
    assert baseline == "baseline"
    results = []
    for rank in range(len(wider) + 1):
        out = np.full(grad.shape, np.nan, np.float32)
        grads = np.full(inputs[1].shape, np.nan, np.float32), np.full(inputs[2].shape, np.nan, np.float32)
        native.forward(*inputs, layer.bias.detach().numpy(), out, rank=rank)
        native.backward(*inputs, grad.numpy(), *grads, rank=rank)
        results.append((out, *grads))
    assert all(np.isfinite(x).all() for x in results[-1])
    for others in results[:-1]:
        for ours, expected in zip(others, results[-1], strict=True):
            np.testing.assert_array_equal(ours, expected)
    with pytest.raises(ValueError, match=f"no kernels of rank {len(results)}"):
        native.forward(*inputs, layer.bias.detach().numpy(), out, rank=len(results))


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


def test_the_grid_torso_takes_it_for_a_batch_of_boards_and_not_for_a_few():
    torso = GridTorso(ArraySpec((5, 6), "uint8"), GridConfig(hidden_sizes=(16, 7)))
    boards = torch.from_numpy(np.random.default_rng(0).integers(0, 8, (64, 5, 6), dtype=np.uint8))
    many, few = torso(boards), torso(boards[:5])
    torch.testing.assert_close(many[:5], few, rtol=1e-4, atol=1e-5)
    assert "ColouredBackward" in names_of(many.grad_fn)
    assert "ColouredBackward" not in names_of(few.grad_fn)


@pytest.mark.parametrize("transposed", ["table", "weight"])
def test_tables_and_weights_may_lie_in_memory_as_they_like(transposed):
    index, table, layer, grad = drawn(64, 30, 8, 4, 16)
    inputs = {"table": table.detach(), "weight": layer.weight.detach()}
    results = []
    for lay in (lambda x: x.contiguous(), lambda x: x.t().contiguous().t()):
        leaves = {**inputs, transposed: lay(inputs[transposed])}
        leaves = {name: x.requires_grad_() for name, x in leaves.items()}
        out = Coloured.apply(index, leaves["table"], leaves["weight"], layer.bias)
        results.append([out, *torch.autograd.grad(out, list(leaves.values()), grad)])
    for ours, theirs in zip(*results, strict=True):
        assert torch.equal(ours, theirs)


def test_the_default_type_of_new_tensors_does_not_matter():
    index, table, layer, _ = drawn(64, 30, 8, 4, 16)
    expected = coloured(index, table, layer)
    torch.set_default_dtype(torch.float64)
    try:
        found = coloured(index, table, layer)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(found, expected)


def test_gradients_are_of_the_boards_that_were_seen():
    index, table, layer, grad = drawn(64, 30, 8, 4, 16)
    (expected,) = torch.autograd.grad(coloured(index, table, layer), table, grad)
    out = coloured(index, table, layer)
    index.zero_()  # an environment that writes its next observation into the same array
    (found,) = torch.autograd.grad(out, table, grad)
    assert torch.equal(found, expected)


@pytest.mark.parametrize(
    ("rows", "colours", "channels", "expected"),
    [
        (33, 8, 4, True),
        (32, 8, 4, False),
        (999, 8, 1, False),
        (49, 8, 2, True),
        (48, 8, 2, False),
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
    with pytest.raises(ValueError, match="the index has 7; expected less than the 7 rows of the table"):
        Coloured.apply(index, table[:7], layer.weight, layer.bias)
    with pytest.raises(ValueError, match="weight is 16 by 120; expected 16 by 116"):
        Coloured.apply(index[:, 1:].contiguous(), table, layer.weight, layer.bias)
    with pytest.raises(ValueError, match="the index has 7; expected less than the 7"):
        coloured(index, table[:7], layer)
    with pytest.raises(IndexError):
        coloured(index.long() - 250, table, layer)
    out = np.zeros((16, 64), np.float32).T  # would have to be copied, and the result be lost
    with pytest.raises(TypeError):
        native.forward(*(x.detach().numpy() for x in (index, table, layer.weight, layer.bias)), out)
