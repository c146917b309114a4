import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from experiments.agent import meme_learning as experiment
from experiments.agent.meme_learning import CURVE_POINTS, NUM_ENVS, TASKS, build, draw, plot, run


def short(task):
    return replace(task, steps=2 * CURVE_POINTS)


@pytest.mark.parametrize("world", TASKS)
def test_every_variant_runs_and_repeats_itself(world):
    for task in TASKS[world].values():
        curve = run(short(task), 0)
        assert len(curve.steps) == len(curve.returns) == CURVE_POINTS
        assert curve.steps == sorted(curve.steps)
        assert np.isfinite(curve.returns).all()
    assert run(short(task), 0) == curve


def test_a_zeroed_state_carries_nothing_over_and_a_kept_one_does():
    for variant, matters in (("MEME", True), ("state zeroed", False)):
        roles = build(TASKS["cue memory"][variant], 0)
        request = roles.actor.request()._replace(is_first=np.zeros(NUM_ENVS, bool))
        other = request._replace(state=tuple(x + 1 for x in request.state))
        first, second = roles.inference(request), roles.inference(other)
        assert (np.abs(first.policy - second.policy).max() > 1e-3) == matters
        agent = roles.learner.agent
        for network in (agent.online, agent.target):
            assert (type(network.core).__name__ == "Forgetful") == (not matters)


def test_the_last_fifth_of_a_curve_is_its_result():
    curve = experiment.Curve(list(range(20)), [0.0] * 16 + [1.0, 2.0, 3.0, 4.0])
    assert curve.final == 2.5


def test_everything_is_written_down(tmp_path, monkeypatch):
    catch = {"catch": {name: short(task) for name, task in TASKS["catch"].items()}}
    monkeypatch.setattr(experiment, "TASKS", {**catch, "again": catch["catch"]})
    monkeypatch.setattr(torch, "set_num_threads", lambda num: None)
    experiment.main(tmp_path, tmp_path, (0,))
    record = json.loads((tmp_path / "learning.json").read_text())
    assert record["runs"]["catch"]["MEME"][0]["seed"] == 0
    assert len(record["runs"]["catch"]["no distillation"][0]["returns"]) == CURVE_POINTS
    assert (tmp_path / "meme_learning.png").stat().st_size > 10_000
    panel = draw(record["runs"]).axes[0]
    assert panel.lines[1].get_ydata().tolist() == record["runs"]["catch"]["MEME"][0]["returns"]
    before = (tmp_path / "meme_learning.svg").read_bytes()
    plot(tmp_path, tmp_path)
    assert (tmp_path / "meme_learning.svg").read_bytes() == before
