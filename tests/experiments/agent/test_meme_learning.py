"""The small worlds of MEME: controls are what they say, and what is kept is drawn."""

from dataclasses import replace

import numpy as np
import pytest

from experiments import runs
from experiments.agent import meme_learning as experiment
from experiments.agent.meme_learning import POINTS, TASKS
from softcount.runs.run import Run


def short(task):
    return replace(task, config=replace(task.config, steps=32 * POINTS))


@pytest.mark.parametrize("world", TASKS)
def test_every_variant_runs_and_repeats_itself(world, tmp_path):
    for name, task in TASKS[world].items():
        row = runs.train_here(short(task).config_of(0), tmp_path / name, short(task))
        steps = [point["step"] for point in row["points"]]
        assert len(steps) == POINTS
        assert steps == sorted(steps)
        assert np.isfinite([point["return"] for point in row["points"]]).all()
    again = runs.train_here(short(task).config_of(0), tmp_path / "again", short(task))
    assert [p["return"] for p in again["points"]] == [p["return"] for p in row["points"]]


def test_a_zeroed_state_carries_nothing_over_and_a_kept_one_does(tmp_path):
    for variant, matters in (("MEME", True), ("state zeroed", False)):
        task = TASKS["cue memory"][variant]
        run = Run.create(tmp_path / variant, task.config_of(0))
        task.prepare(run)
        roles = run.loop.roles
        request = roles.actor.request()
        request = request._replace(is_first=np.zeros(len(request.is_first), bool))
        other = request._replace(state=tuple(x + 1 for x in request.state))
        first, second = roles.inference(request), roles.inference(other)
        assert (np.abs(first.policy - second.policy).max() > 1e-3) == matters
        for network in (roles.learner.agent.online, roles.learner.agent.target):
            assert bool(network.core._forward_pre_hooks) == (not matters)
        run.close()


@pytest.mark.parametrize("mixture", [0, 1])
def test_a_fixed_arm_acts_always(tmp_path, mixture):
    task = replace(TASKS["two worlds"]["MEME"], mixture=mixture)
    run = Run.create(tmp_path / "run", task.config_of(0))
    task.prepare(run)
    for _ in range(60):
        run.loop.step()
    assert {int(episode.condition) for episode in run.loop.roles.actor.take_episodes()} == {mixture}
    run.close()


def test_the_last_fifth_of_a_curve_is_its_result_and_is_drawn():
    points = [{"step": i, "return": x} for i, x in enumerate([0.0] * 16 + [1.0, 2.0, 3.0, 4.0])]
    rows = [
        {"world": world, "variant": variant, "seed": seed, "points": points}
        for world in ("catch", "chain")
        for variant in ("MEME", "no distillation")
        for seed in (0, 1)
    ]
    assert experiment.last_fifth(rows[0]) == 2.5
    assert experiment.describe(rows)[1] == "catch, no distillation: return 2.50 / 2.50"
    catch, chain = experiment.plot(rows).axes
    assert catch.lines[2].get_ydata().tolist() == [point["return"] for point in points]
    assert chain.get_title() == "chain"
