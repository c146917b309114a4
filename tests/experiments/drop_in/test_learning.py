"""The series of drop-in runs: one file per run, and what is there is not run again."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")
from experiments.drop_in import learning as drop_in_learning


@pytest.mark.parametrize("agent", drop_in_learning.AGENTS)
def test_each_agent_leaves_a_curve_and_is_not_run_twice(agent, tmp_path, monkeypatch, capsys):
    maze = drop_in_learning.World(env_id="disco-maze", maze_size=7)
    monkeypatch.setitem(drop_in_learning.WORLDS, "maze", maze)
    command = ["--worlds", "maze", "--agents", agent, "--bonuses", "none", "--seeds", "3", "--steps", "2048"]
    command += ["--out", str(tmp_path), "--image", str(tmp_path / "curves.png")]
    drop_in_learning.main(command)
    path = tmp_path / f"maze_{agent}_none_3.json"
    record = json.loads(path.read_text())
    assert record["seed"] == 3
    assert 2000 <= record["curve"][-1]["step"] <= 2048
    assert record["curve"][-1]["places"] > 5
    assert record["cpu_seconds"] > 0
    assert (tmp_path / "curves.svg").exists()
    column = drop_in_learning.AGENTS.index(agent)
    panel = drop_in_learning.draw(tmp_path).axes[column]
    assert panel.lines[0].get_ydata().tolist() == [point["places"] for point in record["curve"]]
    places, first = record["curve"][-1]["places"], record["first_success"]
    row = capsys.readouterr().out.splitlines()[-1].split(" | ")
    assert row[:4] == ["| maze", agent, "none", "3"]
    assert int(row[5]) == places
    assert row[7] == ("never" if first is None else f"{first / 1000:.0f}k")
    monkeypatch.setattr(drop_in_learning, "run", None)
    drop_in_learning.main(command)  # would fail if it ran again
