"""What the experiment in Montezuma's Revenge reads out of a run, and draws."""

from dataclasses import replace

import numpy as np
from launch.test_local import TINY

from experiments import runs
from experiments.agent import montezuma
from experiments.agent.montezuma import plot, rooms


def test_rooms_are_read_from_places():
    assert rooms([0, 279, 280, 281, 5 * 280 + 3]) == {0, 1, 5}


def test_a_summary_tells_when_each_room_and_position_was_first_seen(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(montezuma, "rooms", lambda places: {int(place) // 3 for place in places})
    config = replace(TINY, steps=300, report_every=100, evaluate_every=0)
    found = runs.train_here(config, tmp_path / "run", montezuma.Rooms())
    assert capsys.readouterr().out.count(" rooms, ") == 3
    assert 300 <= found["steps"] < 310
    assert [row["step"] // 100 for row in found["rows"]] == [1, 2, 3]
    assert found["positions"] == sorted(found["positions"])
    assert len({room for _, room in found["rooms"]}) == len(found["rooms"]) > 1
    assert {step for step, _ in found["rooms"]} <= set(found["positions"])
    assert found["rooms"][0][0] == found["positions"][0]
    last = found["rows"][-1]
    assert (last["num_rooms"], last["num_positions"]) == (len(found["rooms"]), len(found["positions"]))


def test_both_agents_have_the_small_protocol():
    first, second = (montezuma.config_of(agent, 0) for agent in montezuma.AGENTS)
    assert (first.agent, second.agent) == ("MEME-RECODE-AP", "MEME-RND")
    assert first.steps == second.steps == 1_000_000
    assert first.env == "atari/montezuma_revenge"
    assert [job.key for job in montezuma.jobs()] == ["MEME-RECODE-AP__seed0", "MEME-RND__seed0"]


def test_the_picture_counts_rooms_and_positions_over_frames():
    result = {
        "agent": "A", "seed": 0, "steps": 100, "rooms": [[1, 1], [60, 4]], "positions": [1, 30, 60],
        "rows": [{"step": 50, "return": None}, {"step": 100, "return": 7.0}], "seconds": 120.0,
    }  # fmt: skip
    by_position, returns, by_room = plot([result]).axes
    np.testing.assert_array_equal(by_room.lines[0].get_xdata(), [4, 240, 400])
    np.testing.assert_array_equal(by_room.lines[0].get_ydata(), [1, 2, 2])
    np.testing.assert_array_equal(by_position.lines[0].get_ydata(), [1, 2, 3, 3])
    assert (returns.lines[0].get_xdata(), returns.lines[0].get_ydata()) == ([400], [7])
    assert montezuma.describe([result]) == ["A, seed 0: 2 rooms, 3 positions in 400 frames, 2 min"]
