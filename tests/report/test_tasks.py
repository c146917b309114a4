"""A run of several tasks on the page: a map, a memory and a group of charts for each."""

import pytest
from report.runs import TASKS, data_of

from softcount import checkpoint
from softcount.envs.make import make
from softcount.report import write_report
from softcount.runs.playback import inspect_run


@pytest.fixture(scope="module")
def page(tasks_run, tmp_path_factory):
    return data_of(write_report([tasks_run], tmp_path_factory.mktemp("page") / "tasks.html", episodes=3))


def test_every_task_has_its_map_and_together_they_hold_every_place(page, tasks_run):
    (shown,) = page["runs"]
    assert [world["task"] for world in shown["worlds"]] == TASKS
    saved = checkpoint.read(tasks_run / "checkpoints").parts["loop"]["coverage"]
    assert sum(world["visited"] for world in shown["worlds"]) == len(saved["places"])
    assert sum(sum(world["visits"]) for world in shown["worlds"]) == saved["visits"].sum()
    for world, name in zip(shown["worlds"], TASKS, strict=True):
        maze = make(name, size=7, observation="palette")
        assert world["goal"] == list(maze.goal)
        assert world["floor"] == [list(maze.cell_of(place)) for place in range(maze.num_places)]
        assert all(cell in world["floor"] for cell in world["cells"])


def test_every_memory_is_drawn_under_the_name_of_its_task(page, tasks_run):
    (shown,) = page["runs"]
    states = checkpoint.read(tasks_run / "checkpoints").parts["memory"]["tasks"]
    assert [memory["task"] for memory in shown["memories"]] == TASKS
    for memory, state in zip(shown["memories"], states, strict=True):
        assert memory["summary"]["num_observed"] == state["memory"]["num_observed"]
        assert memory["summary"]["num_atoms"] == len(state["memory"]["atoms"]) == len(memory["x"])


def test_the_clip_says_which_task_it_shows_and_plays_as_many_of_each(page):
    (shown,) = page["runs"]
    assert shown["clip"]["task"] == TASKS[0]
    assert shown["clip"]["episodes"] == 2  # of three that were asked for
    assert shown["clip"]["cells"][0] in shown["worlds"][0]["floor"]


def test_every_task_has_a_group_of_charts_of_its_own_numbers(page):
    (shown,) = page["runs"]
    for name in TASKS:
        metrics = [metric for metric, _, _ in page["groups"][f"Task {name}"]]
        drawn = [metric for metric in metrics if metric in shown["curves"]["series"]]
        assert {f"coverage/places/{name}", f"memory/occupied/{name}"} <= set(drawn)
        assert all(metric.endswith(f"/{name}") for metric in metrics)


def test_inspecting_draws_a_map_and_a_memory_of_each(tasks_run, tmp_path):
    said = inspect_run(tasks_run, tmp_path)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [f"{what}-{task}.png" for what in ("coverage", "memory") for task in TASKS]
    totals = [line.split()[2] for line in said.splitlines() if "places visited" in line]
    assert len(totals) == 3
    assert int(totals[0]) == int(totals[1]) + int(totals[2])
