"""Configurations as files: read back exactly, in this version and in the first; errors name the field."""

import json
import warnings
from dataclasses import is_dataclass, replace
from pathlib import Path

import pytest

from softcount.agents.meme.bandit import BanditConfig
from softcount.bonuses.episodic import EpisodicBonusConfig
from softcount.bonuses.normalise import NormaliserConfig
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.bonuses.surprise import RND_ON_AP, SurpriseConfig
from softcount.config import MemeRunConfig, RunConfig, only_read, with_fields
from softcount.config_json import changes, from_json, from_tree, structure, to_json, to_tree
from softcount.memory import RecodeConfig
from softcount.optimiser import OptimiserConfig
from softcount.presets import LAPTOP, PRESETS, suited
from softcount.replay.config import ReplayConfig
from softcount.torsos import TORSOS

RESULTS = Path(__file__).parents[1] / "results"


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_survives_json(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert from_json(to_json(PRESETS[name])) == only_read(PRESETS[name])


@pytest.mark.parametrize("agent", ["MEME-NGU-AP", "MEME-RND", "MEME-COUNT", "MEME"])
def test_only_what_the_agent_reads_is_written_and_its_absence_is_no_news(agent):
    config = suited(LAPTOP, agent)
    tree = to_tree(config)
    assert "recode" not in tree
    assert ("ngu" in tree) == (agent == "MEME-NGU-AP")
    assert ("trainer" in tree) == (agent in ("MEME-NGU-AP", "MEME-RND"))
    assert tree["version"] == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert from_json(to_json(config)) == replace(
            config,
            recode=RecodeBonusConfig(),
            **({} if "trainer" in tree else {"representation": RunConfig().representation}),
            **({} if "trainer" in tree else {"trainer": RunConfig().trainer}),
        )


def edited(change):
    content = json.loads(to_json(RunConfig()))
    change(content)
    return json.dumps(content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(stepz=3), r"config.stepz is not a field of RunConfig"),
        (lambda c: c["recode"]["memory"].update(size="big"), r"recode.memory.size is 'big'; expected int"),
        (lambda c: c["recode"]["memory"].update(size=True), r"recode.memory.size is True; expected int"),
        (lambda c: c["recode"]["memory"].update(removal="best"), r"config.recode.memory.removal is 'best'"),
        (lambda c: c["recode"]["memory"].update(size=0), r"RecodeConfig.size is 0"),
        (lambda c: c.update(terminal_observations="eaten"), r"config.terminal_observations is 'eaten'"),
        (lambda c: c["meme"]["optimiser"].update(betas=[0.9]), r"config.meme.optimiser.betas"),
        (lambda c: c.update(version=3), r"version 3; this one reads 1 to 2"),
        (lambda c: c.update(memory={"size": 3}), r"config.memory is not a field of RunConfig"),
    ],
)
def test_what_does_not_fit_is_named(change, message):
    with pytest.raises(ValueError, match=message):
        from_json(edited(change))


def test_a_field_that_an_older_file_lacks_has_its_default_and_is_named_once():
    text = edited(lambda c: (c["recode"]["memory"].pop("size"), c["meme"]["network"].pop("value_unit")))
    with pytest.warns(
        UserWarning, match="without config.meme.network.value_unit, config.recode.memory.size;"
    ) as said:
        assert from_json(text) == RunConfig()
    assert len(said) == 1
    with pytest.raises(ValueError, match=r"config\.size is missing"):
        structure(RecodeConfig, {})


