"""Configurations: who reads what, fields by their path, values that are refused."""

from dataclasses import replace

import pytest

from softcount.bonuses.ngu import NguConfig
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.config import MemeRunConfig, RunConfig, only_read, parts_read, with_fields
from softcount.memory import RecodeConfig
from softcount.presets import LAPTOP

READ = {
    "MEME-RECODE-CASM": {"meme", "recode", "representation", "trainer"},
    "MEME-EMM-AP": {"meme", "episodic", "representation", "trainer"},
    "MEME-NGU-AP": {"meme", "ngu", "representation", "trainer"},
    "MEME-RND": {"meme", "surprise", "representation", "trainer"},
    "MEME-RNDonAP": {"meme", "surprise", "representation", "trainer"},
    "MEME-BYOL-Explore": {"meme", "surprise", "representation", "trainer"},
    "MEME-COUNT": {"meme"},
    "MEME": {"meme"},
}


@pytest.mark.parametrize("agent", READ)
def test_each_agent_reads_its_own_parts(agent):
    assert set(parts_read(agent)) == READ[agent]


def test_what_is_not_read_goes_back_to_its_default_and_the_rest_stays():
    config = replace(LAPTOP, agent="MEME-NGU-AP", ngu=NguConfig(largest_factor=3.0))
    read = only_read(config)
    assert read.recode == RecodeBonusConfig() != LAPTOP.recode
    assert replace(read, recode=LAPTOP.recode) == config


def test_fields_are_replaced_by_their_path_and_nothing_else_is():
    config = with_fields(LAPTOP, {"recode.memory.size": 77, "seed": 4})
    expected = replace(LAPTOP.recode, memory=replace(LAPTOP.recode.memory, size=77))
    assert config == replace(LAPTOP, recode=expected, seed=4)
    with pytest.raises(ValueError, match=r"recode\.memory\.sise is not a field: RecodeConfig has no sise"):
        with_fields(LAPTOP, {"recode.memory.sise": 3})
    with pytest.raises(ValueError, match=r"seed\.deep is not a field: int has no deep"):
        with_fields(LAPTOP, {"seed.deep": 3})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RunConfig(num_envs=0), "RunConfig.num_envs is 0; expected at least 1"),
        (lambda: RunConfig(engine="fast"), "RunConfig.engine is 'fast'; expected one of"),
        (
            lambda: RunConfig(evaluation_episodes=1000),
            "evaluation_episodes is 1000; expected 1 to num_envs",
        ),
        (lambda: MemeRunConfig(batch_size=0), "MemeRunConfig.batch_size is 0; expected at least 1"),
        (lambda: MemeRunConfig(epsilon_base=1.5), r"epsilon_base is 1.5; expected a number in \[0, 1\]"),
        (lambda: MemeRunConfig(target_update_period=0), "target_update_period is 0; expected at least 1"),
        (lambda: RecodeBonusConfig(reembed_every=-1), "reembed_every is -1; expected at least 0"),
        (lambda: RecodeConfig(removal="best"), "RecodeConfig.removal is 'best'; expected one of"),
    ],
)
def test_every_record_refuses_what_cannot_be(make, message):
    with pytest.raises(ValueError, match=message):
        make()
