"""The series of drop-in runs: every agent leaves a curve, and what is kept is drawn and told."""

from __future__ import annotations

from itertools import product

import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("tyro")
from experiments.drop_in import learning as drop_in_learning


@pytest.mark.parametrize("agent", drop_in_learning.AGENTS)
def test_each_agent_leaves_a_curve_that_is_drawn_and_told(agent):
    maze = drop_in_learning.World(env_id="disco-maze", maze_size=7, steps=2048, dqn_steps=2048)
    measured = drop_in_learning.run(agent, "none", maze, 3)
    row = {"agent": agent, "bonus": "none", "seed": 3, "cpu_seconds": 7.2, **measured}
    assert 2000 <= row["curve"][-1]["step"] <= 2048
    assert row["curve"][-1]["places"] > 5
    column = drop_in_learning.AGENTS.index(agent)
    panel = drop_in_learning.plot([row]).axes[column]
    assert panel.lines[0].get_ydata().tolist() == [point["places"] for point in row["curve"]]
    places, first = row["curve"][-1]["places"], row["first_success"]
    cells = drop_in_learning.describe([row])[-1].split(" | ")
    assert cells[:4] == ["| maze", agent, "none", "3"]
    assert int(cells[5]) == places
    assert cells[7] == ("never" if first is None else f"{first / 1000:.0f}k")


def test_every_agent_meets_every_bonus_and_true_counts_once():
    keys = {job.key for job in drop_in_learning.jobs()}
    series = product(drop_in_learning.SERIES, drop_in_learning.AGENTS, drop_in_learning.BONUSES, range(3))
    assert {"_".join(map(str, part)) for part in series} < keys
    assert sum("COUNT" in key for key in keys) == 8


def test_a_lethal_maze_is_told_from_one_whose_walls_block():
    for name, world in drop_in_learning.WORLDS.items():
        row = {"world": {"env_id": world.env_id, "lethal": world.lethal}}
        assert drop_in_learning.world_of(row) == name
    assert drop_in_learning.world_of({"world": {"env_id": "disco-maze"}}) == "maze"  # as older rows say it


def test_a_line_of_panels_where_nothing_happens_is_left_out():
    def row(agent, returns):
        curve = [{"step": i, "places": i, "episodic_return": x} for i, x in enumerate(returns)]
        world = {"env_id": "disco-maze", "lethal": False}
        return {"agent": agent, "bonus": "RND", "seed": 0, "world": world, "curve": curve}

    agents = drop_in_learning.AGENTS
    flat = [row(agent, [0.0, 0.0]) for agent in agents]
    assert len(drop_in_learning.plot(flat).axes) == len(agents)
    telling = [row(agent, [0.0, 1.0]) for agent in agents[:2]] + flat[2:]
    assert len(drop_in_learning.plot(telling).axes) == 2 * len(agents)
