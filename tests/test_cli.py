"""The command line: what is typed is what runs."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from softcount import cli
from softcount.config import with_fields
from softcount.fitting import TORSO
from softcount.presets import LAPTOP, LAPTOP_ATARI, suited
from softcount.runs.run import Run, read_config


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
    [
        ["MEME-RND"],
        ["--agent", "MEME-RND"],
        ["--agent=MEME-RND"],
        ["--seed", "0", "--agent=MEME-RND"],
        ["--seed", "0", "MEME-RND"],
    ],
)
def test_a_preset_suits_the_agent_however_it_is_named(trained, words):
    cli.main(["train", *words, "--env=noisy-disco-maze"])
    assert trained == [replace(suited(LAPTOP, "MEME-RND"), env="noisy-disco-maze", env_options={})]


def test_an_option_without_its_value_is_refused(trained, capsys):
    assert cli.main(["train", "MEME", "--env"]) == 2
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
    assert cli.main(["train", "MEME-RECODE-AP", option, "3"]) == 2
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["train", "MEME", "--sed", "3"],
            "softcount train: no option is called --sed; did you mean '--seed'?",
        ),
        (["train", "MEME", "--preset", "labtop"], "no preset is called 'labtop'; did you mean 'laptop'?"),
        (["train", "MEME", "--num-envs", "x"], "argument --num-envs: invalid int value: 'x'"),
        (["rezume", "x"], "no command is called 'rezume'; did you mean 'resume'?"),
        (
            ["resume", "x", "--step", "3"],
            "softcount resume: no option is called --step; did you mean '--steps'?",
        ),
    ],
)
def test_what_is_misspelt_is_named_with_what_was_meant(trained, capsys, words, said):
    assert cli.main(words) == 2
    shown = capsys.readouterr().err
    assert said in shown
    assert "tyro" not in shown
    assert not trained


@pytest.mark.parametrize(("num_envs", "episodes"), [(8, 8), (20, 20), (64, 20)])
def test_fewer_environments_play_fewer_episodes_in_an_evaluation(trained, num_envs, episodes):
    assert LAPTOP.evaluation_episodes == 20
    cli.main(["train", "MEME", "--num-envs", str(num_envs)])
    assert (trained[0].num_envs, trained[0].evaluation_episodes) == (num_envs, episodes)


def test_more_episodes_than_environments_are_refused_where_they_were_asked_for(trained, capsys):
    with pytest.raises(SystemExit):
        cli.main(["train", "MEME", "--num-envs", "8", "--evaluation-episodes", "9"])
    assert not trained
    assert "evaluation_episodes is 9; expected 1 to num_envs (8)" in " ".join(capsys.readouterr().err.split())


def test_the_version_is_told(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"softcount {version('softcount')}\n"


@pytest.mark.parametrize("words", [["--env", "nosuch"], ["--env-options", "sice=3"], ["--num-envs", "0"]])
def test_a_refused_run_leaves_no_folder(tmp_path, monkeypatch, words):
    monkeypatch.setenv("MALLOC_TOP_PAD_", "0")
    assert cli.main(["train", "MEME", "--run", str(tmp_path / "runs/first"), *words]) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_refused_run_leaves_a_folder_that_was_there(tmp_path, monkeypatch):
    monkeypatch.setenv("MALLOC_TOP_PAD_", "0")
    (tmp_path / "mine").mkdir()
    assert cli.main(["train", "MEME", "--run", str(tmp_path / "mine/first"), "--env", "nosuch"]) == 1
    assert list(tmp_path.rglob("*")) == [tmp_path / "mine"]


def softcount(*words, code="", **options):
    """Runs the command as a shell does; `code` comes before it."""
    start = f"{code}\nimport sys; sys.argv[0] = 'softcount'; import runpy; runpy.run_module('softcount')"
    start = start.replace("run_module('softcount')", "run_module('softcount', run_name='__main__')")
    command = [sys.executable, "-c", start, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


@pytest.mark.parametrize("command", ["train", "resume", "list", "report"])
def test_an_install_without_extras_says_which_one_to_add(command, monkeypatch):
    monkeypatch.setenv("MALLOC_TOP_PAD_", "0")  # or the command starts its process anew, with everything
    missing = "import sys\nfor name in ('torch', 'tyro', 'rich', 'gymnasium'): sys.modules[name] = None"
    done = softcount(command, "x", code=missing) if command != "list" else softcount("list", code=missing)
    if done.returncode == 0:  # what needs nothing works
        assert "disco-maze" in done.stdout
    else:
        assert re.fullmatch(
            rf"softcount {command}: it needs \w+, which is not installed: "
            r'`pip install "\.\[agent\]"` in a checkout of softcount\n',
            done.stderr,
        )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_and_version_need_no_extras_and_no_arrays(words):
    missing = "import sys\nfor name in ('torch', 'tyro', 'numpy', 'safetensors'): sys.modules[name] = None"
    done = softcount(*words, code=missing)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_interrupt_while_modules_are_loaded_is_quiet():
    code = """
