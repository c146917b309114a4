"""The memory's rows of the paper's two hyper-parameter tables."""

import pytest

from softcount import RecodeConfig


def test_the_defaults_are_the_atari_table():
    config = RecodeConfig()
    assert config.size == 5 * 10**4
    assert config.count_discount == 0.999
    assert config.insertion_probability == 0.05
    assert config.far_tolerance == 0.2
    assert config.reward_constant == 0.01
    assert 1 - config.d2_step == pytest.approx(0.9999, rel=1e-12)
    assert config.neighbours == 20
    assert config.removal == "inverse_square"


def test_what_the_tables_leave_open_is_as_decided():
    config = RecodeConfig()
    assert config.dim == 32
    assert config.kernel_epsilon == 1e-4
    assert config.warmup_atoms == 10 * config.neighbours
    assert config.embeddings_per_step is None  # 64 in a memory used alone
    assert config.embedding_discount**64 == pytest.approx(0.999, rel=1e-12)


def test_the_dm_hard_8_table_is_a_legal_memory():
    """Differs from Atari's in size, discount and insertion probability only."""
    config = RecodeConfig(size=2 * 10**5, count_discount=0.997, insertion_probability=0.2)
    assert (config.far_tolerance, config.reward_constant, config.neighbours) == (0.2, 0.01, 20)
    assert 1 - config.d2_step == pytest.approx(0.9999, rel=1e-12)
