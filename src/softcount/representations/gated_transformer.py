"""The GatedTransformerXL of CASM ([GTrXL] with the relative positions of [Transformer-XL]).

Layer, input x, memory m (no gradient):

    y  = RelativeAttention(LN([m; x]))          attends to the past and itself only
    x' = Gate(x, relu(y))
    x″ = Gate(x', relu(MLP(LN(x'))))

    attention(i, j) ∝ exp( ((q_i + u)ᵀ k_j + (q_i + v)ᵀ W_R R_{i−j}) / √d )

    Gate(x, y):  r = σ(W_r y + U_r x)      z = σ(W_z y + U_z x − b)
                 h = tanh(W_g y + U_g (r∘x))     out = (1 − z)∘x + z∘h

b starts at 2, so that at first every layer is nearly the identity. Positions enter only as
distances i − j. An `is_first` cuts: no token sees another episode's.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softcount.torsos import mlp
from softcount.validation import at_least, check_fields, each


@dataclass(frozen=True, kw_only=True)
class GatedTransformerConfig:
    """Sizes; defaults are the paper's CASM table."""

    num_layers: int = 2
    """"Num Layers"."""
    width: int = 128
    """"Attention Size": width of the tokens, all heads together."""
    num_heads: int = 4
    """"Num Attention Heads"."""
    hidden_sizes: tuple[int, ...] = (512,)
    """"MLP Hidden Sizes" of the position-wise network."""
    gate_bias: float = 2.0
    """b at the start; +30 makes every layer the identity."""

    def __post_init__(self) -> None:
        check_fields(
            self,
            num_layers=at_least(1),
            width=at_least(2),
            num_heads=at_least(1),
            hidden_sizes=each(at_least(1)),
        )
        if self.width % self.num_heads or self.width % 2:
            raise ValueError(f"width is {self.width}; expected an even multiple of {self.num_heads} heads")


