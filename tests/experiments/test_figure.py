"""The list of figures, and making one."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from experiments import __main__ as command_line
from experiments import figure as figures
from experiments import jobs, renew_docs
from experiments.drawing import new_figure
from experiments.figure import Figure
from experiments.jobs import Job

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("**/*.md"))
TEXT = "\n".join(path.read_text() for path in PAGES)


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A figure of three jobs, two seeds."""

    def plot(rows):
        figure = new_figure(2, 2)
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
        images=tmp_path / "images",
    )
    monkeypatch.setitem(figures.all_figures(), "toy", figure)
    return figure


def test_a_figure_is_run_seed_by_seed_and_drawn(toy, tmp_path):
    said = []
    assert toy.state() == "not run"
    figures.make("toy", seeds=[0], say=said.append)
    assert toy.state() == "2 of 3 runs"
    assert said[-1] == "  values [0, 20]"
    figures.make("toy", say=said.append)
    assert toy.state() == "run"
    assert said[-1] == "  values [0, 10, 20]"
    assert {path.name for path in (tmp_path / "images").iterdir()} == {"toy.png", "toy.svg"}


def test_a_stopped_figure_goes_on_with_what_is_missing_and_says_so(toy):
    said = []
    figures.make("toy", seeds=[1], say=said.append)
    figures.make("toy", say=said.append)
    assert said.count("1 of 3 runs are there already") == 1
    assert [line for line in said if line.startswith("[")] == [
        "[1/1] job1 ...",
        "[1/2] job0 ...",
        "[2/2] job2 ...",
    ]


def test_only_runs_with_a_text_in_their_name_are_made(toy):
    figures.make("toy", only="job2", say=lambda _: None)
    assert [row["key"] for row in toy.rows()] == ["job2"]
    with pytest.raises(ValueError, match=r"no run with 'jib' in its name; it has job0, job1, job2"):
        figures.make("toy", only="jib")


def test_rows_of_earlier_files_count_as_run_until_a_newer_one_is_there(toy):
    older = replace(toy, earlier=lambda: {"job1": {"key": "job1", "value": -1}, "job7": {"value": 0}})
    assert older.state() == "1 of 3 runs"
    assert [job.key for job in older.missing()] == ["job0", "job2"]
    jobs.run(older.missing(), older.folder, lambda _: None)
    assert [row["value"] for row in older.rows()] == [0, -1, 20]
    jobs.run([job for job in older.jobs() if job.key == "job1"], older.folder, lambda _: None)
    assert [row["value"] for row in older.rows()] == [0, 10, 20]


def test_plot_only_runs_nothing(toy):
    with pytest.raises(ValueError, match="no results yet"):
        figures.make("toy", plot_only=True)
    assert toy.state() == "not run"


def test_the_command_line_lists_and_makes_figures(toy, capsys, monkeypatch):
    assert command_line.main(["toy", "--seeds", "1", "--only", "job"]) == 0
    assert "values [10]" in capsys.readouterr().out
    monkeypatch.chdir(ROOT)
    assert command_line.main(["list"]) == 0
    listed = capsys.readouterr().out
    for name, figure in figures.all_figures().items():
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
    named = re.findall(r'\bFigure\(\n\s+name="([\w-]+)"', sources)
    assert len(named) > 30
    assert {*named, "toy"} <= set(figures.all_figures())
    assert len(named) == len(set(named))


def test_keys_of_jobs_are_unique_and_shared_runs_are_the_same_run():
    seen = {}
    for figure in figures.all_figures().values():
        keys = [job.key for job in figure.jobs()]
        assert len(keys) == len(set(keys))
        for job in figure.jobs():
            settings = {name: x for name, x in job.settings.items() if name != "name"}
            assert seen.setdefault((figure.folder, job.key), settings) == settings


def test_a_seed_that_a_figure_does_not_have_is_refused():
    with pytest.raises(ValueError, match=r"bonuses has no seed 7; its seeds are \[0, 1, 2\]"):
        figures.make("bonuses", seeds=[7])


