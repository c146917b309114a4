"""Which atom makes room: the rules alone, and through the whole memory."""

import json

import numpy as np
import pytest

from softcount import RecodeConfig, RecodeMemory
from softcount.memory.removal import RULES


@pytest.mark.parametrize(("removal", "power"), [("inverse_square", 2), ("inverse", 1)])
@pytest.mark.parametrize("shift", [0.0, -1e6])
def test_victims_are_drawn_with_the_exact_probabilities(removal, power, shift):
    counts = np.array([1.0, 2.0, 0.5, 4.0, 1.0, 3.0])
    rng = np.random.default_rng(0)
    draws = np.bincount([RULES[removal](np.log(counts) + shift, u) for u in rng.random(20_000)], minlength=6)
    expected = 20_000 * counts**-power / (counts**-power).sum()
    chi2 = ((draws - expected) ** 2 / expected).sum()
    assert chi2 < 20.5  # 5 degrees of freedom: exceeded with chance 0.001


def test_victims_are_drawn_with_the_exact_probabilities_by_the_whole_memory(engine):
    """The same through `observe`, from one full state again and again, at counts no float can hold."""
    config = RecodeConfig(size=5, dim=1, insertion_probability=1.0, far_tolerance=0.0, warmup_atoms=5)
    memory = RecodeMemory(config, engine=engine)
    memory.observe(np.arange(5.0)[:, None])
    counts = np.array([1.0, 2.0, 0.5, 4.0, 1.5])
    state = memory.state_dict() | {"log_counts": np.log(counts) - 1e6, "log_scale": 0.0}
    victims = np.zeros(5)
    for seed in range(3000):
        generator = json.dumps(np.random.default_rng(seed).bit_generator.state)
        memory.load_state_dict(state | {"generator": generator})
        _, observed = memory.observe([10.0], details=True)
        victims[observed.slot[0]] += 1
    expected = 3000 * counts**-2 / (counts**-2).sum()
    assert ((victims - expected) ** 2 / expected).sum() < 18.5  # 4 degrees of freedom: 0.001


def test_draws_at_the_ends_of_the_unit_interval_stay_in_range():
    log_counts = np.log([3.0, 1.0, 2.0])
    for rule in ("inverse_square", "inverse"):
        assert RULES[rule](log_counts, 0.0) == 0
        assert RULES[rule](log_counts, np.nextafter(1.0, 0.0)) == 2
    assert RULES["smallest"](np.log([3.0, 1.0, 1.0]), 0.9) == 1


def test_a_draw_falls_where_the_cumulative_weights_say():
    log_counts = np.log([1.0, 2.0, 4.0])  # weights 1, 1/4, 1/16 of 21/16
    for u, slot in [(15.9 / 21, 0), (16.1 / 21, 1), (19.9 / 21, 1), (20.1 / 21, 2)]:
        assert RULES["inverse_square"](log_counts, u) == slot
    for u, slot in [
        (0.0, 0),
        (0.25, 1),
        (0.5, 2),
        (0.75, 3),
    ]:  # of equal weights: a border is the next slot's
        assert RULES["inverse"](np.zeros(4), u) == slot
    for u, slot in [(3.9 / 7, 0), (4.1 / 7, 1), (5.9 / 7, 1), (6.1 / 7, 2)]:
        assert RULES["inverse"](log_counts, u) == slot
