"""Coupled masking: one half of every pair, never both, never none."""

from __future__ import annotations

import pytest
import torch
from oracles.representations import casm_tokens

from softcount.representations.masking import couple, draw_masks, starts


def some_starts():
    is_first = torch.zeros(6, 2, dtype=torch.bool)
    is_first[3, 0] = True
    return is_first


def test_first_tokens_always_show_their_state():
    hides = draw_masks(some_starts(), 50, 1.0, torch.Generator().manual_seed(0))
    assert not hides[:, 0].any()
    assert not hides[:, 3, 0].any()
    assert hides[:, [1, 2, 4, 5], 0].all()
    assert hides[:, 1:, 1].all()


def test_the_rate_is_how_often_the_state_is_hidden():
    hides = draw_masks(torch.zeros(101, 40, dtype=torch.bool), 4, 0.8, torch.Generator().manual_seed(0))
    assert hides[:, 1:].float().mean().item() == pytest.approx(0.8, abs=0.01)


def test_masks_of_a_trace_are_independent_and_seeded():
    draw = lambda seed: draw_masks(some_starts(), 4, 0.5, torch.Generator().manual_seed(seed))  # noqa: E731
    assert torch.equal(draw(0), draw(0))
    assert not torch.equal(draw(0), draw(1))
    assert len({tuple(mask.flatten().tolist()) for mask in draw(0)}) == 4


def test_pairs_match_the_oracle():
    generator = torch.Generator().manual_seed(1)
    is_first = some_starts()
    embedding = torch.randn(6, 2, 3, generator=generator)
    action = torch.randn(6, 2, 2, generator=generator)
    hidden = tuple(torch.randn(n, generator=generator) for n in (3, 2, 2))
    hides = draw_masks(is_first, 4, 0.5, generator)
    pairs = couple(embedding, action, hides, starts(is_first), hidden)
    for n in range(4):
        for b in range(2):
            expected = casm_tokens(
                embedding[:, b].tolist(),
                action[:, b].tolist(),
                is_first[:, b].tolist(),
                hides[n, :, b].tolist(),
                *(part.tolist() for part in hidden),
            )
            assert pairs[n, :, b].tolist() == expected


def test_wrong_rates_are_refused():
    with pytest.raises(ValueError, match=r"rate is 1\.2"):
        draw_masks(some_starts(), 1, 1.2, torch.Generator())
