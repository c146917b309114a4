"""The shapes that cross borders, and what is read from them."""

import numpy as np
import torch

from softcount.types import is_transition, leaves_of, load_rng, rng_state


def test_either_flag_alone_cuts_two_rows_apart():
    """Packed traces have both; windows of a stream may begin or end between the two."""
    is_first = [True, False, True, False, False]
    is_last = [False, False, False, True, False]
    expected = [True, False, True, False]
    assert is_transition(np.array(is_first), np.array(is_last)).tolist() == expected
    columns = (torch.tensor(flag)[:, None] for flag in (is_first, is_last))
    assert is_transition(*columns).flatten().tolist() == expected


def test_leaves_come_in_the_order_of_the_tree():
    assert leaves_of({"b": (1, {"c": 2}), "a": 3}) == [1, 2, 3]
    assert leaves_of(()) == []


def test_a_generator_goes_on_from_where_another_was():
    one, two = np.random.default_rng(3), np.random.default_rng(4)
    one.random(5)
    load_rng(two, rng_state(one))
    np.testing.assert_array_equal(one.random(7), two.random(7))
