"""What all representations share: which pairs of rows are steps, and means over them."""

import torch

from softcount.representations.features import masked_mean


def test_a_masked_mean_is_over_what_counts_and_zero_where_nothing_does():
    values = torch.tensor([1.0, 100.0, 3.0])
    assert masked_mean(values, torch.tensor([True, False, True])) == 2.0
    assert masked_mean(values, torch.zeros(3, dtype=torch.bool)) == 0.0
