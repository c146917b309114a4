"""What the maze experiment asks of a run, and when it ends one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from kept_results import read_kept, resolved
from launch.test_local import TINY

from experiments import runs
from experiments.agent import maze_goal
from experiments.agent.maze_goal import PRESET_OF, Ended, Maze, is_solved, is_stalled, plot
from experiments.demo import AGENTS
from experiments.drawing import lighter, new_figure
from softcount.config_json import to_tree
from softcount.envs.make import make
from softcount.presets import suited
from softcount.taxonomy import parse

ROOT = Path(__file__).parents[3]


def test_every_layout_and_seed_meets_every_agent():
    jobs = maze_goal.jobs_of("x", ["MEME", "MEME-RND"], 11, [0, 2], [5], 10, Ended())
    assert [job.key for job in jobs] == [
        "MEME__size11__layout0__seed5", "MEME-RND__size11__layout0__seed5",
        "MEME__size11__layout2__seed5", "MEME-RND__size11__layout2__seed5",
    ]  # fmt: skip


def test_a_summary_holds_what_the_run_has_seen(tmp_path):
    config = replace(TINY, steps=400, report_every=100, evaluate_every=200)
    row = {"seed": 0, **runs.train_here(config, tmp_path / "run", Maze())}
    maze = make("disco-maze", **config.env_options)
    reports = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").open()]
    assert row["config"] == to_tree(config)
    assert [step for step, _ in row["success"]] == [report["step"] for report in reports]
    assert row["places"] == len(row["discoveries"]) == row["coverage"][-1][1] > 1
    assert row["depth"] == max(distance for _, distance in row["discoveries"])
    assert row["goal_distance"] == maze.distances.max()
    assert (row["first_goal"] is None) == (row["depth"] < row["goal_distance"])
    evaluated = [report for report in reports if "eval/return" in report]
    assert len(evaluated) == 2
    assert row["evaluations"] == [[r["step"], r["eval/success_rate"], r["eval/length"]] for r in evaluated]
    assert [truth["step"] for truth in row["truth"]] == [report["step"] for report in evaluated]
    assert row["truth"][-1]["correlation"] == evaluated[-1]["truth/correlation"]
    coverage, depth, evaluation = plot([row]).axes
    shares = [(i + 1) / maze.num_places for i in range(row["places"])]
    assert coverage.lines[0].get_ydata().tolist() == pytest.approx([*shares, shares[-1]])
    steps = [step for step, _ in row["discoveries"]]
    assert coverage.lines[0].get_xdata().tolist() == [*steps, row["steps"]]
    assert depth.lines[0].get_ydata()[-1] == row["depth"] / row["goal_distance"]
    dots = [(dot.get_xdata()[0], dot.get_markerfacecolor()) for dot in evaluation.lines[1:]]
    colour = coverage.lines[0].get_color()
    assert dots == [(step, lighter(colour, 1 - rate)) for step, rate, _ in row["evaluations"]]
    assert maze_goal.describe([{**row, "env_options": {"layout": 7}}])[0].startswith(
        f"{config.agent}, layout 7, seed 0: {row['places']} of {maze.num_places} places"
    )


def test_evaluations_are_filled_by_their_success():
    axes = new_figure(2, 2).subplots()
    row = {"agent": "A", "seed": 0, "steps": 9, "env_options": {"layout": 1}}
    maze_goal._draw_evaluations(
        axes, [{**row, "evaluations": [(3, 0.0, 1), (6, 0.5, 1), (9, 1.0, 1)]}], {"A": "#000000"}
    )
    assert [dot.get_markerfacecolor() for dot in axes.lines[1:]] == ["#ffffff", "#808080", "#000000"]


def answers(**columns):
    """Answers of a run, one per report of 100 steps."""
    num = len(next(iter(columns.values())))
    usual = {"places": [1] * num, "success": [0.0] * num, "evaluation": [None] * num}
    rows = zip(*({**usual, **columns}).values(), strict=True)
    return [{"step": 100 * i, **dict(zip(usual, row))} for i, row in enumerate(rows)]


def rates(*shares):
    return answers(evaluation=[None if x is None else [x, 9.0] for x in shares])


def test_a_run_is_solved_when_its_last_two_evaluations_were():
    assert is_solved(rates(0.0, 0.95, 0.9))
    assert is_solved(rates(0.95, None, 0.9, None))  # reports between evaluations
    assert not is_solved(rates(0.95, 0.95, 0.85))
    assert not is_solved(rates(0.85, 1.0))
    assert not is_solved(rates(1.0))
    assert not is_solved(rates(0.9, 0.9, 0.0))
    assert is_solved(rates(0.9, 0.9, 0.0), beyond=100)  # however it goes on
    assert not is_solved(rates(0.9, 0.9, 0.0), beyond=200)
    assert not is_solved(rates(0.9, 0.0, 0.9, 0.0), beyond=100)


def test_steps_beyond_count_from_the_first_time():
    assert is_solved(rates(0.9, 0.9, 0.9), beyond=100)
    assert not is_solved(rates(0.9, 0.9, 0.9), beyond=200)


def test_a_run_is_stalled_when_nothing_new_was_seen_for_long():
    assert is_stalled(answers(places=[1, 2, 5, 5, 5]), 200)
    assert not is_stalled(answers(places=[1, 2, 5, 5]), 200)
    assert not is_stalled(answers(places=[1, 5, 5, 5, 6]), 200)
    assert not is_stalled(answers(places=[5, 5, 5, 5], success=[None, 0.1, 0.0, 0.0]), 200)  # it may learn
    assert is_stalled(answers(places=[5, 5, 5], success=[None, None, 0.0]), 200)


def test_a_run_ends_when_it_is_solved_or_if_asked_stalled():
    stuck = answers(places=[5, 5, 5, 5])
    assert not Ended()(stuck)
    assert Ended(stalled=300)(stuck)
    assert not Ended(stalled=400)(stuck)
    assert Ended(stalled=400)(rates(1.0, 1.0))
    assert not Ended(beyond=100)(rates(1.0, 1.0))
    assert Ended(beyond=100)(rates(1.0, 1.0, 0.5))


@pytest.mark.parametrize("size", [11, 21])
def test_a_run_has_the_preset_of_its_size(monkeypatch, size):
    trained = []
    monkeypatch.setattr(runs, "train", lambda *words, **more: trained.append((*words, more)) or {})
    (job,) = maze_goal.jobs_of("x", ["MEME-RND"], size, [4], [3], 1000, Ended(stalled=5))
    job.measure()
    ((config, folder, more),) = trained
    assert folder.name == job.key
    assert more["until"] == Ended(stalled=5)
    preset = suited(PRESET_OF[size], "MEME-RND")
    assert config.env_options == {**preset.env_options, "size": size, "layout": 4}
    assert config == replace(preset, env_options=config.env_options, seed=3, steps=1000, overlap=False)


def test_who_is_expected_to_find_the_goal_is_never_called_stalled(monkeypatch):
    rules = {}

    def train(config, folder, *, watch, until):
        rules[config.agent] = until
        return {}

    monkeypatch.setattr(runs, "train", train)
    for job in maze_goal.jobs_21():
        job.measure()
    assert rules.pop("MEME-RECODE-AP") == rules.pop("MEME-COUNT") == Ended()
    assert set(rules) == set(maze_goal.STALLING)
    assert set(rules.values()) == {Ended(stalled=500_000)}
    assert len(maze_goal.jobs_21()) == 24


def test_committed_results_are_of_their_presets():
    folders = ("maze_11", "maze_21", "maze_21_held_out")
    paths = [path for folder in folders for path in sorted((ROOT / "results/meme" / folder).glob("*.json"))]
    results = [result for path in paths if "config" in (result := json.loads(path.read_text()))]
    assert len(results) >= 6  # the others were made when results did not hold it
    for result in results:
        preset = suited(PRESET_OF[result["env_options"]["size"]], result["agent"])
        free = {"seed": result["seed"], "steps": result["config"]["steps"], "overlap": False}
        wanted = replace(preset, env_options=result["env_options"], **free)
        assert resolved(read_kept(result["config"])) == resolved(wanted), result["agent"]


def test_the_demo_compares_an_agent_with_itself_without_its_bonus():
    with_bonus, without = map(parse, AGENTS)
    assert (with_bonus.agent, with_bonus.bonus) == ("meme", "recode")
    assert (without.agent, without.bonus) == ("meme", "none")
