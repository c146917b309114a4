"""The cluster: a token that nobody else can read, the loopback alone, the same program everywhere."""

import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ray._common.network_utils import node_ip_address_from_perspective

from softcount.launch.ray import cluster as cluster_module
from softcount.launch.ray.cluster import ClusterError, VersionMismatch, Versions, connect, make_token

TOKENS = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")


@pytest.fixture
def no_token(monkeypatch, tmp_path):
    for name in TOKENS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(cluster_module.ray, "is_initialized", lambda: False)
    monkeypatch.setattr(cluster_module, "_read_again", lambda: None)  # other tests share a cluster
    return monkeypatch


def test_a_token_is_new_each_time_and_only_its_owner_can_read_it(no_token, tmp_path):
    old = os.umask(0)
    try:
        made = [make_token(Path(os.makedirs(tmp_path / name) or tmp_path / name)) for name in "ab"]
    finally:
        os.umask(old)
    paths = [Path(variables["RAY_AUTH_TOKEN_PATH"]) for variables in made]
    assert [stat.S_IMODE(path.stat().st_mode) for path in paths] == [0o600] * 2
    assert len({path.read_text() for path in paths}) == 2
    assert all(len(path.read_text()) == 64 for path in paths)
    assert all(variables["RAY_AUTH_MODE"] == "token" for variables in made)


@pytest.mark.parametrize("name", ["RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"])
def test_the_users_own_token_is_taken_and_none_is_made(no_token, tmp_path, name):
    no_token.setenv(name, "mine")
    assert make_token(tmp_path) == {"RAY_AUTH_MODE": "token"}
    assert list(tmp_path.iterdir()) == []


def test_joining_without_a_token_says_what_to_do(no_token, tmp_path):
    with pytest.raises(ClusterError, match="set RAY_AUTH_TOKEN_PATH to the copy"), connect("127.0.0.1:1"):
        pass
    no_token.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "nowhere"))
    with pytest.raises(ClusterError, match=r"names .*nowhere, which is not there"), connect("127.0.0.1:1"):
        pass


@pytest.mark.parametrize("address", ["auto", "local", "somewhere"])
def test_an_address_names_host_and_port(no_token, address):
    with pytest.raises(ClusterError, match=f"is '{address}'; expected HOST:PORT"), connect(address):
        pass


def test_what_the_environment_was_told_is_taken_back(no_token):
    with cluster_module._environment({"RAY_AUTH_MODE": "disabled", "HOME": "/elsewhere"}):
        assert os.environ["HOME"] == "/elsewhere"
    assert "RAY_AUTH_MODE" not in os.environ
    assert os.environ["HOME"] != "/elsewhere"


def test_processes_are_spread_over_the_hosts_that_live_and_this_one_comes_last(monkeypatch):
    nodes = [{"NodeID": name, "Alive": name != "gone"} for name in ("here", "gone", "b", "c")]
    monkeypatch.setattr(cluster_module.ray, "nodes", lambda: nodes)
    cluster = cluster_module.Cluster("run", "b:1", False, "here")
    assert cluster.spread(5) == ["b", "c", "here", "b", "c"]


@pytest.mark.ray
def test_a_cluster_of_ones_own_is_reached_by_the_loopback_alone(cluster):
    host, port = cluster.address.split(":")
    assert (host, cluster.is_own) == ("127.0.0.1", True)
    socket.create_connection((host, int(port)), timeout=5).close()
    outside = node_ip_address_from_perspective()
    if outside != host:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((outside, int(port)), timeout=5)


@pytest.mark.ray
def test_another_program_on_a_host_is_refused_and_both_are_named(cluster, monkeypatch):
    cluster.check_versions()
    mine = cluster_module.versions()
    for field in Versions._fields:
        other = mine._replace(**{field: "0.0.9"})
        monkeypatch.setattr(cluster_module, "versions", lambda other=other: other)
        with pytest.raises(VersionMismatch, match="install the same on both") as caught:
            cluster.check_versions()
        assert str(mine) in str(caught.value)
        assert str(other) in str(caught.value)


@pytest.mark.ray
def test_a_process_is_part_of_one_cluster_at_a_time(cluster):
    with pytest.raises(ClusterError, match="part of a Ray cluster already"), connect():
        pass


JOIN = """
import sys
from softcount.launch.ray.cluster import ClusterError, connect
try:
    with connect(sys.argv[1]) as cluster:
        print("joined", cluster.is_own)
except ClusterError as error:
    print(error)
"""


def joined(address, **environment):
    """What another process says that joins."""
    command = [sys.executable, "-c", JOIN, address]
    environment = {**os.environ, **environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr[-2000:]


@pytest.mark.ray
def test_a_wrong_token_is_refused_and_the_right_one_is_not(cluster, tmp_path):
    wrong = tmp_path / "token"
    wrong.write_text("0" * 64)
    assert f"{cluster.address} does not take this token" in joined(
        cluster.address, RAY_AUTH_TOKEN_PATH=str(wrong)
    )
    assert "joined False" in joined(cluster.address)


@pytest.mark.parametrize("address", ["127.0.0.1:9", "127.0.0.1:port", "127.0.0.1:99999"])
def test_where_no_cluster_is_the_address_is_named_at_once(no_token, address):
    no_token.setenv("RAY_AUTH_TOKEN", "0" * 64)
    with pytest.raises(ClusterError, match=f"could be joined at {address}: ") as caught, connect(address):
        pass
    assert "`ray start --head`" in str(caught.value)
    assert "`--runtime.address None`" in str(caught.value)


OWN = """
import tempfile
from softcount.launch.ray.cluster import connect
with connect(num_cpus=1, object_store_bytes=100 * 2**20) as cluster:
    import ray
    print(ray._private.worker._global_node.get_temp_dir_path())
"""


@pytest.mark.ray
@pytest.mark.slow
def test_a_cluster_ends_with_its_run_and_no_other_one_does(cluster):
    environment = {name: value for name, value in os.environ.items() if name not in TOKENS}
    done = subprocess.run(
        [sys.executable, "-c", OWN], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    folder = Path(done.stdout.split()[-1])
    assert folder.name.startswith("softcount-")
    time.sleep(2)
    lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline") if path.exists()]
    assert not any(bytes(folder) in line for line in lines)
    assert not folder.exists()
    assert not (Path.home() / ".ray" / "auth_token").exists()
    cluster.check_versions()
