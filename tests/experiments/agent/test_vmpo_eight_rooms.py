"""Eight Rooms at once: the runs differ in their bonus only, and scores are in units of the solver's."""

from dataclasses import replace

import pytest

from experiments import runs
from experiments.agent import vmpo_eight_rooms as driver
from softcount.envs.eight_rooms.tasks import TASKS


def own(episodes, earned, places=1):
    return {"episodes": episodes, "return": earned, "places": places, "stages": 1}


def test_agents_differ_in_their_bonus_only():
    recode, byol, plain = (driver.config_of(agent) for agent in driver.STEPS)
    assert recode.vmpo == byol.vmpo == plain.vmpo
    assert recode.env_options == byol.env_options == plain.env_options
    assert recode.num_envs == byol.num_envs == plain.num_envs
    assert [config.agent for config in (recode, byol, plain)] == list(driver.STEPS)


def test_the_solver_has_a_score_for_every_task():
    assert set(driver.solver_scores()) == set(TASKS)


def test_a_score_is_that_of_all_episodes_in_units_of_the_solvers():
    most = driver.solver_scores()["drawbridge"]
    rows = [own(1, most), own(3, 0.0), own(0, None)]
    row = {"points": [{"tasks": {"drawbridge": task}} for task in rows]}
    assert driver.score(row, "drawbridge") == pytest.approx(0.25)
    assert driver.score(row, "drawbridge", slice(1, None)) == 0.0
    assert driver.score(row, "drawbridge", slice(2, None)) == 0.0
    assert driver.score({"points": [{"tasks": {"drawbridge": own(1, 9 * most)}}]}, "drawbridge") == 1.0


def test_a_run_keeps_places_and_stages_of_every_task(tmp_path):
    config = replace(driver.config_of("VMPO"), steps=2600, report_every=1300)
    row = runs.train_here(config, tmp_path, driver.PerTask())
    assert len(row["points"]) == 2
    for task in row["points"][-1]["tasks"].values():
        assert task["places"] >= task["stages"] >= 1


def test_what_is_said_of_a_run():
    tasks = {task: own(1, 0.0, places=3) for task in TASKS}
    tasks["baseball"] = own(2, driver.solver_scores()["baseball"], places=7)
    points = [{"step": 10 * k + 3, "tasks": tasks} for k in range(1, 1 + driver.POINTS)]
    (line,) = driver.describe([{"agent": "VMPO", "steps": 200, "points": points}])
    assert line.startswith("VMPO: capped mean 0.125, places 28; ")
    assert "baseball 7 places, 1 stages, 1.00" in line


def test_runs_of_different_length_are_compared_after_equal_steps():
    points = [
        {"step": 20 * k, "tasks": {task: own(1, 0.0, places=k) for task in TASKS}} for k in range(1, 21)
    ]
    long = {"agent": "VMPO-RECODE-AP", "steps": 400, "points": points}
    short = {"agent": "VMPO", "steps": 200, "points": [{**p, "step": p["step"] // 2} for p in points]}
    lines = driver.describe([long, short])
    assert "places 80;" in lines[0]
    assert "places 160;" in lines[1]
