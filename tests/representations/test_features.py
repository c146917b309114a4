"""What all representations share: which pairs of rows are steps, and means over them."""

import torch

from softcount.representations.features import is_transition, masked_mean
from softcount.types import Step


def rows(is_first, is_last):
    flags = (torch.tensor(flag)[:, None] for flag in (is_first, is_last))
    return Step(None, None, None, None, *flags, None, None, {})


def test_either_flag_alone_cuts_two_rows_apart():
    """Packed traces have both; windows of a stream may begin or end between the two."""
    is_first = [True, False, True, False, False]
    is_last = [False, False, False, True, False]
    assert is_transition(rows(is_first, is_last)).flatten().tolist() == [True, False, True, False]


def test_a_masked_mean_is_over_what_counts_and_zero_where_nothing_does():
    values = torch.tensor([1.0, 100.0, 3.0])
    assert masked_mean(values, torch.tensor([True, False, True])) == 2.0
    assert masked_mean(values, torch.zeros(3, dtype=torch.bool)) == 0.0
