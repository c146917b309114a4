"""A dense layer over looked-up colours, without looking every cell up.

    y[n] = b + Σ_cell W_cell · table[index[n, cell]]

With C colours there are only cells × C different products W_cell · table[c]. The C++ kernel
(`native/palette.h`) makes each once and adds them up; backwards it adds up the gradients of the rows in
which a cell has a colour, and multiplies only then. It is the same layer up to rounding, several times
faster in both directions. Where that would be no less work, or is not possible (no compiler at
installation, another device or type), the layer is evaluated as it stands.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

try:
    import softcount.torsos._palette as _palette
except ImportError:  # installed without a C++ compiler
    _palette = None

MAX_COLOURS = 32
"""With more, what is made of a block of cells leaves the processor's nearest cache."""


def coloured(index: Tensor, table: Tensor, layer: nn.Linear) -> Tensor:
    """Returns `layer(table[index])`, `[N, units]`; indices are `[N, cells]`, the table `[colours, channels]`.

    >>> layer = nn.Linear(4, 1, bias=False)  # two cells of two channels
    >>> _ = layer.weight.data.copy_(torch.tensor([[1.0, 10.0, 100.0, 1000.0]]))
    >>> coloured(torch.tensor([[0, 1]]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]), layer).tolist()
    [[4321.0]]
    """
    if _can_fuse(index, table, layer):
        num_colours = int(index.max()) + 1
        if is_less_work(len(index), num_colours, table.shape[1]):
            cells = index.to(
                torch.uint8, copy=True
            )  # the caller may overwrite its own before the gradient is taken
            fused: Tensor = Coloured.apply(cells, table[:num_colours], layer.weight, layer.bias)  # type: ignore[no-untyped-call]
            return fused
    plain: Tensor = layer(look_up(index, table))
    return plain


def look_up(index: Tensor, table: Tensor) -> Tensor:
    """Returns the rows of a table side by side: `[N, cells]` to `[N, cells · channels]`."""
    return table.index_select(0, index.flatten().long()).reshape(len(index), index.shape[1] * table.shape[1])


def is_less_work(num_rows: int, num_colours: int, channels: int) -> bool:
    """Says whether C products and N sums take less than N products, for each cell and unit.

    Products made here have to bring their weights in order first and take about as long as three sums.
    """
    return num_colours <= MAX_COLOURS and 3 * num_colours * channels + num_rows < num_rows * channels


class Coloured(torch.autograd.Function):
    """The fused layer: `apply(index, table, weight, bias)`; index uint8, the rest float32, on the CPU."""

    @staticmethod
    def forward(ctx: Any, index: Tensor, table: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        out = weight.new_empty(len(index), len(weight))
        ctx.save_for_backward(index, table, weight)
        _palette.forward(*_arrays(index, table, weight, bias), out.numpy())
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, Tensor, Tensor]:
        index, table, weight = ctx.saved_tensors
        grad_table, grad_weight = table.new_empty(table.shape), weight.new_empty(weight.shape)
        gradients = grad_table.numpy(), grad_weight.numpy()
        _palette.backward(*_arrays(index, table, weight, grad), *gradients)
        return None, grad_table, grad_weight, grad.sum(0)


def _can_fuse(index: Tensor, table: Tensor, layer: nn.Linear) -> bool:
    tensors = (table, layer.weight, layer.bias)
    return (
        _palette is not None
        and index.numel() > 0
        and (index.dtype == torch.uint8 or int(index.min()) >= 0)
        and all(x is not None and x.device.type == "cpu" and x.dtype == torch.float32 for x in tensors)
    )


def _arrays(*tensors: Tensor) -> list[np.ndarray[Any, Any]]:
    return [x.detach().contiguous().numpy() for x in tensors]
