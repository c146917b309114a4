"""Reports: durable lines that a resumed run continues without a seam."""

import json
import os

import numpy as np
import pytest

from softcount.runs.metrics_log import EventLog, MetricsLog, read_metrics
from softcount.stats import Means


def test_reports_come_back_as_written_and_what_is_not_finite_is_null(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.write(5, {"a": 1.5, "b": np.float32(2.0), "c": float("nan"), "d": np.int64(3)})
    log.close()
    assert list(read_metrics(tmp_path / "metrics.jsonl")) == [
        {"step": 5, "a": 1.5, "b": 2.0, "c": None, "d": 3}
    ]


def test_a_resumed_log_forgets_what_came_after_the_checkpoint(tmp_path):
    path = tmp_path / "metrics.jsonl"
    log = MetricsLog(path)
    log.write(1, {"x": 1.0})
    kept = log.sync()
    log.write(2, {"x": 2.0})
    log.close()
    log = MetricsLog(path, keep_bytes=kept)
    log.write(2, {"x": 20.0})
    log.close()
    assert [row["x"] for row in read_metrics(path)] == [1.0, 20.0]


def test_a_log_is_never_made_longer_than_what_was_written(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n{"st')
    with pytest.warns(UserWarning, match="has 16 bytes and its checkpoint was taken at 1,000,000"):
        log = MetricsLog(path, keep_bytes=10**6)
    log.write(2, {})
    log.close()
    assert path.read_bytes() == b'{"step": 1}\n{"step": 2}\n'


@pytest.mark.skipif(os.name != "posix", reason="links need rights elsewhere")
def test_a_log_is_not_written_through_a_link(tmp_path):
    (tmp_path / "precious").write_bytes(b"precious")
    (tmp_path / "metrics.jsonl").symlink_to(tmp_path / "precious")
    with pytest.raises(OSError, match="is a link or no plain file"):
        MetricsLog(tmp_path / "metrics.jsonl")
    assert (tmp_path / "precious").read_bytes() == b"precious"


def test_a_line_cut_short_ends_the_reading(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text(json.dumps({"step": 1}) + "\n" + '{"step": 2')
    assert list(read_metrics(path)) == [{"step": 1}]


def test_means_average_each_name_over_its_own_reports_and_survive_a_checkpoint():
    means = Means()
    means.add({"a": 1.0, "b": 10.0})
    means.add({"a": 2.0})
    twin = Means()
    twin.load_state_dict(json.loads(json.dumps(means.state_dict())))
    means.add({"a": 6.0})
    twin.add({"a": 6.0})
    assert means.take() == twin.take() == {"a": 3.0, "b": 10.0}


def test_tensorboard_gets_the_same_numbers(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = EventLog(tmp_path)
    log.write(3, {"charts/x": 1.25, "charts/bad": float("inf")})
    log.close()
    events = EventAccumulator(str(tmp_path)).Reload()
    assert [(e.step, e.value) for e in events.Scalars("charts/x")] == [(3, 1.25)]
    assert events.Tags()["scalars"] == ["charts/x"]
