"""What tests of many folders share: one Ray cluster, started by the first that needs it."""

import pytest


@pytest.fixture(scope="session")
def cluster():
    from softcount.launch.ray.cluster import connect

    with connect(num_cpus=2, object_store_bytes=100 * 2**20) as cluster:
        yield cluster
