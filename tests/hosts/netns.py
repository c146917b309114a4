"""Several hosts on one machine: network namespaces joined by a bridge, each with its own Ray.

    with Hosts(3) as hosts:
        hosts.start_ray()
        hosts.cut(3)          # no packet reaches or leaves the third host
        hosts.heal(3)

The bridge lives in a namespace of its own, so that the machine's network is not touched, and the addresses
exist only inside. Each host has its own folder for Ray's sockets; the rest of the disk is shared. Needs root.
What is started inside is ended with it, and nothing else.
"""

import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

RAY_FOLDER = "/tmp/softcount-hosts"
PORT = 6379
FAST = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
}


def reason_to_skip():
    """Why there can be no hosts here; '' if there can."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if not (shutil.which("ip") and shutil.which("nsenter")):
        return "network namespaces need the commands ip and nsenter"
    name = f"sc-try-{os.getpid()}"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if tried.returncode:
        return f"network namespaces cannot be made here: {tried.stderr.strip()}"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return ""


def _ip(*arguments):
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=30)


class Hosts:
    """Hosts 1 to `num`; the first is the head."""

    def __init__(self, num, token):
        self.num, self.token = num, Path(token)
        self.id = f"sc{os.getpid() % 100_000}"
        self.switch = f"{self.id}-switch"
        self.keepers, self.rays, self.others = {}, {}, []

    def __enter__(self):
        self.token.write_text(secrets.token_hex(32))
        self.token.chmod(0o600)
        Path(RAY_FOLDER).mkdir(exist_ok=True)
        try:
            _ip("netns", "add", self.switch)
            _ip("-n", self.switch, "link", "add", "bridge", "type", "bridge")
            _ip("-n", self.switch, "link", "set", "bridge", "up")
            for host in self.hosts():
                self._add(host)
        except BaseException:
            self.__exit__()
            raise
        return self

    def hosts(self):
        return range(1, self.num + 1)

    def address(self, host):
        return f"10.77.0.{host}"

    def name(self, host):
        return f"{self.id}-host{host}"

    def _add(self, host):
        name, port = self.name(host), f"port{host}"
        _ip("netns", "add", name)
        _ip("link", "add", port, "netns", self.switch, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("-n", self.switch, "link", "set", port, "master", "bridge", "up")
        _ip("-n", name, "addr", "add", f"{self.address(host)}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            _ip("-n", name, "link", "set", device, "up")
        inside = f"mount -t tmpfs tmpfs {RAY_FOLDER} && echo ready && exec sleep infinity"
        keeper = subprocess.Popen(
            ["ip", "netns", "exec", name, "sh", "-c", inside], stdout=subprocess.PIPE, text=True
        )
        self.keepers[host] = keeper
        assert keeper.stdout.readline() == "ready\n"

    def run(self, host, *command, environment=None, **options):
        """Starts a program on a host, with the cluster's token."""
        inside = ["nsenter", "-t", str(self.keepers[host].pid), "-m", "-n", "--", *command]
        auth = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(self.token)}
        tests = {"PYTHONPATH": str(Path(__file__).parents[1])}
        variables = {**os.environ, **tests, **auth, **FAST, **(environment or {})}
        process = subprocess.Popen(inside, env=variables, **options)
        self.others.append(process)
        return process

    def start_ray(self, only=None):
        """Starts Ray on every host, or on one, as its user would."""
        for host in [only] if only else self.hosts():
            where = ["--head", f"--port={PORT}", f"--temp-dir={RAY_FOLDER}", "--include-dashboard=false"]
            if host != 1:
                where = [f"--address={self.address(1)}:{PORT}", '--resources={"movable": 1}']
            self.rays[host] = self.run(
                host,
                str(Path(sys.executable).parent / "ray"),
                "start",
                *where,
                f"--node-ip-address={self.address(host)}",
                "--num-cpus=2",
                f"--object-store-memory={100 * 2**20}",
                "--disable-usage-stats",
                "--block",
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            if host == 1:
                self._wait_for_head()

    def _wait_for_head(self):
        code = f"import socket; socket.create_connection(('{self.address(1)}', {PORT}), 1)"
        for _ in range(90):
            tried = self.run(1, sys.executable, "-c", code, stderr=subprocess.DEVNULL)
            if tried.wait() == 0:
                return
            time.sleep(0.5)
        raise TimeoutError("the head of the cluster did not start")

    def cut(self, host):
        _ip("-n", self.switch, "link", "set", f"port{host}", "down")

    def heal(self, host):
        _ip("-n", self.switch, "link", "set", f"port{host}", "up")

    def pids(self, host):
        """Processes that live on a host."""
        found = subprocess.run(["ip", "netns", "pids", self.name(host)], capture_output=True, text=True)
        return [int(pid) for pid in found.stdout.split()]

    def kill_raylet(self, host):
        """`kill -9` of the process that Ray has on every host."""
        for pid in self.pids(host):
            with suppress(OSError):
                if Path(f"/proc/{pid}/comm").read_text().strip() == "raylet":
                    os.kill(pid, signal.SIGKILL)
                    return
        raise LookupError(f"host {host} has no raylet")

    def __exit__(self, *_):
        for host in self.hosts():
            for _ in range(3):  # children may be born meanwhile
                for pid in self.pids(host):
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                time.sleep(0.1)
        for process in (*self.others, *self.keepers.values()):
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
        for name in (*map(self.name, self.hosts()), self.switch):
            subprocess.run(["ip", "netns", "del", name], capture_output=True)
        with suppress(OSError):
            Path(RAY_FOLDER).rmdir()
