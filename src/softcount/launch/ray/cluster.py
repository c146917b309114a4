"""A Ray cluster for one run: its own on this machine, or one that runs already and has an address.

An own cluster is reached from this machine only, asks for a token that nobody else has, keeps its files
in a folder of its own, and ends with the run. A cluster that is joined is left as it was found.
Ray's defaults do none of this by themselves: a bare `ray.init()` joins whatever ran last, listens on
every network of the machine, and leaves a token that others can read.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import platform
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import ray
from ray._private import ray_constants
from ray._raylet import AuthenticationTokenLoader, Config, GcsClient  # type: ignore[attr-defined]
from ray.exceptions import AuthenticationError, RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

import softcount

HealthCheck = Literal["fast", "default"]
LOOPBACK = "127.0.0.1"
REACH_SECONDS = 10.0
ONLY_LOOPBACK = ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR
"""Set to 0, Ray's processes listen on the loopback alone."""
FAST = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 3,
}
"""A host that was cut off counts as dead after some 6 seconds, not after a minute."""


class ClusterError(RuntimeError):
    """A cluster that cannot be used; says why and what to do."""


class VersionMismatch(ClusterError):
    """Two hosts that do not run the same program."""


class Versions(NamedTuple):
    """What must be equal on every host."""

    softcount: str
    source: str
    """A digest of the package's Python files: two checkouts of one version can differ."""
    ray: str
    python: str

    def __str__(self) -> str:
        return f"softcount {self.softcount} ({self.source}), Ray {self.ray}, Python {self.python}"


