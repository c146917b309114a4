"""The data in the page is the data of the run, and nothing a run wrote becomes markup."""

import json
import re
import shutil

import numpy as np
import pytest
from report.runs import data_of, train

from softcount import checkpoint, store
from softcount.cli import main
from softcount.report import write_report
from softcount.report.page import as_script_data
from softcount.runs.metrics_log import read_metrics


@pytest.fixture(scope="module")
def shown(run, tmp_path_factory):
    page = write_report([run], tmp_path_factory.mktemp("pages") / "report.html", episodes=2)
    return data_of(page)["runs"][0]


def test_curves_hold_every_number_of_every_report(run, shown):
    rows = list(read_metrics(run / "metrics.jsonl"))
    curves = shown["curves"]
    assert curves["steps"] == [row["step"] for row in rows]
    assert len(rows) == 9
    names = {name for row in rows for name in row if name != "step" and not name.startswith("time/")}
    assert set(curves["series"]) == names
    for name in names:
        expected = [(i, row[name]) for i, row in enumerate(rows) if name in row]
        assert curves["series"][name]["at"] == [i for i, _ in expected]
        assert curves["series"][name]["y"] == pytest.approx([y for _, y in expected], rel=1e-6), name
    assert len(curves["series"]["eval/success_rate"]["y"]) == 3


def test_final_numbers_and_shares_of_time_are_those_of_the_last_report(run, shown):
    last = list(read_metrics(run / "metrics.jsonl"))[-1]
    assert shown["final"]["step"] == last["step"] == shown["checkpoint"]
    for name in ("coverage/places", "coverage/fraction", "charts/intrinsic_return", "charts/updates"):
        assert shown["final"][name] == last[name]
    assert shown["final"]["hours"] == pytest.approx(last["time/elapsed"] / 3600, abs=1e-6)
    assert shown["time"] == {role: last[f"time/{role}"] for role in shown["time"]}
    acting = {role: share for role, share in shown["time"].items() if role != "learner"}
    assert sum(acting.values()) == pytest.approx(1)
    assert len(acting) == 6
    assert shown["time"]["learner"] > 0


def test_the_map_shows_the_places_of_the_checkpoint_where_they_lie(run, shown):
    coverage = checkpoint.read(run / "checkpoints").parts["loop"]["coverage"]
    (world,) = shown["worlds"]
    assert world["visited"] == len(world["cells"]) == len(coverage["places"])
    assert (world["places"], world["shape"], len(world["floor"])) == (17, [7, 7], 17)
    where = {tuple(cell): i for i, cell in enumerate(world["cells"])}
    for place, visits, first in zip(coverage["places"], coverage["visits"], coverage["first_seen"]):
        i = where[tuple(world["floor"][place])]
        assert (world["visits"][i], world["first_seen"][i]) == (visits, first)
    start = where[(5, 1)]  # bottom left, where every episode starts
    assert world["visits"][start] == max(world["visits"])
    assert world["first_seen"][start] == 1


def test_the_memory_shows_the_atoms_of_the_checkpoint(run, shown):
    state = checkpoint.read(run / "checkpoints").parts["memory"]["memory"]
    (memory,), n = shown["memories"], len(state["atoms"])
    assert memory["summary"]["num_atoms"] == n == len(memory["x"]) == 30
    ages = sorted(state["num_observed"] - state["births"], reverse=True)
    assert memory["ages"] == ages
    counts = np.exp(state["log_counts"] + state["log_scale"])
    assert sorted(10 ** np.array(memory["log10_counts"])) == pytest.approx(sorted(counts), rel=1e-3)
    assert sum(memory["age_bins"]["numbers"]) == sum(memory["count_bins"]["numbers"]) == n
    assert memory["age_bins"]["edges"][-1] == pytest.approx(max(ages), rel=1e-4)
    centred = state["atoms"].astype(np.float64) - state["atoms"].mean(axis=0, dtype=np.float64)
    variances = np.linalg.svd(centred, compute_uv=False) ** 2
    assert memory["variance_shown"] == pytest.approx(variances[:2].sum() / variances.sum(), rel=1e-6)
    assert np.var(memory["x"]) * n == pytest.approx(variances[0], rel=1e-3)


def test_the_configuration_is_complete(run, shown):
    def leaves(tree, path=""):
        for name, value in tree.items():
            if isinstance(value, dict) and value:
                yield from leaves(value, f"{path}{name}.")
            else:
                yield path + name, value if isinstance(value, str) else json.dumps(value)

    assert shown["config"] == dict(leaves(json.loads((run / "config.json").read_text())))
    assert shown["config"]["recode.memory.size"] == "30"


