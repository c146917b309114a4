"""Configurations: written down and read back exactly, errors that name the field."""

import json
import warnings
from dataclasses import is_dataclass, replace

import pytest

from softcount.agents.meme.agent import MemeConfig
from softcount.config import RunConfig, changes, from_json, structure, to_json
from softcount.memory import RecodeConfig
from softcount.presets import PRESETS
from softcount.torsos import TORSOS


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_json(name):
    assert from_json(to_json(PRESETS[name])) == PRESETS[name]


def edited(change):
    content = json.loads(to_json(RunConfig()))
    change(content)
    return json.dumps(content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(stepz=3), r"config.stepz is not a field of RunConfig"),
        (lambda c: c["memory"].update(size="big"), r"config.memory.size is 'big'; expected int"),
        (lambda c: c["memory"].update(size=True), r"config.memory.size is True; expected int"),
        (lambda c: c["memory"].update(removal="best"), r"config.memory.removal is 'best'"),
        (lambda c: c["memory"].update(size=0), r"RecodeConfig.size is 0"),
        (lambda c: c.update(terminal_observations="eaten"), r"config.terminal_observations is 'eaten'"),
        (
            lambda c: c.update(evaluation_episodes=1000),
            r"evaluation_episodes is 1000; expected 1 to num_envs",
        ),
        (lambda c: c["meme"].update(adam_betas=[0.9]), r"config.meme.adam_betas"),
    ],
)
def test_what_does_not_fit_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        from_json(edited(change))


def test_a_field_that_an_older_file_lacks_has_its_default_and_is_named_once():
    text = edited(lambda c: (c["memory"].pop("size"), c["meme"]["network"].pop("value_unit")))
    with pytest.warns(
        UserWarning, match="without config.meme.network.value_unit, config.memory.size;"
    ) as said:
        assert from_json(text) == RunConfig()
    assert len(said) == 1
    with pytest.raises(ValueError, match=r"config\.size is missing"):
        structure(RecodeConfig, {})


@pytest.mark.parametrize("name", [name for name, torso in TORSOS.items() if is_dataclass(torso)])
def test_of_several_kinds_the_one_that_fits_wholly_is_taken(name):
    network = replace(MemeConfig().network, torso=TORSOS[name])
    config = RunConfig(meme=replace(MemeConfig(), network=network))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert from_json(to_json(config)) == config
    content = json.loads(to_json(config))
    del content["seed"]  # an older file
    with pytest.warns(UserWarning, match=r"without config\.seed;"):
        assert from_json(json.dumps(content)) == config


def test_what_is_not_json_is_an_error():
    with pytest.raises(ValueError, match="not JSON"):
        from_json("{")


def test_changes_name_the_fields_that_differ():
    before = RunConfig()
    after = replace(before, seed=4, memory=RecodeConfig(size=77))
    assert changes(before, after) == ["memory.size: 50000 -> 77", "seed: 0 -> 4"]
    assert changes(before, before) == []


def test_whole_numbers_stand_for_floats_but_not_the_other_way():
    assert structure(float, 3) == 3.0
    with pytest.raises(ValueError, match="expected int"):
        structure(int, 3.5)


def test_atoms_cannot_be_moved_every_minus_one_updates():
    with pytest.raises(ValueError, match="reembed_every is -1; expected at least 0"):
        RunConfig(reembed_every=-1)
