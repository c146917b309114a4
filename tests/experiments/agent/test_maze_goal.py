"""What the maze experiment reads out of a run."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from kept_results import read_kept, resolved
from launch.test_local import TINY

from experiments.agent.maze_goal import (
    PRESET_OF,
    draw,
    is_solved,
    is_stalled,
    main,
    settings,
    steps_done,
    summarise,
    total_seconds,
    train,
)
from experiments.demo import AGENTS
from softcount.config_json import to_tree
from softcount.envs.make import make
from softcount.presets import PRESETS, suited
from softcount.runs.run import Run
from softcount.taxonomy import parse

ROOT = Path(__file__).parents[3]


def test_every_layout_and_seed_meets_every_agent():
    names = [setting.name for setting in settings(["MEME", "MEME-RND"], 11, [0, 2], [5], 10)]
    assert names == [
        "MEME__size11__layout0__seed5", "MEME-RND__size11__layout0__seed5",
        "MEME__size11__layout2__seed5", "MEME-RND__size11__layout2__seed5",
    ]  # fmt: skip


def test_clocks_that_start_anew_are_added_up():
    assert total_seconds([1.0, 4.0, 2.0, 3.0, 0.5]) == pytest.approx(4.0 + 3.0 + 0.5)


def test_a_summary_holds_what_the_run_has_seen(tmp_path, monkeypatch):
    config = replace(TINY, steps=400, report_every=100, evaluate_every=200)
    run = Run.create(tmp_path / "run", config)
    reports = list(run.train())
    visits = run.loop.coverage.visits.copy()
    run.close()
    summary = summarise(tmp_path / "run")
    maze = make("disco-maze", **config.env_options)
    seen = [place for place, count in enumerate(visits) if count]
    assert summary["steps"] == run.loop.num_steps
    assert summary["config"] == to_tree(config)
    assert [step for step, _ in summary["success"]] == [step for step, _ in reports]
    assert summary["places"] == len(seen) == summary["coverage"][-1][1]
    assert summary["depth"] == max(maze.distances[maze.cell_of(place)] for place in seen)
    assert summary["goal_distance"] == maze.distances.max()
    assert (summary["first_goal"] is None) == (summary["depth"] < summary["goal_distance"])
    assert [step for step, *_ in summary["evaluations"]] == [s for s, m in reports if "eval/return" in m]
    first_seen = {place: int(run.loop.coverage.first_seen[place]) for place in seen}
    wanted = [(step, maze.distances[maze.cell_of(place)]) for place, step in first_seen.items()]
    assert summary["discoveries"] == sorted(wanted)
    coverage, depth, evaluation = draw([summary]).axes
    shares = [(i + 1) / maze.num_places for i in range(len(seen))]
    assert coverage.lines[0].get_ydata().tolist() == pytest.approx([*shares, shares[-1]])
    assert coverage.lines[0].get_xdata().tolist() == [
        *(step for step, _ in summary["discoveries"]),
        summary["steps"],
    ]
    assert depth.lines[0].get_ydata()[-1] == summary["depth"] / summary["goal_distance"]
    assert evaluation.lines[0].get_ydata().tolist() == [rate for _, rate, _ in summary["evaluations"]]
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.json").write_text(json.dumps(summary))
    options = ["--out", str(tmp_path / "out"), "--picture", str(tmp_path / "again.png")]
    monkeypatch.setattr(sys, "argv", ["maze_goal", "--draw", *options])
    assert main() == 0
    assert (tmp_path / "again.svg").exists()


def test_a_run_is_solved_when_its_last_two_evaluations_were(tmp_path):
    def with_rates(*rates, beyond=0):
        rows = [{"step": i, "eval/return": x, "eval/success_rate": x} for i, x in enumerate(rates)]
        content = "".join(json.dumps(row) + "\n" for row in rows)
        later = json.dumps(
            {"step": 99, "eval/return": 0.0, "eval/success_rate": 0.0}
        )  # no checkpoint knows it
        (tmp_path / "metrics.jsonl").write_text(content + later)
        (tmp_path / "checkpoints").mkdir(exist_ok=True)
        manifest = json.dumps({"metrics_bytes": len(content.encode())})
        (tmp_path / "checkpoints" / "manifest.json").write_text(manifest)
        return is_solved(tmp_path, 0.9, beyond)

    assert with_rates(0.0, 0.95, 0.9)
    assert not with_rates(0.95, 0.95, 0.85)
    assert not with_rates(0.85, 1.0)
    assert not with_rates(1.0)
    assert not with_rates(0.9, 0.9, 0.0)
    assert with_rates(0.9, 0.9, 0.0, beyond=1)  # however it goes on
    assert not with_rates(0.9, 0.9, 0.0, beyond=2)
    assert not with_rates(0.9, 0.0, 0.9, 0.0, beyond=1)
    assert not is_solved(tmp_path / "nothing there", 0.9)


def test_a_run_is_stalled_when_nothing_new_was_seen_for_long(tmp_path):
    def with_places(*places, success=0.0):
        rows = [
            {"step": 100 * i, "coverage/places": count, "charts/success_rate": success}
            for i, count in enumerate(places)
        ]
        content = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / "metrics.jsonl").write_text(content)
        (tmp_path / "checkpoints").mkdir(exist_ok=True)
        manifest = json.dumps({"metrics_bytes": len(content.encode())})
        (tmp_path / "checkpoints" / "manifest.json").write_text(manifest)
        return is_stalled(tmp_path, 200)

    assert with_places(1, 2, 5, 5, 5)
    assert not with_places(1, 2, 5, 5)
    assert not with_places(1, 5, 5, 5, 6)
    assert not with_places(5, 5, 5, 5, success=0.1)  # it may still learn the way
    assert not with_places()


def test_a_run_that_left_its_file_is_not_run_again(tmp_path, monkeypatch, capsys):
    command = ["maze_goal", "--agents", "MEME", "--size", "7", "--layouts", "0", "--seeds", "3"]
    command += ["--steps", "200", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "out")]
    command += ["--picture", str(tmp_path / "maze.png"), "--num-envs", "4", "--evaluate-every", "0"]
    command += ["--report-every", "100", "--evaluation-episodes", "4"]
    monkeypatch.setattr(sys, "argv", command)
    assert main() == 0
    (path,) = (tmp_path / "out").iterdir()
    result = json.loads(path.read_text())
    assert path.name == "MEME__size7__layout0__seed3.json"
    assert 200 <= result["steps"] < 210
    said = capsys.readouterr().out
    assert f"{result['places']} places, goal {result['first_goal'] or 'not reached'}" in said
    shutil.rmtree(tmp_path / "runs")
    assert main() == 0
    assert not (tmp_path / "runs").exists()
    assert capsys.readouterr().out == said


def test_a_run_goes_on_in_stretches_until_its_steps_are_over(tmp_path):
    (setting,) = settings(["MEME"], 7, [0], [3], 900)
    extra = [
        "--num-envs",
        "4",
        "--evaluation-episodes",
        "4",
        "--evaluate-every",
        "0",
        "--report-every",
        "100",
    ]
    assert steps_done(tmp_path / setting.name) == 0
    (tmp_path / setting.name).mkdir()  # stopped before it was a run
    folder = train(setting, tmp_path, extra, stretch=500, solved=0.9)
    assert 900 <= steps_done(folder) < 910
    steps = [json.loads(line)["step"] for line in (folder / "metrics.jsonl").open()]
    assert any(500 <= step < 510 for step in steps)  # where the first stretch ended
    log = (tmp_path / f"{setting.name}.log").read_text()
    assert log.count("run folder") == 2
    assert train(setting, tmp_path, extra, stretch=500, solved=0.9) == folder  # nothing left to do
    assert (tmp_path / f"{setting.name}.log").read_text() == log
    for steps in (setting.steps, 1000):  # finished or not
        with pytest.raises(ValueError, match=r"was begun with the options .*'4'.*; expected \[\]"):
            train(setting._replace(steps=steps), tmp_path, [], stretch=500, solved=0.9)


@pytest.mark.parametrize(("size", "preset"), [(11, "laptop"), (21, "laptop-21"), (13, "laptop")])
def test_a_run_is_begun_with_the_preset_of_its_size_and_ends_when_it_is_solved_or_stalled(
    tmp_path, monkeypatch, size, preset
):
    commands = []

    def run(command, **_):  # a process that finds the goal in its second stretch
        commands.append(command[3:])
        folder = tmp_path / setting.name
        (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
        (folder / "config.json").touch()
        done = int(command[command.index("--steps") + 1])
        rate = 1.0 if done >= solves_at else 0.0
        places = 5 if done <= 200 else 6
        row = {"step": done, "coverage/places": places, "eval/return": rate, "eval/success_rate": rate}
        with (folder / "metrics.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        manifest = {"step": done, "metrics_bytes": (folder / "metrics.jsonl").stat().st_size}
        (folder / "checkpoints" / "manifest.json").write_text(json.dumps(manifest))
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("experiments.agent.maze_goal.subprocess.run", run)
    (setting,) = settings(["MEME"], size, [4], [3], 1000)
    solves_at = 200
    train(setting, tmp_path, ["--no-overlap"], stretch=100, solved=0.9, stalled=500)
    begun, *resumed = commands
    assert begun[:4] == ["train", "MEME", "--preset", preset]
    assert {f"size={size}", "layout=4", "--no-overlap"} <= set(begun)
    assert begun[begun.index("--seed") + 1] == "3"
    assert [command[0] for command in resumed] == ["resume"] * 2
    assert steps_done(tmp_path / setting.name) == 300  # the second good evaluation in a row
    (setting,) = settings(["MEME-COUNT"], size, [4], [3], 1000)
    train(setting, tmp_path, ["--no-overlap"], stretch=100, solved=0.9, beyond=150)
    assert steps_done(tmp_path / setting.name) == 500  # 150 steps after 300 and a whole stretch
    (setting,) = settings(["MEME-RND"], size, [4], [3], 1000)
    solves_at = 10_000
    train(setting, tmp_path, ["--no-overlap"], stretch=100, solved=0.9, stalled=500)
    assert steps_done(tmp_path / setting.name) == 800  # nothing new since 300


def test_committed_results_are_of_their_presets():
    folders = ("maze_11", "maze_21", "maze_21_held_out")
    paths = [path for folder in folders for path in sorted((ROOT / "results/meme" / folder).glob("*.json"))]
    results = [result for path in paths if "config" in (result := json.loads(path.read_text()))]
    assert len(results) >= 6  # the others were made when results did not hold it
    for result in results:
        preset = suited(PRESETS[PRESET_OF[result["env_options"]["size"]]], result["agent"])
        free = {"seed": result["seed"], "steps": result["config"]["steps"], "overlap": False}
        wanted = replace(preset, env_options=result["env_options"], **free)
        assert resolved(read_kept(result["config"])) == resolved(wanted), result["agent"]


def test_the_demo_compares_an_agent_with_itself_without_its_bonus():
    with_bonus, without = map(parse, AGENTS)
    assert (with_bonus.agent, with_bonus.bonus) == ("meme", "recode")
    assert (without.agent, without.bonus) == ("meme", "none")