def test_earlier_files_are_of_jobs_and_are_read_as_they_are(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = 0
    for figure in figures.all_figures().values():
        keys = [job.key for job in figure.jobs()]
        assert set(figure.earlier()) <= set(keys)
        found += len(figure.earlier())
    assert found == 3 + 33 + 24 + 12 + 5 + 24 + 16
    row = figures.find("palette_start").earlier()["table0.1__rate0.002__seed1"]
    runs = json.loads((ROOT / "results/representations/palette_start.json").read_text())["runs"]
    assert row in runs
    assert (row["scale"], row["rate"], row["seed"]) == (0.1, 0.002, 1)


def test_the_reproduction_page_has_every_figure_and_table_of_the_paper():
    page = (ROOT / "docs/reproduction.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| **")]
    named = [match[1] for line in rows if (match := re.match(r"\| \*\*((?:Fig\.|Table) \d+)\*\*", line))]
    assert named == [f"Fig. {n}" for n in range(1, 23)] + [f"Table {n}" for n in range(1, 6)]
    commands = [cell for line in rows for cell in re.findall(r"`([a-z_0-9-]+)[^`]*`", line.split(" | ")[3])]
    assert len(commands) > 30
    for name in [*commands, *re.findall(r"`softcount figure ([a-z_0-9-]+)[ `]", TEXT)]:
        assert name in {*figures.all_figures(), "list", "softcount"}


def test_the_numbers_of_the_pages_are_those_of_the_results(monkeypatch):
    """If this fails: python -m experiments.renew_docs"""
    monkeypatch.chdir(ROOT)
    for path in PAGES:
        page = path.read_text()
        assert renew_docs.renewed(page) == page, path


def test_every_figure_is_on_a_page_with_its_numbers_or_its_picture():
    blocks = [name for rule in (renew_docs.BLOCK, renew_docs.TABLE) for name, _ in rule.findall(TEXT)]
    assert len(set(blocks)) == len(blocks)
    pictures = set(re.findall(r"images/(?:figures/)?([\w-]+)\.(?:png|svg)", TEXT))
    named = set(re.findall(r"`(?:softcount figure )?([a-z_0-9-]+)`", TEXT))
    for name in figures.all_figures():
        assert name in {*blocks, *pictures, *named}, name


def test_a_block_holds_what_the_figure_says_and_how_much_of_it_was_run(toy, tmp_path, capsys):
    before = "a\n```text toy\nold\n```\nb\n"
    (tmp_path / "docs/below").mkdir(parents=True)
    page = tmp_path / "docs/below/page.md"
    page.write_text(before)
    renew_docs.main(tmp_path / "docs")
    assert page.read_text() == "a\n```text toy\nnot run\n```\nb\n"
    figures.make("toy", seeds=[1], say=lambda _: None)
    assert renew_docs.renewed(before) == "a\n```text toy\n(1 of 3 runs)\nvalues [10]\n```\nb\n"
    renew_docs.main(tmp_path / "docs")
    assert capsys.readouterr().out.count("renewed") == 2
    renew_docs.main(tmp_path / "docs")
    assert capsys.readouterr().out == ""
    table = "<!-- figure toy -->\n| old |\n| older |\n\nc\n"
    assert renew_docs.renewed(table) == "<!-- figure toy -->\n(1 of 3 runs)\n\nvalues [10]\n\nc\n"
    partly = "<!-- figure toy -->\n(1 of 3 runs)\n\n| old |\n| older |\n\nc\n"
    assert renew_docs.renewed(partly) == renew_docs.renewed(table)  # how many there were is not kept twice


def test_a_table_that_was_not_run_is_renewed_and_not_repeated(toy):
    page = "a\n<!-- figure toy -->\nb\n"
    once = renew_docs.renewed(page)
    assert once == "a\n<!-- figure toy -->\nnot run\nb\n"
    assert renew_docs.renewed(once) == once
