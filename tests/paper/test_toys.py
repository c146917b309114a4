"""The paper's two toy figures at small scale (64 and 100 atoms): which claims of the captions hold, and when.

Removal strategies. That the smallest count as victim leaves the atoms in the corner holds in every
setting tried. That 1/c² alone ends with uniform centres *and* counts holds with one discount per
embedding, k = 5 and d2_step = 1e-3. It does not hold with the package's defaults (γ shared by 64
embeddings, k = 20, d2_step = 1e-4), where 1/c is the more uniform in both. The paper gives neither
the size of the memory nor k for this figure.
"""

import itertools

import numpy as np
import pytest

from experiments.memory.streams import discount_toy, removal_toy
from softcount import RecodeConfig, RecodeMemory


def run_removal(removal, num_batches, seed, **fields):
    """Feeds the toy to 64 atoms; returns their mean coordinate (target 50) and the spread of counts."""
    config = RecodeConfig(
        size=64,
        dim=2,
        warmup_atoms=64,
        count_discount=0.9999,
        insertion_probability=0.5,
        removal=removal,
        **fields,
    )
    memory = RecodeMemory(config, seed=seed)
    for batch in itertools.islice(removal_toy(seed=seed + 100), num_batches):
        memory.observe(batch)
    counts = memory.counts
    return float(memory.atoms.mean()), float(counts.std() / counts.mean())


@pytest.mark.parametrize("seed", range(3))
def test_removing_the_smallest_count_leaves_the_atoms_in_the_corner(seed):
    means = {rule: run_removal(rule, 300, seed)[0] for rule in ("smallest", "inverse", "inverse_square")}
    assert means["smallest"] < min(means["inverse"], means["inverse_square"])
    assert means["smallest"] < 25  # the middle of the corner's quarter


@pytest.mark.slow
def test_with_a_discount_per_embedding_only_the_inverse_square_is_uniform_in_centres_and_counts():
    fields = {"embeddings_per_step": 1, "neighbours": 5, "d2_step": 1e-3}
    found = {
        rule: np.mean([run_removal(rule, 3000, seed, **fields) for seed in range(3)], axis=0)
        for rule in ("smallest", "inverse", "inverse_square")
    }
    assert abs(found["inverse_square"][0] - 50) < 3
    assert abs(found["inverse"][0] - 50) < 3
    assert found["smallest"][0] < 47
    assert found["inverse_square"][1] < 0.6 * found["inverse"][1]


def run_discount(discount):
    config = RecodeConfig(
        size=100, dim=2, neighbours=5, warmup_atoms=20, count_discount=discount, insertion_probability=0.3,
        d2_step=1e-3,
    )  # fmt: skip
    memory = RecodeMemory(config, seed=0)
    for batch in discount_toy(seed=1):
        memory.observe(batch)
    counts = memory.counts
    return float((counts @ memory.atoms / counts.sum()).mean())


def test_a_small_discount_matches_the_last_distribution_and_a_large_one_the_corner():
    """The last square has side 11; the mean over all 101 squares is at half of their mean side."""
    last, all_time = 11 / 2, np.mean(1 + np.sqrt(np.arange(101))) / 2
    centres = {discount: run_discount(discount) for discount in (0.9, 0.99, 1.0)}
    assert abs(centres[0.9] - last) < 0.4
    assert abs(centres[1.0] - all_time) < 0.4
    assert centres[1.0] < centres[0.99] < centres[0.9]
