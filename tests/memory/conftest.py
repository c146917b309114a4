"""Runs the memory's tests over every engine that is installed."""

import importlib.util

import numpy as np
import pytest
from oracles.memories import CONFIG

from softcount import RecodeMemory

ENGINES = ["numpy"]
if importlib.util.find_spec("softcount.memory.native_engine") and importlib.util.find_spec(
    "softcount.memory._native"
):
    ENGINES.append("native")


@pytest.fixture(params=ENGINES, scope="session")
def engine(request):
    return request.param


@pytest.fixture
def memory(engine):
    """A full memory that has replaced some atoms."""
    memory = RecodeMemory(CONFIG, seed=1, engine=engine)
    memory.observe(np.random.default_rng(0).standard_normal((150, 3)))
    return memory
