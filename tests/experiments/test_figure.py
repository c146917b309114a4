"""The list of figures, and making one."""

import re
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

from experiments import __main__ as command_line
from experiments import jobs, registry
from experiments import renew_docs as page
from experiments.drop_in import learning as drop_in
from experiments.figure import Command, Figure
from experiments.jobs import Job

ROOT = Path(__file__).parents[2]
PAGES_TEXT = "\n".join(path.read_text() for path in sorted((ROOT / "docs/reproduction").glob("*.md")))


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A figure of three jobs, two seeds."""

    def plot(rows):
        figure = jobs.new_figure(2, 2)
        figure.subplots().plot([row["value"] for row in rows])
        return figure

    figure = Figure(
        name="toy",
        paper="Fig. 11",
        claim="claims",
        laptop_cost="little",
        paper_cost="much",
        folder=tmp_path / "rows",
        jobs=lambda: [
            Job(key=f"job{i}", seed=i % 2, measure=lambda i=i: {"value": 10 * i}) for i in range(3)
        ],
        plot=plot,
        describe=lambda rows: [f"values {[row['value'] for row in rows]}"],
    )
    monkeypatch.setitem(registry.all_figures(), "toy", figure)
    monkeypatch.setattr(jobs, "IMAGES", tmp_path / "images")
    return figure


def test_a_figure_is_run_seed_by_seed_and_drawn(toy, tmp_path):
    said = []
    assert registry.state_of(toy) == "not run"
    registry.make("toy", seeds=[0], say=said.append)
    assert registry.state_of(toy) == "2 of 3 runs"
    assert said[-1] == "  values [0, 20]"
    registry.make("toy", say=said.append)
    assert registry.state_of(toy) == "run"
    assert said[-1] == "  values [0, 10, 20]"
    assert {path.name for path in (tmp_path / "images").iterdir()} == {"toy.png", "toy.svg"}


def test_plot_only_runs_nothing(toy):
    with pytest.raises(ValueError, match="no results yet"):
        registry.make("toy", plot_only=True)
    assert registry.state_of(toy) == "not run"


def test_the_command_line_lists_and_makes_figures(toy, capsys, monkeypatch):
    assert command_line.main(["toy", "--seeds", "1"]) == 0
    assert "values [10]" in capsys.readouterr().out
    monkeypatch.chdir(ROOT)
    assert command_line.main(["list"]) == 0
    listed = capsys.readouterr().out
    for name, figure in registry.all_figures().items():
        assert f"{name}   [" in listed
        assert figure.claim in listed
    assert "toy   [1 of 3 runs]   Fig. 11" in listed
    assert command_line.main(["toy", "--scale", "paper"]) == 0
    shown = capsys.readouterr().out
    assert "# Fig. 11: 48 runs of 250,000,000 actor steps; not run" in shown
    assert "--recode.memory.count-discount 1.0" in shown


def test_an_unknown_name_is_answered_with_the_known_ones(capsys):
    assert command_line.main(["bonusses"]) == 1
    assert "expected one of ages, ages_stream, atari" in capsys.readouterr().err


def test_every_figure_is_found_once_without_a_list_of_them(toy):
    sources = "".join(path.read_text() for path in (ROOT / "experiments").glob("**/*.py"))
    named = re.findall(r'\b(?:Figure|Command)\(\n\s+name="(\w+)"', sources)
    assert sorted([*named, "toy"]) == sorted(registry.all_figures())


def test_keys_of_jobs_are_unique_and_shared_runs_are_the_same_run():
    seen = {}
    for figure in registry.all_figures().values():
        if isinstance(figure, Command):
            continue
        keys = [job.key for job in figure.jobs()]
        assert len(keys) == len(set(keys))
        for job in figure.jobs():
            settings = {name: x for name, x in job.settings.items() if name != "name"}
            assert seen.setdefault((figure.folder, job.key), settings) == settings


def test_every_modules_own_figure_is_registered_and_its_commands_exist():
    for figure in registry.all_figures().values():
        for command in figure.commands if isinstance(figure, Command) else ():
            module = ROOT / Path(*command[0].split(".")).with_suffix(".py")
            assert module.is_file()


def test_a_figure_made_elsewhere_runs_its_commands(monkeypatch, tmp_path):
    called, code = [], 0

    def run(words):
        called.append(words[2:])
        return SimpleNamespace(returncode=code)

    monkeypatch.setattr(registry.subprocess, "run", run)
    registry.make("noise_rewards")
    assert called == [["experiments.memory.noise_rewards", x] for x in ("run", "plot")]
    registry.make("noise_rewards", plot_only=True)
    assert called[2:] == [["experiments.memory.noise_rewards", "plot"]]
    with pytest.raises(ValueError, match="draws only while it runs"):
        registry.make("moving_distribution", plot_only=True)
    with pytest.raises(
        ValueError, match=r"noise_rewards takes no --seeds; its commands are `python -m .* run`"
    ):
        registry.make("noise_rewards", seeds=[0])
    code = 3
    with pytest.raises(RuntimeError, match=r"noise_rewards run` ended with code 3"):
        registry.make("noise_rewards")
    assert called[3:] == [["experiments.memory.noise_rewards", "run"]]  # and no further
    with pytest.raises(ValueError, match=r"bonuses has no seed 7; its seeds are \[0, 1, 2\]"):
        registry.make("bonuses", seeds=[7])
    there = replace(registry.all_figures()["noise_rewards"], results=(tmp_path, tmp_path / "missing"))
    assert registry.state_of(there) == "1 of 2 results"


def test_drop_in_learning_was_run_when_every_agent_met_every_bonus():
    named = {path.name for path in registry.find("drop_in_learning").results}
    parts = product(drop_in.SERIES, drop_in.AGENTS, drop_in.BONUSES, range(3))
    assert named == {"_".join(map(str, part)) + ".json" for part in parts}


def test_the_reproduction_page_has_every_figure_and_table_of_the_paper():
    page = (ROOT / "docs/reproduction.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| **")]
    named = [match[1] for line in rows if (match := re.match(r"\| \*\*((?:Fig\.|Table) \d+)\*\*", line))]
    assert named == [f"Fig. {n}" for n in range(1, 23)] + [f"Table {n}" for n in range(1, 6)]
    commands = [cell for line in rows for cell in re.findall(r"`([a-z_0-9]+)[^`]*`", line.split(" | ")[3])]
    assert len(commands) > 30
    for name in [*commands, *re.findall(r"`softcount figure ([a-z_0-9]+)`", page + PAGES_TEXT)]:
        assert name in {*registry.all_figures(), "list", "softcount"}


def test_the_numbers_of_the_reproduction_pages_are_those_of_the_results():
    """If this fails: python -m experiments.renew_docs docs/reproduction/*.md"""
    assert page.renewed(PAGES_TEXT, ROOT) == PAGES_TEXT


def test_every_figure_of_ours_is_on_one_page():
    ours = [name for name, figure in registry.all_figures().items() if isinstance(figure, Figure)]
    assert sorted(name for name, _ in page.BLOCK.findall(PAGES_TEXT)) == sorted(ours)


def test_a_block_holds_what_the_figure_says_and_how_much_of_it_was_run(toy, tmp_path):
    before = "a\n```text toy\nold\n```\nb\n"
    assert page.renewed(before) == "a\n```text toy\nnot run\n```\nb\n"
    registry.make("toy", seeds=[1], say=lambda _: None)
    assert page.renewed(before) == "a\n```text toy\n(1 of 3 runs)\nvalues [10]\n```\nb\n"
    with pytest.raises(ValueError, match="made elsewhere"):
        page.numbers("maze_goal")
