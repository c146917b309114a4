"""What tests of many folders share: one Ray cluster, started by the first that needs it."""

import os
from pathlib import Path
from unittest import mock

import pytest


@pytest.fixture(scope="session")
def cluster():
    from softcount.launch.ray.cluster import connect

    found = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])}
    with mock.patch.dict(os.environ, found):  # processes of the cluster import what tests give them
        started = connect(num_cpus=2, object_store_bytes=100 * 2**20)
        cluster = started.__enter__()
    yield cluster
    started.__exit__(None, None, None)
