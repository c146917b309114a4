"""Measures of scored places, by hand and against SciPy."""

import numpy as np
import pytest
import scipy.stats

from softcount.measure.scored_places import agreement, contrast, overlooked, rank_correlation


@pytest.mark.parametrize("seed", range(5))
def test_rank_correlation_is_spearmans_with_ties(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.integers(5, size=30), rng.integers(8, size=30)
    assert rank_correlation(x, y) == pytest.approx(scipy.stats.spearmanr(x, y).statistic)


def test_a_constant_side_has_no_correlation():
    assert rank_correlation([1, 1, 1], [1, 2, 3]) == 0


def test_agreement_falls_with_every_pair_in_the_wrong_order():
    visits = [0, 1, 10, 100]
    assert agreement([4, 3, 2, 1], visits) == 1
    assert agreement([4, 2, 3, 1], visits) == pytest.approx(0.8)
    assert agreement([1, 2, 3, 4], visits) == -1


def test_contrast_is_new_over_known_pay_in_medians():
    assert contrast([9.0, 3.0, 5.0, 0.5, 0.1], [0, 0, 0, 7, 1]) == pytest.approx(5.0 / 0.3)
    assert contrast([1.0, 2.0], [3, 4]) is None
    assert contrast([1.0, 2.0], [0, 0]) is None
    assert contrast([1.0, 0.0], [0, 4]) == pytest.approx(1e12)  # known places that are paid nothing


def test_overlooked_is_the_worst_share_among_visited_places():
    fair = np.array([1.0, 0.5, 0.25, 7.0])
    assert overlooked(fair, [1, 4, 16, 0]) == pytest.approx(1)
    assert overlooked(fair * [1, 1, 0.2, 0.001], [1, 4, 16, 0]) == pytest.approx(5)
    assert overlooked([1.0], [0]) is None