def test_a_run_without_bonus_and_evaluation_says_what_it_lacks(plain_run, tmp_path):
    (shown,) = data_of(write_report([plain_run], tmp_path / "report.html", episodes=1))["runs"]
    assert "no memory" in shown["memories"][0]["missing"]
    assert "eval/return" not in shown["curves"]["series"]
    assert shown["final"]["eval/success_rate"] is None
    assert shown["clip"]["intrinsics"] == [0.0] * len(shown["clip"]["rewards"])
    assert shown["notes"] == []


@pytest.fixture
def copy(run, tmp_path):
    shutil.copytree(run, tmp_path / "copy")
    return tmp_path / "copy"


def notes_of(folder):
    shown = data_of(write_report([folder], episodes=1))["runs"][0]
    return shown, " ".join(shown["notes"])


def test_an_interrupted_run_says_how_far_it_got(copy):
    lines = (copy / "metrics.jsonl").read_text().splitlines(keepends=True)
    (copy / "metrics.jsonl").write_text("".join(lines[:4]) + lines[4][:20])
    shown, notes = notes_of(copy)
    assert shown["num_reports"] == 4
    step = json.loads(lines[3])["step"]
    assert f"the last report is of step {step} of 900 ({step / 900:.0%})" in notes
    assert f"the checkpoint of step {shown['checkpoint']}; the curves go to step {step}" in notes


def test_one_report_is_enough_for_curves(copy):
    lines = (copy / "metrics.jsonl").read_text().splitlines(keepends=True)
    (copy / "metrics.jsonl").write_text(lines[0])
    shown, _ = notes_of(copy)
    assert shown["curves"]["series"]["coverage/places"]["at"] == [0]


def test_without_checkpoint_the_curves_are_still_there(copy):
    shutil.rmtree(copy / "checkpoints")
    shown, notes = notes_of(copy)
    assert "There is no checkpoint." in notes
    missing = {"missing": "There is no checkpoint."}
    assert (shown["worlds"], shown["memories"], shown["clip"]) == ([missing], [missing], missing)
    assert shown["num_reports"] == 9


def test_a_damaged_checkpoint_is_named(copy):
    part = next((copy / "checkpoints").glob("memory-*"))
    part.write_bytes(part.read_bytes()[:-3])
    shown, notes = notes_of(copy)
    assert "The checkpoint cannot be restored" in notes
    assert part.name in notes
    assert (
        shown["memories"][0]["missing"] == "The checkpoint cannot be restored; the top of the page says why."
    )
    assert shown["num_reports"] == 9


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"step": "many"}', "step is 'many'; expected a number"),
        ('{"step": -5}', "step is -5; expected a whole number"),
        ('{"step": 1.5}', "step is 1.5; expected a whole number"),
        ('{"step": 5, "charts/SPS": "fast"}', "charts/SPS is 'fast'; expected a number"),
        ('{"step": 5, "time/elapsed": [1]}', "time/elapsed is '[1]'; expected a number"),
        ('{"step": 5, "losses/loss": {"a": 1}}', "losses/loss is"),
        ('{"step": 5, "losses/loss": true}', "losses/loss is 'True'; expected a number"),
        ('{"step": 5, "charts/SPS": 1' + "0" * 400 + "}", "charts/SPS is '1000"),
        ("[" * 100_000, "recursion"),
        ("[]", "a report without fields"),
    ],
    ids=lambda text: text[:40],
)
def test_reports_that_somebody_changed_are_cut_and_the_field_is_named(copy, line, message):
    lines = (copy / "metrics.jsonl").read_text().splitlines(keepends=True)
    (copy / "metrics.jsonl").write_text(lines[0] + line + "\n" + lines[2])
    (run,) = data_of(write_report([copy], episodes=0))["runs"]
    (note,) = [note for note in run["notes"] if "metrics.jsonl is damaged after 1 reports" in note]
    assert message in note
    assert run["num_reports"] == 1


@pytest.mark.parametrize("value", [10**12, "many", None, 10**40])
def test_a_memory_that_somebody_changed_is_a_sentence_that_names_file_and_field(copy, value):
    (path,) = (copy / "checkpoints").glob("memory-*.safetensors")
    state = store.load(path, kind="memory")
    state["memory"]["size"] = value
    store.save(path, state, kind="memory")
    (run,) = data_of(write_report([copy], episodes=0))["runs"]
    notes = " ".join(run["notes"])
    assert path.name in notes
    assert "size" in notes


def test_a_configuration_that_is_too_deep_is_one_line(copy):
    (copy / "config.json").write_text('{"a":' * 100_000)
    with pytest.raises(ValueError, match=r"is not a run: its config.json is not JSON \(.*recursion"):
        write_report([copy], episodes=0)


