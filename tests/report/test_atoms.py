"""Large memories are shown in part, evenly over ages; their histograms are of all atoms."""

import numpy as np

from softcount import RecodeConfig, RecodeMemory
from softcount.report.atoms import describe_atoms


def test_of_many_atoms_an_even_choice_is_drawn_and_all_are_counted():
    memory = RecodeMemory(RecodeConfig(size=200, dim=3, warmup_atoms=200), seed=0)
    memory.observe(np.random.default_rng(0).normal(size=(200, 3)))
    shown = describe_atoms(memory, limit=21)
    assert len(shown["x"]) == len(shown["y"]) == len(shown["log10_counts"]) == 21
    assert (shown["ages"][0], shown["ages"][-1]) == (200, 1)
    steps = -np.diff(shown["ages"])
    assert steps.min() >= 9
    assert steps.max() <= 11
    assert sum(shown["age_bins"]["numbers"]) == sum(shown["count_bins"]["numbers"]) == 200