class GatedTransformer(nn.Module):
    """Causal tokens `[T, B, width]` to `[T, B, width]`.

    >>> net = GatedTransformer(GatedTransformerConfig(width=8, num_heads=2, hidden_sizes=(16,)))
    >>> out, memory = net(torch.zeros(5, 3, 8), torch.zeros(5, 3, dtype=torch.bool))
    >>> out.shape, len(memory)
    (torch.Size([5, 3, 8]), 2)
    """

    def __init__(self, config: GatedTransformerConfig | None = None) -> None:
        super().__init__()
        config = config or GatedTransformerConfig()
        head = config.width // config.num_heads
        self.content_bias = nn.Parameter(torch.zeros(config.num_heads, head))  # u, shared by all layers
        self.position_bias = nn.Parameter(torch.zeros(config.num_heads, head))  # v
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.num_layers))
        self.width = config.width

    def forward(
        self, tokens: Tensor, is_first: Tensor, memory: list[Tensor] | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Returns outputs and the inputs of every layer, which are the memory for what follows.

        A memory `[M, B, width]` per layer holds tokens of the same episode just before these.
        """
        past = 0 if memory is None else len(memory[0])
        is_visible = visible(is_first, past)  # [B, T, M+T]
        distances = sinusoids(past + len(tokens), self.width).to(tokens)
        inputs = []
        for i, layer in enumerate(self.layers):
            inputs.append(tokens.detach())
            context = tokens if memory is None else torch.cat((memory[i].detach(), tokens))
            tokens = layer(tokens, context, distances, is_visible, self.content_bias, self.position_bias)
        return tokens, inputs


class Layer(nn.Module):
    """Attention and a position-wise network, each behind a gate."""

    def __init__(self, config: GatedTransformerConfig) -> None:
        super().__init__()
        self.attention = RelativeAttention(config.width, config.num_heads)
        self.norm_one = nn.LayerNorm(config.width)
        self.norm_two = nn.LayerNorm(config.width)
        self.positionwise = mlp(config.width, config.hidden_sizes, config.width)
        self.gate_one = Gate(config.width, config.gate_bias)
        self.gate_two = Gate(config.width, config.gate_bias)

    def forward(
        self, x: Tensor, context: Tensor, distances: Tensor, is_visible: Tensor, u: Tensor, v: Tensor
    ) -> Tensor:
        y = self.attention(self.norm_one(context), len(x), distances, is_visible, u, v)
        x = self.gate_one(x, F.relu(y))
        gated: Tensor = self.gate_two(x, F.relu(self.positionwise(self.norm_two(x))))
        return gated


class RelativeAttention(nn.Module):
    """Multi-head attention that knows distances, not positions."""

    def __init__(self, width: int, num_heads: int) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.queries = nn.Linear(width, width, bias=False)
        self.keys_values = nn.Linear(width, 2 * width, bias=False)
        self.positions = nn.Linear(width, width, bias=False)  # W_R
        self.out = nn.Linear(width, width, bias=False)

    def forward(
        self, context: Tensor, num: int, distances: Tensor, is_visible: Tensor, u: Tensor, v: Tensor
    ) -> Tensor:
        """Attends from the last `num` rows of `context` `[M+T, B, W]` to all of it."""
        heads = (self.num_heads, -1)
        q = self.queries(context[-num:]).unflatten(-1, heads).permute(1, 2, 0, 3)  # [B, H, T, d]
        k, v_ = self.keys_values(context).chunk(2, -1)
        k, v_ = (x.unflatten(-1, heads).permute(1, 2, 0, 3) for x in (k, v_))  # [B, H, M+T, d]
        r = self.positions(distances).unflatten(-1, heads).permute(1, 0, 2)  # [H, M+T, d], row = distance
        scores = torch.einsum("bhtd,hsd->bhts", q + v[:, None], r)
        scores = shift(scores) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(~is_visible[:, None], float("-inf"))
        y = F.scaled_dot_product_attention(q + u[:, None], k, v_, attn_mask=scores)
        out: Tensor = self.out(y.permute(2, 0, 1, 3).flatten(2))
        return out


class Gate(nn.Module):
    """GRU-type gating of a residual connection: six matrices and one bias vector."""

    def __init__(self, width: int, bias: float) -> None:
        super().__init__()
        self.from_new = nn.Linear(width, 3 * width, bias=False)  # W_r, W_z, W_g
        self.from_old = nn.Linear(width, 2 * width, bias=False)  # U_r, U_z
        self.from_reset = nn.Linear(width, width, bias=False)  # U_g
        self.bias = nn.Parameter(torch.full((width,), bias))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        w_r, w_z, w_g = self.from_new(y).chunk(3, -1)
        u_r, u_z = self.from_old(x).chunk(2, -1)
        r = torch.sigmoid(w_r + u_r)
        z = torch.sigmoid(w_z + u_z - self.bias)
        h = torch.tanh(w_g + self.from_reset(r * x))
        return (1 - z) * x + z * h


def visible(is_first: Tensor, past: int = 0) -> Tensor:
    """Who may look at whom: `[T, B]` to `[B, T, past+T]`; the past and itself, in the same episode."""
    num = len(is_first)
    episode = is_first.long().cumsum(0).T  # [B, T]; 0 continues what is in the memory
    before = torch.zeros(len(episode), past, dtype=episode.dtype, device=episode.device)
    is_same = episode[:, :, None] == torch.cat((before, episode), 1)[:, None, :]
    return is_same & torch.ones(num, past + num, dtype=torch.bool, device=episode.device).tril(past)


def sinusoids(num: int, width: int) -> Tensor:
    """R: row d encodes the distance d, sines in the first half, cosines in the second."""
    frequencies = 10_000.0 ** (-torch.arange(0, width, 2) / width)
    angles = torch.arange(num)[:, None] * frequencies
    return torch.cat((angles.sin(), angles.cos()), -1)


def shift(scores: Tensor) -> Tensor:
    """Turns scores by distance, `[B, H, T, S]`, into scores by key: out[i, j] = in[i, i + S − T − j].

    Keys of the future (negative distance) get any number; the mask hides them.
    """
    num, size = scores.shape[-2:]
    query = torch.arange(num, device=scores.device)[:, None] + size - num
    index = (query - torch.arange(size, device=scores.device)).clamp_min(0)
    return scores.gather(-1, index.expand(*scores.shape[:-2], num, size))