@pytest.mark.parametrize("name", [name for name, torso in TORSOS.items() if is_dataclass(torso)])
def test_of_several_kinds_the_one_that_fits_wholly_is_taken(name):
    config = with_fields(RunConfig(), {"meme.network.torso": TORSOS[name]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert from_json(to_json(config)) == config
    content = json.loads(to_json(config))
    del content["seed"]  # an older file
    with pytest.warns(UserWarning, match=r"without config\.seed;"):
        assert from_json(json.dumps(content)) == config


@pytest.mark.parametrize("text", ["{", "[1, 2]", "3"])
def test_what_holds_no_fields_is_an_error(text):
    with pytest.raises(ValueError, match=r"not JSON|expected the fields of RunConfig"):
        from_json(text)


def test_changes_name_the_fields_that_differ():
    before = RunConfig()
    after = with_fields(before, {"seed": 4, "recode.memory.size": 77})
    assert changes(before, after) == ["recode.memory.size: 50000 -> 77", "seed: 0 -> 4"]
    assert changes(before, before) == []


def test_whole_numbers_stand_for_floats_but_not_the_other_way():
    assert structure(float, 3) == 3.0
    with pytest.raises(ValueError, match="expected int"):
        structure(int, 3.5)


# Version 1, as files and results of then have it

FIRST = {
    "agent": "MEME-RECODE-AP",
    "seed": 3,
    "bandit": {"discount": 0.9},
    "epsilon_base": 0.25,
    "epsilon_power": 2.0,
    "evaluation_epsilon": 0.125,
    "replay": {"period": 8, "trace_length": 16, "capacity": 100, "min_traces": 7},
    "batch_size": 5,
    "importance_exponent": 0.5,
    "relabel": True,
    "memory": {"size": 77},
    "reembed_every": 9,
    "normaliser": {"kind": "mean"},
    "meme": {
        "learning_rate": 0.01,
        "weight_decay": 0.02,
        "adam_betas": [0.8, 0.9],
        "adam_epsilon": 0.03,
        "max_grad_norm": 4.0,
    },
    "trainer": {
        "learning_rate": 0.04,
        "weight_decay": 0.05,
        "betas": [0.7, 0.6],
        "epsilon": 0.06,
        "clip_norm": None,
    },
}


def read_first(**fields):
    with pytest.warns(UserWarning, match="older version without"):
        return from_tree(FIRST | fields)


def test_every_field_of_version_1_stands_where_it_is_read_today():
    config = read_first()
    meme, recode, trainer = config.meme, config.recode, config.trainer
    assert config.seed == 3
    assert meme == MemeRunConfig(
        optimiser=OptimiserConfig(
            learning_rate=0.01, weight_decay=0.02, betas=(0.8, 0.9), epsilon=0.03, max_grad_norm=4.0
        ),
        bandit=BanditConfig(discount=0.9),
        epsilon_base=0.25,
        epsilon_power=2.0,
        evaluation_epsilon=0.125,
        replay=ReplayConfig(period=8, trace_length=16, capacity=100, min_traces=7),
        batch_size=5,
        importance_exponent=0.5,
        relabel=True,
    )
    assert recode == RecodeBonusConfig(
        memory=RecodeConfig(size=77), normaliser=NormaliserConfig(kind="mean"), reembed_every=9
    )
    assert trainer.optimiser == OptimiserConfig(
        learning_rate=0.04, weight_decay=0.05, betas=(0.7, 0.6), epsilon=0.06, max_grad_norm=None
    )


def test_the_one_normaliser_of_version_1_goes_to_the_bonus_of_the_name():
    mean = NormaliserConfig(kind="mean")
    assert read_first(normaliser=None).recode.normaliser == RecodeBonusConfig().normaliser
    assert read_first(agent="MEME-EMM-AP").episodic == EpisodicBonusConfig(normaliser=mean)
    assert read_first(agent="MEME-RND").surprise == SurpriseConfig(normaliser=mean)
    assert read_first(agent="MEME-RNDonAP").surprise == replace(RND_ON_AP, normaliser=mean)
    assert read_first(agent="MEME-BYOL-Explore").surprise.paid_in == "learning"
    own = {"normaliser": {"kind": "none"}, "paid_in": "learning"}
    kept = read_first(agent="MEME-RND", surprise=own).surprise
    assert kept == SurpriseConfig(normaliser=mean, paid_in="learning")
    assert read_first(agent="MEME-RND", normaliser=None).surprise is None


def test_what_an_old_file_says_of_parts_that_nobody_reads_is_left_out():
    assert read_first(agent="MEME-NGU-AP").recode == RecodeBonusConfig()
    assert read_first().recode.memory.size == 77


def test_an_old_field_in_a_new_place_is_not_taken_for_another():
    with pytest.raises(ValueError, match=r"config\.meme\.rate is not a field"):
        from_tree(FIRST | {"meme": {"rate": 3}})


def kept_configs():
    for path in sorted(RESULTS.rglob("*.json")):
        content = json.loads(path.read_text())
        config = content.get("config") if isinstance(content, dict) else None
        if isinstance(config, dict) and "agent" in config:
            yield path.relative_to(RESULTS), config


def test_the_configurations_of_all_committed_results_read():
    configs = dict(kept_configs())
    assert len(configs) > 200
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="the configuration is of an older version")
        for path, content in configs.items():
            config = from_tree(content)
            assert (config.agent, config.seed) == (content["agent"], content["seed"]), path
            if "recode" in config.agent.lower():
                memory = content.get("memory") or content["recode"]["memory"]
                assert config.recode.memory.size == memory["size"], path
