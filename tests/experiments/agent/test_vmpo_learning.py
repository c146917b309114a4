"""The driver of V-MPO's evidence: its controls are what they say, and what is kept is what is drawn."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from experiments import runs
from experiments.agent import vmpo_learning as driver
from softcount.launch.build import parse_agent

ROOT = Path(__file__).parents[3]


def short(variant):
    return replace(variant, config=replace(variant.config, steps=1600))


def measure(variant, folder):
    row = runs.train_here(driver.config_of(short(variant), 0), folder, driver.Points(variant.forgets))
    return row, [{name: x for name, x in p.items() if "seconds" not in name} for p in row["points"]]


def test_a_run_gives_a_curve_and_a_forgetful_one_another(tmp_path):
    curves = []
    for name, variant in driver.WORLDS["cue-memory"].items():
        row, points = measure(variant, tmp_path / name)
        assert len(points) == driver.POINTS
        steps = [point["step"] for point in points]
        assert steps == sorted(steps)
        assert steps[-1] >= 1600 == row["steps"]
        assert points == measure(variant, tmp_path / f"{name} again")[1]
        curves.append(points)
    one, other = curves
    assert one != other


def test_controls_change_what_they_say():
    catch, clone = (variant.config.vmpo for variant in driver.WORLDS["catch"].values())
    assert (clone.loss.top_fraction, clone.loss.temperature_start) == (1.0, 1e6)
    assert replace(clone, loss=catch.loss, dual_learning_rate=catch.dual_learning_rate) == catch
    each, one, raw = (variant.config.vmpo for variant in driver.WORLDS["unequal-pay"].values())
    assert replace(one, value_per_task=True) == each
    assert not one.value_per_task
    assert replace(raw, loss=each.loss) == each
    assert not raw.loss.normalise_advantages
    noises = [variant.config.env_options["noise"] for variant in driver.WORLDS["noise"].values()]
    assert noises == list(driver.NOISES) * 3
    plain, centred = (variant.config.vmpo.loss for variant in driver.WORLDS["wandering"].values())
    assert replace(centred, intrinsic_baseline="zero") == plain
    for variants in driver.WORLDS.values():
        for variant in variants.values():
            parse_agent(variant.config.agent)


def test_keys_are_names_of_files():
    keys = [job.key for world in driver.WORLDS for job in driver.jobs_of(world)]
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch(r"[\w-]+", key) for key in keys)
    assert "point-maze__no-bonus__seed1" in keys


def test_the_share_of_pay_that_places_explain_is_that_of_their_means():
    agent = SimpleNamespace(update=lambda *given: given)
    pay = driver.PaidByPlace(agent)
    assert pay.take() is None
    place, paid = np.array([[9], [0], [0], [1], [1]]), np.array([[9.0], [1.0], [3.0], [5.0], [7.0]])
    steps = SimpleNamespace(intrinsic=paid, is_first=np.zeros((5, 1), bool), extras={"place": place})
    agent.update(SimpleNamespace(steps=steps))
    assert pay.take() == 0.8  # means 2 and 6 have a variance of 4, all pay one of 5
    agent.update(SimpleNamespace(steps=steps), None, np.zeros((5, 1)))
    assert pay.take() is None  # what is paid in learning takes the place of the stored pay


def test_a_point_of_several_tasks_is_their_mean():
    row = {"points": [{"success": [1.0, None]}] * 16 + [{"success": [0.5, 1.0]}] * 4, "variant": "RECODE-AP"}
    assert driver.last_fifth(row, "success") == 0.75


@pytest.mark.parametrize("path", sorted((ROOT / "results/vmpo").glob("*.json")), ids=lambda path: path.stem)
def test_what_is_kept_belongs_to_a_run_of_the_driver(path):
    row = json.loads(path.read_text())
    variant = driver.WORLDS[row["world"]][row["variant"]]
    assert (row["steps"], row["agent"], row["env"]) == (
        variant.config.steps,
        variant.config.agent,
        variant.config.env,
    )
    assert row["key"] == path.stem
    assert row["points"][-1]["step"] >= row["steps"]
