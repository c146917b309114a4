"""An LSTM over packed traces that resets inside the unroll, fast on a CPU.

    o, i, f = σ(W x_t + U h_{t−1} + b),   n = tanh(W x_t + U h_{t−1} + b)
    c_t = f c_{t−1} + i n,   h_t = o tanh(c_t),      with h_{t−1} = c_{t−1} = 0 where is_first_t

`torch.nn.LSTM` cannot reset between steps, and a loop over `LSTMCell` builds a graph node
for every small operation. Here W x_t is one product for all steps, the loop holds nothing but
what is recurrent, and the backward pass is written out: its loop makes the gradients of
the gates only, those of U follow in one product at the end.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


class ResetLstm(nn.Module):
    """An LSTM layer whose state is `(hidden, cell)`, each `[B, size]`.

    >>> core = ResetLstm(3, 8)
    >>> hidden, state = core(torch.zeros(5, 2, 3), core.initial_state(2), torch.zeros(5, 2, dtype=torch.bool))
    >>> tuple(hidden.shape), tuple(state[1].shape)
    ((5, 2, 8), (2, 8))
    """

    def __init__(self, inputs: int, size: int) -> None:
        super().__init__()
        self.size = size
        bound = 1 / math.sqrt(size)
        self.input_weight = nn.Parameter(torch.empty(4 * size, inputs).uniform_(-bound, bound))
        self.hidden_weight = nn.Parameter(torch.empty(4 * size, size).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.zeros(4 * size))
        with torch.no_grad():
            self.bias[2 * size : 3 * size] = 1.0  # forget gates start open

    def initial_state(self, batch: int) -> tuple[Tensor, Tensor]:
        """Returns zeros."""
        return self.bias.new_zeros(batch, self.size), self.bias.new_zeros(batch, self.size)

    def forward(
        self, inputs: Tensor, state: tuple[Tensor, ...], is_first: Tensor
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Unrolls over `[T, B, inputs]`; returns hidden outputs `[T, B, size]` and the last state."""
        hidden, cell = state
        from_inputs = F.linear(inputs, self.input_weight, self.bias)
        if len(inputs) == 1 and not torch.is_grad_enabled():  # acting: one step, nothing to differentiate
            hidden, cell = _step(from_inputs[0], self.hidden_weight, hidden, cell, is_first[0])
            return hidden.unsqueeze(0), (hidden, cell)
        unroll: Any = _Unroll.apply
        outputs, last_cell = unroll(from_inputs, self.hidden_weight, hidden, cell, is_first)
        return outputs, (outputs[-1], last_cell)


def _step(
    gates: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, is_first: Tensor
) -> tuple[Tensor, Tensor]:
    """One step for acting, without what an unroll has to prepare; `gates` `[B, 4 size]` are overwritten."""
    size = weight.shape[1]
    if is_first.any():
        hidden, cell = (x.masked_fill(is_first.unsqueeze(-1), 0.0) for x in (hidden, cell))
    gates.addmm_(hidden, weight.t())
    o, i, f = gates[:, : 3 * size].sigmoid_().split(size, 1)
    cell = torch.addcmul(f * cell, i, gates[:, 3 * size :].tanh_())
    return o * torch.tanh(cell), cell


class _Unroll(torch.autograd.Function):
    """The recurrent part; gates lie side by side in the order o, i, f, n.

    tanh(x) = 2σ(2x) − 1, so with the candidates doubled one σ does for all four gates, and
    gate n below is that σ. Slices are taken for all steps at once: in a loop over small
    matrices, indexing would cost as much as the arithmetic.
    """

    @staticmethod
    def forward(
        ctx: Any, from_inputs: Tensor, weight: Tensor, hidden: Tensor, cell: Tensor, is_first: Tensor
    ) -> tuple[Tensor, Tensor]:
        size = weight.shape[1]
        doubled = from_inputs.new_ones(4, 1).index_fill_(0, torch.tensor([3], device=weight.device), 2.0)
        weight_t = (weight.view(4, -1) * doubled).view_as(weight).t()
        gates = (from_inputs.unflatten(2, (4, size)) * doubled).flatten(2)
        # Views: what the loop writes into `gates` is what o, i, f and n show.
        o, i, f, n = (gate.unbind(0) for gate in gates.split(size, 2))
        keep = (~is_first).to(gates.dtype).unsqueeze(-1)
        has_reset, keep_t = is_first.any(1).tolist(), keep.unbind(0)
        hiddens, cells, cell_tanhs, outputs = [], [], [], []
        for t, gate in enumerate(gates.unbind(0)):
            if has_reset[t]:
                hidden, cell = hidden * keep_t[t], cell * keep_t[t]
            hiddens.append(hidden)
            cells.append(cell)
            gate.addmm_(hidden, weight_t).sigmoid_()
            cell = torch.addcmul(f[t] * cell, i[t], n[t], value=2).sub_(i[t])  # f c + i (2n − 1)
            cell_tanh = torch.tanh(cell)
            hidden = o[t] * cell_tanh
            cell_tanhs.append(cell_tanh)
            outputs.append(hidden)
        if any(ctx.needs_input_grad):
            ctx.save_for_backward(
                gates, torch.stack(hiddens), torch.stack(cells), torch.stack(cell_tanhs), keep, weight
            )
        return torch.stack(outputs), cell

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_outputs: Tensor, grad_cell: Tensor) -> tuple[Tensor | None, ...]:
        gates, hiddens, cells, cell_tanh, keep, weight = ctx.saved_tensors
        time, batch, size = cells.shape
        o, i, f, n = gates.split(size, 2)
        slopes = gates - gates * gates  # σ' = σ (1 − σ)
        so, si, sf, sn = slopes.split(size, 2)
        # Each slope times what its gate is multiplied by: h = o tanh(c), c = i (2n − 1) + f c_{t−1}.
        # The factor of n is 4 because it was doubled twice, as input and as output.
        so *= cell_tanh
        si *= 2 * n - 1
        sf *= cells
        sn *= 4 * i
        to_cell = (o - o * cell_tanh * cell_tanh).unbind(0)  # ∂h/∂c
        to_before = (f * keep).unbind(0)  # ∂c_t/∂c_{t−1}: nothing flows back over the start of an episode
        grad_gates = slopes.view(time, batch, 4, size)
        # o is reached through h, the other three through c.
        from_hidden, from_cell = grad_gates[:, :, :1].unbind(0), grad_gates[:, :, 1:].unbind(0)
        flat, grad_output, keep_t = slopes.unbind(0), grad_outputs.unbind(0), keep.unbind(0)
        grad_hidden = torch.zeros_like(grad_cell)
        for t in range(time - 1, -1, -1):
            grad_hidden = grad_hidden + grad_output[t]
            grad_cell = torch.addcmul(grad_cell, grad_hidden, to_cell[t])
            from_hidden[t].mul_(grad_hidden.unsqueeze(1))
            from_cell[t].mul_(grad_cell.unsqueeze(1))
            grad_hidden = torch.mm(flat[t], weight).mul_(keep_t[t])
            grad_cell = grad_cell * to_before[t]
        grad_weight = slopes.flatten(0, 1).t() @ hiddens.flatten(0, 1)
        return slopes, grad_weight, grad_hidden, grad_cell, None
