"""A batch that does not fit is refused with what was wrong and what was expected."""

import numpy as np
import pytest

from softcount.bonuses.checks import check_batch, take_embedding, take_surprise
from softcount.types import Features

NEVER = np.zeros(2, bool)


def test_what_fits_comes_back_as_plain_arrays():
    batch = check_batch(2, np.array([3, 1], np.uint8), NEVER)
    assert batch.env_ids.dtype == np.int64
    assert batch.env_ids.tolist() == [3, 1]


@pytest.mark.parametrize(
    "ids", [np.arange(3), np.array([0.0, 1.0]), np.array([0, -1]), np.zeros((2, 1), int)]
)
def test_ids_that_do_not_fit_are_refused(ids):
    with pytest.raises(ValueError, match=r"env_ids are .*; expected 2 whole numbers of at least 0"):
        check_batch(2, np.array(ids), NEVER)


@pytest.mark.parametrize("is_first", [np.zeros(2), np.zeros(1, bool)])
def test_flags_that_do_not_fit_are_refused(is_first):
    with pytest.raises(ValueError, match=r"is_first is .*; expected 2 booleans"):
        check_batch(2, np.arange(2), is_first)


def test_features_that_are_missing_or_not_finite_are_refused():
    with pytest.raises(ValueError, match=r"RECODE needs features\.embedding, which is None"):
        take_embedding(Features(), "RECODE")
    with pytest.raises(ValueError, match=r"RND needs features\.surprise, which is None"):
        take_surprise(Features(), "RND")
    with pytest.raises(ValueError, match=r"features\.surprise\[1\] is nan; the bonus is unchanged"):
        take_surprise(Features(surprise=np.array([0.0, np.nan])), "RND")
    with pytest.raises(ValueError, match=r"has shape \(2, 1\); expected \(B,\)"):
        take_surprise(Features(surprise=np.zeros((2, 1))), "RND")
    assert take_surprise(Features(surprise=np.float32([0.5])), "RND").dtype == np.float64
