"""The memory's rows of the paper's Atari and DM-HARD-8 tables, as printed."""

from __future__ import annotations

import pytest

from softcount.presets import ATARI, DM_HARD_8

ATARI_TABLE = {"size": 5e4, "γ": 0.999, "η": 0.05, "κ": 0.2, "c": 0.01, "τ": 0.9999, "k": 20}
DM_HARD_8_TABLE = {"size": 2e5, "γ": 0.997, "η": 0.2, "κ": 0.2, "c": 0.01, "τ": 0.9999, "k": 20}


@pytest.mark.parametrize(("preset", "table"), [(ATARI, ATARI_TABLE), (DM_HARD_8, DM_HARD_8_TABLE)])
def test_the_preset_holds_the_values_of_the_table(preset, table):
    memory = preset.recode.memory
    assert table == {
        "size": memory.size,
        "γ": memory.count_discount,
        "η": memory.insertion_probability,
        "κ": memory.far_tolerance,
        "c": memory.reward_constant,
        "τ": pytest.approx(1 - memory.d2_step),
        "k": memory.neighbours,
    }


@pytest.mark.parametrize("preset", [ATARI, DM_HARD_8])
def test_rewards_are_divided_by_their_own_running_deviation(preset):
    assert (preset.recode.normaliser.kind, preset.recode.normaliser.step) == ("reward_std", 1e-5)
