"""Every field of a run is an option: tyro takes it, the help explains it, a misspelt one is told apart."""

from dataclasses import fields, is_dataclass

import pytest
import tyro

from softcount import cli
from softcount.config import RunConfig, parts_read
from softcount.options import all_options, check_words, options_of
from softcount.parser import Parser, UsageError
from softcount.presets import LAPTOP, VMPO_LAPTOP


def spelled(option):
    """An option with its own value, as one would type it."""
    if option.kind is bool:
        return [option.names[0 if option.value else 1]]
    values = option.value if isinstance(option.value, tuple) else (option.value,)
    return [option.name, *map(str, values)]


@pytest.mark.parametrize("preset", [LAPTOP, VMPO_LAPTOP])
def test_tyro_takes_every_option_as_the_table_spells_it(preset):
    kinds = {option.path: option for option in options_of(preset) if option.choices}
    options = [
        option
        for option in options_of(preset)
        if not option.choices and not any(option.path.startswith(f"{path}.") for path in kinds)
    ]
    assert len(options) > 50
    words = [word for option in options for word in spelled(option)]
    check_words(words, preset)
    assert tyro.cli(RunConfig, args=words, default=preset) == preset


def test_every_word_of_the_table_that_chooses_a_kind_is_tyros():
    (torso,) = (option for option in options_of(LAPTOP) if option.path == "meme.network.torso")
    assert "meme.network.torso:mlp-config" in torso.choices
    words = ["meme.network.torso:mlp-config", "--meme.network.torso.hidden-sizes", "7", "8"]
    check_words(words, LAPTOP)
    config = tyro.cli(RunConfig, args=words, default=LAPTOP)
    assert config.meme.network.torso.hidden_sizes == (7, 8)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sed", "3"], "no option is called --sed; did you mean '--seed'?"),
        (["--meme.replay.nevest=3"], "did you mean '--meme.replay.newest'?"),
        (["--replay.newest", "3"], "no option is called --replay.newest; did you mean --meme.replay.newest?"),
        (
            ["--learning-rate", "1"],
            "did you mean --meme.optimiser.learning-rate or --trainer.optimiser.learning-rate?",
        ),
        (
            ["meme.network.torso:mpl-config"],
            "no kind is called 'meme.network.torso:mpl-config'; did you mean",
        ),
        (["--seed", "3", "4"], "'4' belongs to no option"),
        (["--meme.relabel", "yes"], "'yes' belongs to no option"),
        (["--meme.optimiser.betas", "0.9", "0.99", "1"], "'1' belongs to no option"),
    ],
)
def test_a_word_that_no_option_takes_is_named(words, said):
    with pytest.raises(UsageError) as refused:
        check_words(words, LAPTOP)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    "words",
    [
        ["--seed", "3"],
        ["--meme.no-relabel", "--seed=4"],
        ["--meme.replay.newest", "-1"],
        ["--trainer.optimiser.betas", "0.9", "0.99"],
        ["--representation.action_prediction.hidden_sizes", "1", "2", "3", "--env-options.size", "7"],
    ],
)
def test_words_that_options_take_pass(words):
    check_words(words, LAPTOP)


def test_commands_take_no_short_forms_and_name_the_nearest_option():
    parser = Parser("softcount resume")
    parser.add_argument("run")
    parser.add_argument("--steps", type=int)
    assert parser.parse_args(["a", "--steps", "3"]).steps == 3
    for words, said in [
        (["a", "--step", "3"], "no option is called --step; did you mean '--steps'?"),
        (["a", "b"], "'b' is one word too many"),
        (["a", "--steps", "x"], "argument --steps: invalid int value: 'x'"),
        ([], "the following arguments are required: run"),
    ]:
        with pytest.raises(UsageError) as refused:
            parser.parse_args(words)
        assert said in str(refused.value)


def printed(capsys, *words):
    assert cli.main(["train", *words]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("agent", ["MEME-RECODE-AP", "VMPO-NGU-CASM", "MEME"])
def test_the_help_fits_on_two_screens_and_names_every_part(capsys, agent):
    text = printed(capsys, agent, "--help")
    lines = text.splitlines()
    assert len(lines) <= 48
    assert max(map(len, lines)) <= 80
    for name in ("--preset", "--run", "--env", "--env-options", "--steps", "--seed", "--num-envs"):
        assert text.count(f"\n  {name} ") == 1  # explained, and once
    read = (*parts_read(agent), "runtime")  # where roles live is for every agent
    for field in fields(RunConfig):
        is_part = is_dataclass(getattr(LAPTOP, field.name)) or field.name == "surprise"
        if is_part:
            assert (f"--{field.name}.*" in text) == (field.name in read)
        elif field.name != "env_options":
            assert f"--{field.name.replace('_', '-')}" in text


def test_the_whole_help_has_every_option_once_with_its_value(capsys):
    text = printed(capsys, "MEME-RECODE-AP", "--help-all", "--num-envs", "8")
    for option in options_of(LAPTOP):
        if not option.path.startswith("env_options.") and option.path not in ("agent", "env"):
            shown = option.spelling if option.kind is not bool else option.names[bool(option.value)]
            assert f"\n  {shown}" in text, option.path
    assert "How many copies act side by side [8]" in text
    assert "--ngu." not in text
    assert max(map(len, text.splitlines())) < 110
    documented = [option.about for option in all_options(LAPTOP) if "." not in option.path]
    assert all(documented)  # every part of a run says what it is
