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


def test_jobs_that_were_done_are_kept_when_a_later_one_stops(tmp_path):
    calls, said = [], []
    with pytest.raises(RuntimeError, match="stopped"):
        jobs.run(make_jobs(calls, {"a": 1, "b": None, "c": 3}), tmp_path, said.append)
    assert said == ["[1/3] a ...", "[2/3] b ..."]
    assert calls == ["a", "b"]
    assert {
        key: row["value"] for key, row in jobs.read(make_jobs([], {"a": 1, "b": 2}), tmp_path).items()
    } == {"a": 1}


def test_rows_come_in_the_order_of_the_jobs_without_those_not_run(tmp_path):
    first = make_jobs([], {"c": 3, "a": 1})
    jobs.run(first, tmp_path, lambda _: None)
    asked = make_jobs([], {"a": 1, "b": 2, "c": 3})
    assert [row["key"] for row in jobs.read(asked, tmp_path).values()] == ["a", "c"]


def test_rows_are_grouped_by_what_they_have_in_common():
    rows = [{"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 1, "seed": 1}]
    assert jobs.by(rows, "a") == {1: [rows[0], rows[2]], 2: [rows[1]]}
    assert list(jobs.by(rows, "a", "b")) == [(1, 1), (2, 1)]


def test_what_is_not_a_number_is_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        jobs.run(make_jobs([], {"a": float("nan")}), tmp_path, lambda _: None)
    assert list(tmp_path.iterdir()) == []
