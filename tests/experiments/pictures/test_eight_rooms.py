import json
import sys

import pytest

from experiments.pictures import eight_rooms


@pytest.mark.parametrize("who", ["solver", "random"])
def test_runs_are_written_after_each_task_and_others_stay(who, tmp_path, monkeypatch):
    path = tmp_path / "out.json"
    for task in ("wall_sensor", "wall_sensor_stack"):
        arguments = [who, "--episodes", "3", "--tasks", task, "--variants", "tiny", "--out", str(path)]
        monkeypatch.setattr(sys, "argv", ["eight_rooms", *arguments])
        eight_rooms.main()
    written = json.loads(path.read_text())
    assert written["suite"].startswith("eight-rooms ")
    assert set(written["runs"]) == {"wall_sensor tiny", "wall_sensor_stack tiny"}
    run = written["runs"]["wall_sensor tiny"]
    assert run["episodes"] == 3
    assert run["cpu_seconds"] > 0
    if who == "solver":
        assert run["solved"] == 3
        assert run["mean_score"] == 10.0
    else:
        assert run["steps"] == 3 * 400 or run["solved"] > 0