@dataclass(frozen=True)
class Cluster:
    """A cluster that this process is part of."""

    namespace: str
    """Where the named actors of the run live."""
    address: str
    is_own: bool
    """Whether it was started for this run, and ends with it."""
    node_id: str
    """This host, where the folder of the run is."""

    def spread(self, num: int) -> list[str]:
        """Hosts for `num` processes in turn, this one last: it has the memory and the trainer already."""
        alive = [node["NodeID"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
        hosts = sorted(alive, key=lambda node: node == self.node_id)
        return [hosts[number % len(hosts)] for number in range(num)]

    def check_versions(self) -> None:
        """Raises `VersionMismatch` if a host runs another program than this process."""
        mine = versions()
        for node, found in _versions_by_node().items():
            if found != mine:
                raise VersionMismatch(f"this host has {mine}; {node} has {found}: install the same on both")


@contextlib.contextmanager
def connect(
    address: str | None = None,
    *,
    health_check: HealthCheck = "fast",
    num_cpus: int | None = None,
    object_store_bytes: int | None = None,
) -> Iterator[Cluster]:
    """Starts a cluster on this machine, or joins the one at `HOST:PORT`; leaves or ends it afterwards."""
    if ray.is_initialized():
        raise ClusterError("this process is part of a Ray cluster already; leave it first")
    if address is not None and (address in ("auto", "local") or ":" not in address):
        raise ClusterError(f"the address of a cluster is {address!r}; expected HOST:PORT")
    namespace = f"softcount-{secrets.token_hex(4)}"
    with contextlib.ExitStack() as stack:
        if address is None:
            options = _own(stack, health_check, num_cpus, object_store_bytes)
        else:
            stack.enter_context(_environment(_joining_token()))
            _check_address(address)
            options = {"address": address}
        stack.callback(ray.shutdown)
        context = _init({"namespace": namespace, **options})
        cluster = Cluster(
            namespace=namespace,
            address=context.address_info["gcs_address"],
            is_own=address is None,
            node_id=ray.get_runtime_context().get_node_id(),
        )
        if cluster.is_own and not cluster.address.startswith(f"{LOOPBACK}:"):
            raise ClusterError(f"Ray listens at {cluster.address}; expected the loopback alone")
        cluster.check_versions()
        yield cluster


def _own(
    stack: contextlib.ExitStack, health_check: HealthCheck, num_cpus: int | None, store: int | None
) -> dict[str, Any]:
    """Prepares a cluster of one's own; what is prepared is undone with the stack."""
    folder = Path(
        tempfile.mkdtemp(prefix="softcount-")
    )  # short: sockets in it have a limit of 107 characters
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    stack.enter_context(_environment({**make_token(folder), ONLY_LOOPBACK: "0"}))
    stack.enter_context(_only_loopback())
    return {
        "address": "local",
        "num_cpus": num_cpus,
        "object_store_memory": store,
        "include_dashboard": False,
        "_node_ip_address": LOOPBACK,
        "_temp_dir": str(folder),
        "_system_config": FAST if health_check == "fast" else {},
    }


def _init(options: dict[str, Any]) -> Any:
    try:
        return ray.init(logging_level=logging.WARNING, **options)
    except (RayError, RuntimeError, ConnectionError, ValueError) as error:
        if options["address"] == "local":
            raise ClusterError(f"no Ray cluster could be started here: {error}") from error
        raise _joining_error(options["address"], str(error)) from error


def _joining_error(address: str, reason: str) -> ClusterError:
    if "ersion mismatch" in reason:
        return VersionMismatch(f"{address} runs another Ray or Python than this host: {reason}")
    return ClusterError(
        f"no Ray cluster could be joined at {address}: {reason}; start one there with `ray start --head`, "
        "or take `--runtime.address None` for one on this machine"
    )


def _check_address(address: str) -> None:
    """Asks once, since Ray would try for minutes, and a wrong token for 20 seconds without saying so."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=REACH_SECONDS).close()
        GcsClient(address=address)
    except AuthenticationError as error:
        raise ClusterError(
            f"{address} does not take this token: set RAY_AUTH_TOKEN_PATH to a copy of the file "
            "that the cluster was started with"
        ) from error
    except (OSError, ValueError, OverflowError, RayError) as error:
        raise _joining_error(address, str(error)) from error


def make_token(folder: Path) -> dict[str, str]:
    """Makes a token in a folder, unless the user's environment names one; returns what Ray is to be told."""
    if os.environ.get("RAY_AUTH_TOKEN") or os.environ.get("RAY_AUTH_TOKEN_PATH"):
        return {"RAY_AUTH_MODE": "token"}
    path = folder / "token"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        file.write(secrets.token_hex(32))
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(path)}


def _joining_token() -> dict[str, str]:
    """What Ray is to be told to join: the user's token, or the user's word that there is none."""
    if os.environ.get("RAY_AUTH_MODE") == "disabled":
        return {}
    named = os.environ.get("RAY_AUTH_TOKEN_PATH")
    if named and not Path(named).is_file():
        raise ClusterError(f"RAY_AUTH_TOKEN_PATH names {named}, which is not there")
    if not (named or os.environ.get("RAY_AUTH_TOKEN") or (Path.home() / ".ray/auth_token").is_file()):
        raise ClusterError(
            "a cluster asks for its token: copy the file that it was started with, "
            "and set RAY_AUTH_TOKEN_PATH to the copy"
        )
    return {"RAY_AUTH_MODE": "token"}


@contextlib.contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    """Sets variables that Ray and its processes read, for a while."""
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    _read_again()
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
        _read_again()


def _read_again() -> None:
    """Ray read its variables when it was imported, and keeps a token that it has used."""
    Config.initialize("")
    AuthenticationTokenLoader.instance().reset_cache()


@contextlib.contextmanager
def _only_loopback() -> Iterator[None]:
    """Ray read this variable too when it was imported; the processes that it starts will see it."""
    before = ray_constants.ENABLE_RAY_CLUSTER
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before


@cache
def versions() -> Versions:
    """Returns what this process runs."""
    digest = hashlib.sha256()
    root = Path(softcount.__file__).parent
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return Versions(version("softcount"), digest.hexdigest()[:12], ray.__version__, platform.python_version())


def _say_versions() -> Versions:
    return versions()


def _versions_by_node() -> dict[str, Versions]:
    """Asks every host that lives."""
    asked = ray.remote(_say_versions)
    answers = {
        f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']})": asked.options(
            num_cpus=0, scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        ).remote()
        for node in ray.nodes()  # type: ignore[no-untyped-call]
        if node["Alive"]
    }
    try:
        return dict(zip(answers, ray.get(list(answers.values()), timeout=60), strict=True))
    except (RayError, ImportError) as error:
        raise ClusterError(f"a host of the cluster cannot run softcount: {error}") from error
