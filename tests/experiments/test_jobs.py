"""Jobs leave one file each and are not run again."""

import json

import pytest

from experiments import jobs
from experiments.jobs import Job


def make_jobs(calls, values):
    def measure(name):
        calls.append(name)
        if values[name] is None:
            raise RuntimeError("stopped")
        return {"value": values[name]}

    return [
        Job(key=name, seed=i, settings={"setting": name}, measure=lambda name=name: measure(name))
        for i, name in enumerate(values)
    ]


def test_a_row_holds_seed_setting_value_time_and_machine(tmp_path):
    jobs.run(make_jobs([], {"a": 5}), tmp_path, lambda _: None)
    row = json.loads((tmp_path / "a.json").read_text())
    assert (row["key"], row["seed"], row["setting"], row["value"]) == ("a", 0, "a", 5)
    assert row["seconds"] >= 0
    assert row["cpu_seconds"] >= 0
    assert "cores" in row["machine"]


def test_a_stopped_figure_goes_on_with_the_job_that_was_under_way(tmp_path):
    calls, said = [], []
    with pytest.raises(RuntimeError, match="stopped"):
        jobs.run(make_jobs(calls, {"a": 1, "b": None, "c": 3}), tmp_path, said.append)
    again = make_jobs(calls, {"a": 100, "b": 2, "c": 3})
    jobs.run(again, tmp_path, said.append)
    assert calls == ["a", "b", "b", "c"]
    assert [row["value"] for row in jobs.read(again, tmp_path)] == [1, 2, 3]
    assert "1 of 3 runs are there already" in said


def test_rows_come_in_the_order_of_the_jobs_without_those_not_run(tmp_path):
    first = make_jobs([], {"c": 3, "a": 1})
    jobs.run(first, tmp_path, lambda _: None)
    asked = make_jobs([], {"a": 1, "b": 2, "c": 3})
    assert [row["key"] for row in jobs.read(asked, tmp_path)] == ["a", "c"]


def test_what_is_not_a_number_is_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        jobs.run(make_jobs([], {"a": float("nan")}), tmp_path, lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_equal_pictures_are_equal_files(tmp_path):
    def draw():
        figure = jobs.new_figure(2, 2)
        figure.subplots().plot([1, 2], [3, 4])
        return figure

    first = jobs.save_picture(draw(), "x", tmp_path / "one")
    second = jobs.save_picture(draw(), "x", tmp_path / "two")
    assert [path.name for path in first] == ["x.png", "x.svg"]
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
