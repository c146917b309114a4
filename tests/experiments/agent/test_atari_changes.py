"""Each change changes one thing."""

import pytest

from experiments.agent import atari_changes
from experiments.agent.atari_runs import atari_config
from softcount.config_json import changes


@pytest.mark.parametrize("change", [*atari_changes.FIELDS, *atari_changes.OPTIONS])
def test_a_change_is_one_change(change):
    base = atari_config("MEME-RECODE-FRAME", 1, steps=atari_changes.STEPS)
    found = changes(base, atari_changes.config_of(change, 1))
    assert len(found) == (2 if change in ("all pay", "epsilon of MEME") else 1), found


def test_every_change_has_two_seeds():
    keys = [job.key for job in atari_changes.jobs()]
    assert len(set(keys)) == len(keys) == 2 * (len(atari_changes.FIELDS) + len(atari_changes.OPTIONS))
