"""What solvers and chance reach: played, read from the files that hold many, drawn."""

import json

import pytest

from experiments.pictures import eight_rooms


@pytest.mark.parametrize("who", ["solver", "random"])
def test_a_task_is_played_as_often_as_asked(who):
    play, usual = eight_rooms.EXPERIMENTS[who]
    assert usual == {"solver": 200, "random": 6000}[who]
    run = play("wall_sensor", "tiny", 3)
    assert run["episodes"] == 3
    if who == "solver":
        assert run["solved"] == 3
        assert run["mean_score"] == 10.0
    else:
        assert run["steps"] == 3 * 400 or run["solved"] > 0


def test_rows_of_one_file_are_those_of_the_jobs(tmp_path, monkeypatch):
    monkeypatch.setattr(eight_rooms, "FOLDER", tmp_path)
    content = {"machine": "m", "runs": {"baseball tiny": {"solved": 3, "episodes": 4, "mean_score": 7.5}}}
    (tmp_path / "solver.json").write_text(json.dumps(content))
    (row,) = eight_rooms.earlier("solver").values()
    assert (row["task"], row["variant"], row["solved"]) == ("baseball", "tiny", 3)
    assert set(eight_rooms.earlier("solver")) < {job.key for job in eight_rooms.jobs("solver")}
    assert eight_rooms.describe([row]) == ["baseball, tiny: solved 3 of 4, mean score 7.50"]
    (bar,) = eight_rooms.plot([row]).axes[0].patches
    assert bar.get_height() == 0.75