def test_damaged_reports_are_cut_where_the_damage_is(copy):
    lines = (copy / "metrics.jsonl").read_text().splitlines(keepends=True)
    (copy / "metrics.jsonl").write_text(lines[0] + "oops\n" + lines[2])
    shown, notes = notes_of(copy)
    assert shown["num_reports"] == 1
    assert "damaged after 1 reports" in notes


def test_a_run_of_another_version_still_shows_all_but_the_clip(copy, shown):
    whole = shown
    fields = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**fields, "from_the_future": 1}))
    shown, notes = notes_of(copy)
    assert "from_the_future is not a field" in notes
    assert shown["config"]["from_the_future"] == "1"
    assert len(shown["curves"]["steps"]) == 9
    assert "cannot be restored" in shown["clip"]["missing"]
    assert shown["worlds"] == whole["worlds"]
    assert shown["checkpoint"] == whole["checkpoint"]
    parts = ("x", "y", "ages", "log10_counts", "variance_shown", "count_bins", "age_bins", "size")
    (memory,), (expected,) = shown["memories"], whole["memories"]
    assert [memory[part] for part in parts] == [expected[part] for part in parts]


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_a_folder_that_is_no_run_is_an_error_and_nothing_is_written(
    run, tmp_path, monkeypatch, capsys, content
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    if content is not None:
        (tmp_path / "other" / "config.json").write_text(content)
    before = sorted(tmp_path.rglob("*"))
    assert main(["report", str(run), "other"]) == 1
    assert "other is not a run" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before


def test_by_default_one_run_is_reported_in_its_folder_and_several_here(copy, run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    before = sorted(copy.rglob("*"))
    assert main(["report", str(copy), "--episodes", "0"]) == 0
    assert sorted(copy.rglob("*")) == sorted([*before, copy / "report.html"])
    assert main(["report", str(copy), str(run), "--episodes", "0"]) == 0
    runs = data_of(tmp_path / "report.html")["runs"]
    assert [shown["name"] for shown in runs] == ["copy", "with-bonus"]
    assert "No episode was played" in runs[0]["clip"]["missing"]


def test_the_same_run_twice_and_a_folder_to_write_to_are_errors(run, tmp_path, capsys):
    assert main(["report", str(run), str(run / ".." / run.name)]) == 1
    assert "was given twice" in capsys.readouterr().err
    assert main(["report", str(run), "--out", str(tmp_path)]) == 1
    assert "is a folder" in capsys.readouterr().err


def test_names_and_values_cannot_become_markup(tmp_path):
    evil = "</script><img src=x onerror=alert(1)>&{{data}}"
    folder = train(tmp_path / "<b>&{{script}}<!--", steps=100, wandb_project=None)
    fields = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**fields, "wandb_project": evil}))
    text = write_report([folder], episodes=0).read_text()
    assert "<img" not in text
    assert "<title>&lt;b&gt;&amp;{{script}}&lt;!-- · softcount</title>" in text
    (shown,) = data_of(text)["runs"]
    assert (shown["name"], shown["config"]["wandb_project"]) == ("<b>&{{script}}<!--", evil)


def test_the_page_refers_to_nothing_outside_itself(run, tmp_path):
    text = write_report([run], tmp_path / "report.html", episodes=1).read_text()
    assert set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"']*", text)) == {"http://www.w3.org/2000/svg"}
    for reference in re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?([^\"')\s>]+)", text):
        assert reference.startswith(("data:", "#", "clip.image", "`")), reference
    assert "default-src 'none'" in text


def test_what_is_not_finite_becomes_null():
    assert json.loads(as_script_data({"a": [float("nan"), 1.5, (float("inf"),)]})) == {
        "a": [None, 1.5, [None]]
    }


def test_the_last_evaluation_is_the_clips_where_that_is_newer(copy):
    lines = (copy / "metrics.jsonl").read_text().splitlines(keepends=True)
    rows = [json.loads(line) for line in lines]
    rows[-1] = {name: x for name, x in rows[-1].items() if not name.startswith("eval/")}
    (copy / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    shown, _ = notes_of(copy)
    assert shown["final_at"]["eval/success_rate"] == shown["checkpoint"] == rows[-1]["step"]
    assert shown["final"]["eval/success_rate"] == shown["clip"]["success_rate"]
    assert shown["final"]["eval/return"] == shown["clip"]["mean_return"]
    older = max(row["step"] for row in rows if "eval/return" in row)
    assert older < shown["checkpoint"]
    (copy / "metrics.jsonl").write_text("".join(lines))
    shown, _ = notes_of(copy)
    assert shown["final_at"]["eval/return"] == rows[-1]["step"]
    assert shown["final"]["eval/return"] == json.loads(lines[-1])["eval/return"]