import builtins
load = builtins.__import__
def interrupted(name, *rest, **named):
    if name == 'softcount.cli':
        raise KeyboardInterrupt
    return load(name, *rest, **named)
builtins.__import__ = interrupted
"""
    done = softcount("list", code=code)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_signs_that_a_plain_terminal_lacks_become_question_marks():
    plain = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C", "PYTHONUTF8": "0"}
    done = softcount("train", "MEME-RECODE-AP", "--help-all", env=plain)
    assert done.returncode == 0, done.stderr
    assert "?_IM: weight of the intrinsic reward" in done.stdout


def test_a_reader_that_has_seen_enough_is_no_error():
    command = f"{sys.executable} -m softcount list | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout.splitlines()[0] == "agents           MEME, VMPO"
    assert done.stdout.splitlines()[1] in ("0", "141")


def test_a_run_whose_output_nobody_reads_any_more_stops_with_a_checkpoint(tmp_path, capsys):
    folder = tmp_path / "my runs" / "first"
    words = ["train", "MEME", "--run", str(folder), "--env-options", "size=7", "--num-envs", "8"]
    words += ["--steps", "6000", "--report-every", "8", "--evaluate-every", "0"]
    command = [sys.executable, "-m", "softcount", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == f"run folder: {folder}\n"
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(timeout=120) == 130
    step = int(re.search(r"stopped at step ([\d,]+)", said)[1].replace(",", ""))
    assert said == f"stopped at step {step:,}; `softcount resume '{folder}'` goes on from there\n"
    assert json.loads((folder / "checkpoints/manifest.json").read_text())["step"] == step > 0
    capsys.readouterr()
    with pytest.raises(ValueError, match=rf"has done {step:,} steps; expected to train to more than that"):
        Run.resume(folder, steps=step - 1)
    assert json.loads((folder / "config.json").read_text())["steps"] == 6000
    Run.resume(folder, steps=step).close()


def test_an_environment_of_ones_own_gets_what_fits_it_and_one_line_says_what(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MALLOC_TOP_PAD_", "0")
    monkeypatch.chdir(Path(__file__).parent / "envs")
    words = ["--env", "my_worlds:Forgetful", "--run", str(tmp_path / "run"), "--num-envs", "4"]
    assert cli.main(["train", *words, "--steps", "20", "--no-overlap"]) == 0
    shown = capsys.readouterr().out
    chosen = "MEME-RECODE-AP for 1 numbers, 5 numbers and 2 actions: dense layers, 2,000 atoms"
    assert shown.count(chosen) == 1
    assert shown.count("cannot save its state: if this run is resumed, new episodes begin") == 1
    assert cli.main(["resume", str(tmp_path / "run"), "--steps", "40"]) == 0
    assert "new episodes begin" in capsys.readouterr().out
    assert read_config(tmp_path / "run").env == "my_worlds:Forgetful"


@pytest.mark.parametrize(
    ("words", "agent", "env"),
    [
        (["--env", "gym/Walk-v0", "--env-import", "my_worlds"], "MEME-RECODE-AP", "gym/my_worlds:Walk-v0"),
        (["VMPO-RND", "--env", "my_worlds:Walk"], "VMPO-RND", "my_worlds:Walk"),
        (["--env", "gym/Pendulum-v1"], "VMPO-RECODE-AP", "gym/Pendulum-v1"),
    ],
)
def test_the_agent_that_can_act_there_is_taken_where_none_is_named(trained, monkeypatch, words, agent, env):
    monkeypatch.chdir(Path(__file__).parent / "envs")
    cli.main(["train", *words])
    (config,) = trained
    assert (config.agent, config.env, config.env_options) == (agent, env, {})
    assert config.meme.network.torso == config.vmpo.network.torso == TORSO
