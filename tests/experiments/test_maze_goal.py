"""What the maze experiment reads out of a run."""

from dataclasses import replace

import pytest
from launch.test_local import TINY

from softcount.envs.make import make
from softcount.experiments.demo import AGENTS
from softcount.experiments.maze_goal import _total, draw, settings, summarise
from softcount.experiments.montezuma import rooms
from softcount.launch.run import Run
from softcount.taxonomy import parse


def test_every_layout_and_seed_meets_every_agent():
    names = [setting.name for setting in settings(["MEME", "MEME-RND"], 11, [0, 2], [5], 10)]
    assert names == [
        "MEME__size11__layout0__seed5", "MEME-RND__size11__layout0__seed5",
        "MEME__size11__layout2__seed5", "MEME-RND__size11__layout2__seed5",
    ]  # fmt: skip


def test_clocks_that_start_anew_are_added_up():
    assert _total([1.0, 4.0, 2.0, 3.0, 0.5]) == pytest.approx(4.0 + 3.0 + 0.5)


def test_a_summary_holds_what_the_run_has_seen(tmp_path):
    config = replace(TINY, steps=400, report_every=100, evaluate_every=200)
    run = Run.create(tmp_path / "run", config)
    reports = list(run.train())
    visits = run.loop.coverage.visits.copy()
    run.close()
    summary = summarise(tmp_path / "run")
    maze = make("disco-maze", **config.env_options)
    seen = [place for place, count in enumerate(visits) if count]
    assert summary["places"] == len(seen) == summary["coverage"][-1][1]
    assert summary["depth"] == max(maze.distances[maze.cell_of(place)] for place in seen)
    assert summary["goal_distance"] == maze.distances.max()
    assert (summary["first_goal"] is None) == (summary["depth"] < summary["goal_distance"])
    assert [step for step, *_ in summary["evaluations"]] == [s for s, m in reports if "eval/return" in m]
    assert summary["first_seen"] == sorted(summary["first_seen"])
    draw([summary], tmp_path / "maze.png")
    assert (tmp_path / "maze.png").stat().st_size > 1000


def test_rooms_are_read_from_places():
    assert rooms([0, 279, 280, 281, 5 * 280 + 3]) == {0, 1, 5}


def test_the_demo_compares_an_agent_with_itself_without_its_bonus():
    with_bonus, without = map(parse, AGENTS)
    assert (with_bonus.agent, with_bonus.bonus) == ("meme", "recode")
    assert (without.agent, without.bonus) == ("meme", "none")
