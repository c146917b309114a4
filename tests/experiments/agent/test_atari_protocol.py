"""The way from our setting to the paper's protocol ends at the paper's protocol."""

from itertools import pairwise

import pytest

from experiments.agent import atari_changes, atari_protocol
from softcount.config_json import changes
from softcount.envs.atari import AtariConfig


def test_the_last_step_is_the_papers_protocol_and_the_first_is_a_run_of_the_changes():
    *_, last = atari_protocol.STEPWISE
    assert AtariConfig(**atari_protocol.config_of(last).env_options) == AtariConfig()
    shared = next(job.key for job in atari_protocol.jobs())
    assert shared in {job.key for job in atari_changes.jobs()}
    first, *_ = atari_protocol.STEPWISE
    assert atari_protocol.config_of(first) == atari_changes.config_of(first, atari_protocol.SEED)


def test_each_step_keeps_what_came_before_and_changes_its_own_options_alone():
    steps = [*atari_protocol.STEPWISE]
    for before, step in pairwise(steps):
        found = changes(atari_protocol.config_of(before), atari_protocol.config_of(step))
        own = {f"env_options.{name}" for name in atari_protocol.STEPWISE[step]}
        if step == steps[-1]:
            own |= set(atari_protocol.LARGE)
        assert {line.split(":")[0] for line in found} == own


def test_an_unknown_step_is_refused():
    with pytest.raises(ValueError, match="no step is called 'sideways'"):
        atari_protocol.config_of("sideways")
