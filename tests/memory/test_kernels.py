"""Kernel, distances and neighbours, by hand."""

import numpy as np
from oracles.recode import float32

from softcount.memory.kernels import k_smallest, kernel, squared_distances


def test_kernel_is_one_at_the_atom_half_at_epsilon_and_zero_at_the_radius():
    d2_ema, epsilon = 4.0, 0.25
    values = kernel(np.array([0.0, epsilon * d2_ema, np.nextafter(4.0, 0.0), 4.0, 5.0]), d2_ema, epsilon)
    np.testing.assert_allclose(values, [1.0, 0.5, 0.2, 0.0, 0.0], rtol=1e-12)
    np.testing.assert_array_equal(kernel(np.array([0.0, 1e-300]), 0.0, epsilon), [1.0, 0.0])


def test_distances_far_from_the_origin_keep_all_their_digits():
    atoms = np.array([[1000.0, 1000.0], [1000.001, 1000.0]], np.float32)
    e = np.array([1000.0005, 1000.0], np.float32)
    exact = [(float32(a) - float32(1000.0005)) ** 2 for a in (1000.0, 1000.001)]
    np.testing.assert_array_equal(squared_distances(atoms, e), exact)


def test_differences_of_unlike_sizes_are_not_rounded_to_single_precision():
    atoms, e = np.array([[1.0], [-3.0]], np.float32), np.array([1e-9], np.float32)
    exact = [(a - float32(1e-9)) ** 2 for a in (1.0, -3.0)]
    np.testing.assert_array_equal(squared_distances(atoms, e), exact)


def test_the_k_smallest_come_in_ascending_order():
    assert k_smallest(np.array([5.0, 1.0, 4.0, 1.0, 3.0]), 3).tolist() == [1.0, 1.0, 3.0]
    assert k_smallest(np.array([2.0, 1.0]), 2).tolist() == [1.0, 2.0]
    # Few would be sorted by chance, and hundreds are by the vector instructions of some processors.
    many = np.random.default_rng(0).permutation(20_000).astype(np.float64)
    assert k_smallest(many, 10_000).tolist() == list(range(10_000))
