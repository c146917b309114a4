"""Runs the memory's tests over every engine that is installed."""

import importlib.util

import pytest

ENGINES = ["numpy"]
if importlib.util.find_spec("softcount.memory.engine") and importlib.util.find_spec(
    "softcount.memory._native"
):
    ENGINES.append("native")


@pytest.fixture(params=ENGINES, scope="session")
def engine(request):
    return request.param
