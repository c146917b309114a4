"""What tests of many folders share: one Ray cluster, started by the first that needs it."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def cluster():
    from softcount.launch.ray.cluster import connect

    before = os.environ.get("PYTHONPATH")
    tests = str(Path(__file__).parent)  # processes of the cluster import what tests give them
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{tests}{os.pathsep}{before}" if before else tests)
        with connect(num_cpus=2, object_store_bytes=100 * 2**20) as cluster:
            yield cluster
