"""A memory's plan: it crosses processes, needs no torch, and builds what a run builds."""

import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from launch.test_local import TINY

from softcount.bonuses.make import Place
from softcount.config import with_fields
from softcount.launch.build import parse_agent, plan_memory
from softcount.launch.memory_plan import MemoryPlan
from softcount.presets import suited
from softcount.types import Features, leaves_of, map_arrays

NAMES = ["MEME-RECODE-AP", "MEME-NGU-AP", "MEME-RND", "MEME-COUNT", "MEME-BYOL-Explore", "MEME"]


def plan_of(name, **changes):
    config = with_fields(suited(TINY, name), changes)
    return plan_memory(config, parse_agent(name), ("a", "b"), 8, seed=5), config


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_is_the_same_after_it_has_crossed(name):
    plan, _ = plan_of(name)
    assert pickle.loads(pickle.dumps(plan)) == plan
    one, other = plan.build(), pickle.loads(pickle.dumps(plan)).build()
    assert all(leaves_of(map_arrays(np.array_equal, one.state_dict(), other.state_dict())))


def test_what_the_plan_says_is_what_is_built():
    plan, config = plan_of("MEME-RECODE-AP", terminal_observations="skipped")
    assert plan.place == Place(dim=8, representation="ap", num_envs=config.num_envs, seed=5)
    assert plan.build().terminal_observations == "skipped"
    assert plan.tasks == ()
    assert plan_of("MEME-RECODE-AP", memory_per_task=True)[0].tasks == ("a", "b")


def test_a_bonus_that_is_paid_in_learning_is_not_the_memorys():
    plan, _ = plan_of("MEME-BYOL-Explore")
    assert plan.make_bonus().paid_in == "learning"
    assert plan.build().bonus is None
    assert MemoryPlan(kind="place_count").build().bonus is not None


def test_the_seed_reaches_the_memory():
    plan, _ = plan_of("MEME-RECODE-AP")
    other = replace(plan, place=replace(plan.place, seed=6))
    found = []
    for server in (plan.build(), plan.build(), other.build()):
        rng = np.random.default_rng(0)
        for _ in range(5):
            rows = rng.normal(size=(16, 8)).astype(np.float32)
            server(Features(embedding=rows), np.arange(16), *np.zeros((2, 16), bool), None, rows)
        found.append(server.state_dict()["memory"]["generator"])
    assert found[0] == found[1] != found[2]


def test_building_a_memory_loads_neither_torch_nor_ray():
    code = """
import sys
from softcount.bonuses.make import Place
from softcount.launch.memory_plan import MemoryPlan
import softcount.launch.ray.once
MemoryPlan(kind="recode", place=Place(dim=4)).build()
print("torch" in sys.modules, "ray" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
