"""Whether goals are kept: every agent leaves a curve and a success; both are told and drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")
from gymnasium import spaces

from experiments.drop_in import goal
from experiments.drop_in.counts import counting_replay
from softcount.integrations.schedules import Fading

SHORT = {name: replace(world, steps=1024, off_policy_steps=1200) for name, world in goal.WORLDS.items()}


@pytest.mark.parametrize(
    ("name", "agent", "bonus"),
    [
        ("key", "sb3-ppo", "COUNT"),
        ("key", "ppo_recode", "none"),
        ("key", "sb3-dqn", "COUNT"),
        ("point", "sb3-sac", "RECODE-AP"),
    ],
)
def test_each_agent_leaves_a_curve_that_is_drawn_and_told(name, agent, bonus):
    measured = goal.run(agent, bonus, SHORT[name], 3)
    row = {"name": name, "agent": agent, "bonus": bonus, "seed": 3, "cpu_seconds": 7.2, **measured}
    assert row["curve"][-1]["places"] > 5
    assert 0 <= row["success"] <= 1
    line = next(
        line for line in goal.describe([row]) if f"| {name} | {agent} | " in line and f"| {bonus} | 3" in line
    )
    assert line.split(" | ")[5] == str(row["curve"][-1]["places"])
    panel = goal.plot([row]).axes[0]
    assert panel.lines[0].get_ydata().tolist() == [point["episodic_return"] for point in row["curve"]]


def test_every_agent_meets_every_bonus_and_what_was_not_run_is_said():
    keys = [job.key for job in goal.jobs()]
    longer, mazes, late = 2 * (1 + 3 + 3 + 3), 2 * (1 + 1 + 3 + 3), 2 * 3
    assert len(keys) == len(set(keys)) == 3 * 4 * (3 + 2 + 2 + 1) + longer + mazes + late
    assert "| maze-x2 | sb3-ppo | 409,600 | RND | not run |  |  |  |  |" in goal.describe([])


def test_worlds_with_more_steps_differ_in_nothing_else():
    for name in ("point", "multiroom", "maze"):
        short, long = goal.WORLDS[name], goal.WORLDS[f"{name}-x2"]
        assert long == replace(short, agents=long.agents, seeds=long.seeds, steps=2 * short.steps)


def test_the_late_worlds_differ_in_the_settings_of_the_bonus_alone():
    for name in ("key", "multiroom"):
        plain, late = goal.WORLDS[name], goal.WORLDS[f"{name}-late"]
        assert (late.env_id, late.options, late.steps) == (plain.env_id, plain.options, plain.steps)
        assert plain.config_of("RECODE-AP") == goal.PLAIN_WORLD
        assert late.config_of("RECODE-AP") == goal.SMALL_WORLD


def test_no_panel_is_empty():
    rows = [
        {"name": name, "agent": agent, "bonus": "COUNT", "curve": [{"step": 1, "episodic_return": 0.5}]}
        for name, agent in (("key", "sb3-ppo"), ("key", "sb3-dqn"), ("maze", "sb3-dqn"), ("point", "sb3-sac"))
    ]
    panels = goal.plot(rows).axes
    assert [panel.get_title() for panel in panels] == [f"{row['name']}, {row['agent']}" for row in rows]
    assert all(panel.lines for panel in panels)


def test_true_counts_in_a_replay_are_those_of_the_places_that_were_reached():
    space = spaces.Box(0, 9, (1,), np.float32)
    options = {"bonus": "RND", "bonus_options": {"weight": Fading(2.0, after=3)}}
    replay = counting_replay()(100, space, spaces.Discrete(2), **options)
    for place in (4, 4, 4, 4, 7):
        at = np.full((1, 1), place, np.float32)
        no = np.zeros(1)
        replay.add(at, at, no, no, no, [{"place": place}])
    batch = replay.sample(400)
    paid, is_new = batch.rewards.numpy()[:, 0], batch.next_observations.numpy()[:, 0] == 7
    assert paid[is_new].min() - paid[~is_new].max() == pytest.approx(2.0 * (1 / np.sqrt(2) - 1 / np.sqrt(5)))
    assert abs(paid.mean()) < 1e-5
    replay.add(
        at, at, no, np.full(1, 5.0), no, [{"place": 7}]
    )  # one reward of the game: three quarters are left
    batch = replay.sample(400)
    paid, is_new = batch.rewards.numpy()[:, 0], batch.next_observations.numpy()[:, 0] == 7
    expected = 0.75 * 2.0 * (1 / np.sqrt(3) - 1 / np.sqrt(5))
    assert paid[is_new].min() - paid[~is_new].max() == pytest.approx(expected, rel=1e-5)


def test_sb3s_agents_have_a_weight_that_fades_and_ppo_a_head(monkeypatch):
    seen = {}

    def train(agent, env, settings, **options):
        seen[agent] = settings, options
        return {"curve": [], "first_success": None, "success": 0.0}

    monkeypatch.setattr(goal, "run_sb3", train)
    kept = goal.run("sb3-ppo", "RECODE-AP", goal.WORLDS["key"], 0)
    assert kept["settings"]["weight"] == "Fading(value=0.1, after=20)"
    callback = seen["sb3-ppo"][1]["callbacks"][0]
    assert callback.options["weight"] == Fading(0.1, after=20)
    assert callback.values == "head"
    goal.run("sb3-dqn", "RECODE-AP", goal.WORLDS["maze"], 0)
    settings, _ = seen["sb3-dqn"]
    assert settings["replay_buffer_kwargs"]["bonus_options"]["weight"] == Fading(0.1, after=20)
    assert settings["policy_kwargs"]["net_arch"] == []
