"""The command line: what is typed is what runs."""

from dataclasses import replace

import pytest

from softcount import cli
from softcount.config import with_fields
from softcount.presets import LAPTOP, LAPTOP_ATARI, suited
from softcount.runs.run import Run


@pytest.fixture
def trained(monkeypatch):
    """The configurations that `train` would have started."""
    configs = []

    def create(folder, config):
        configs.append(config)
        raise RuntimeError("stopped here")

    monkeypatch.setenv("MALLOC_TOP_PAD_", "0")  # or the command starts its process anew
    monkeypatch.setattr(Run, "create", create)
    return configs


@pytest.mark.parametrize(
    "words",
    [["MEME-RND"], ["--agent", "MEME-RND"], ["--agent=MEME-RND"], ["--seed", "0", "--agent=MEME-RND"]],
)
def test_a_preset_suits_the_agent_however_it_is_named(trained, words):
    cli.main(["train", *words, "--env=noisy-disco-maze"])
    assert trained == [replace(suited(LAPTOP, "MEME-RND"), env="noisy-disco-maze", env_options={})]


def test_an_option_without_its_value_is_refused(trained, capsys):
    with pytest.raises(SystemExit):
        cli.main(["train", "MEME", "--env"])
    assert "--env: expected one argument" in capsys.readouterr().err


@pytest.mark.parametrize("options", [[], ["--env-options", "size=7"]])
def test_the_environment_is_the_one_that_was_named(trained, options):
    """`--env` is not taken for a short form of `--env-options`."""
    cli.main(["train", "MEME-RND", "--env", "noisy-disco-maze", *options])
    (config,) = trained
    assert (config.agent, config.env) == ("MEME-RND", "noisy-disco-maze")
    assert config.env_options == ({"size": 7} if options else {})


def test_fields_are_set_by_their_path(trained):
    words = ["--recode.memory.size", "77", "--meme.replay.newest", "3", "--meme.no-relabel"]
    cli.main(["train", "MEME-RECODE-AP", *words])
    changes = {"recode.memory.size": 77, "meme.replay.newest": 3, "meme.relabel": False}
    assert trained == [with_fields(LAPTOP, changes)]


@pytest.mark.parametrize("option", ["--ngu.largest-factor=3", "--ngu.largest-factor"])
def test_an_option_of_a_part_that_the_agent_does_not_read_is_refused(trained, capsys, option):
    assert cli.main(["train", "MEME-RECODE-AP", option, "3"]) == 1
    said = "--ngu.largest-factor would do nothing: MEME-RECODE-AP does not read 'ngu', NGU would"
    assert said in capsys.readouterr().err
    assert not trained
    cli.main(["train", "MEME-NGU-AP", "--ngu.largest-factor", "3"])
    assert trained[0].ngu.largest_factor == 3


def test_figures_are_made_by_the_experiments_of_the_checkout(tmp_path, monkeypatch):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/__main__.py").write_text(
        "import sys, pathlib\npathlib.Path('made').write_text(' '.join(sys.argv[1:]))\nsys.exit(7)\n"
    )
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "softcount"\n')
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path / "docs")
    assert cli.main(["figure", "bonuses", "--seeds", "1"]) == 7
    assert (tmp_path / "made").read_text() == "bonuses --seeds 1"


def test_figures_need_a_checkout(tmp_path, monkeypatch, capsys):
    (tmp_path / "experiments").mkdir()
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "another"\n')
    monkeypatch.chdir(tmp_path)
    assert cli.main(["figure", "list"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("softcount figure: figures need a checkout of softcount")
    assert said.count("\n") == 1


def test_tuples_can_be_options(trained):
    words = ["--env-options", "size=21,20", "actions=NOOP,LEFT", "stack=3"]
    cli.main(["train", "MEME-RECODE-FRAME", "--preset", "laptop-atari", *words])
    (config,) = trained
    changed = {"size": (21, 20), "actions": ("NOOP", "LEFT"), "stack": 3}
    assert config == replace(suited(LAPTOP_ATARI, "MEME-RECODE-FRAME"), env_options=config.env_options)
    assert config.env_options == LAPTOP_ATARI.env_options | changed


@pytest.mark.parametrize(
    ("env", "keeps"),
    [("atari/pitfall", True), ("noisy-atari/hero", True), ("minigrid/MultiRoom-N6-v0", False)],
)
def test_another_game_of_the_same_console_keeps_the_presets_options(trained, env, keeps):
    cli.main(["train", "MEME-COUNT", "--preset", "laptop-atari", "--env", env])
    (config,) = trained
    assert config.env == env
    assert config.env_options == (LAPTOP_ATARI.env_options if keeps else {})
