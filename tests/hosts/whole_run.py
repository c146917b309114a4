"""A whole training run over three hosts: one is cut off, one loses its Ray; the run goes on, its books agree.

The run is `softcount train … --runtime.address HOST:PORT` on the first host, which has the folder. What is
known of its roles comes from the status that it writes, and on which host each is from its process.
"""

import json
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from chaos.books import books_of
from hosts.netns import PORT

OPTIONS = (
    "--env-options size=7 lethal=false --terminal-observations paid --num-envs 12 --steps 1000000000 "
    "--report-every 2000 --evaluate-every 0"
)
RUNTIME = "--runtime.num-actors 3 --runtime.call-timeout-s 5 --runtime.hang-seconds 30"
PATIENCE_S = 240.0
ALL_HAVE_JOINED = """
import sys
from hosts.scenario import wait_for
from softcount.launch.ray.cluster import connect
with connect(sys.argv[1]):
    wait_for({1, 2, 3})
"""


class Training:
    """The command on the first host, and what its status says."""

    def __init__(self, hosts, folder):
        self.hosts, self.folder = hosts, folder
        where = ["--runtime.kind", "ray", "--runtime.address", f"{hosts.address(1)}:{PORT}"]
        words = ["train", "MEME-RECODE-AP", "--run", str(folder), *OPTIONS.split(), *RUNTIME.split(), *where]
        log = open(f"{folder}.log", "w")  # noqa: SIM115  the process has it until its end
        quiet = {"stdout": subprocess.DEVNULL, "stderr": log}
        self.process = hosts.run(1, sys.executable, "-m", "chaos.kept", *words, **quiet)

    def _last_words(self):
        return Path(f"{self.folder}.log").read_text()[-2000:]

    def status(self):
        with suppress(OSError, ValueError):
            return json.loads((self.folder / "status.json").read_text())
        return None

    def roles(self):
        return {role["name"]: role for role in (self.status() or {"roles": []})["roles"]}

    def until(self, is_so):
        """Waits for something; returns it, and after how many seconds."""
        begun = time.monotonic()
        while not (found := is_so()):
            assert self.process.poll() is None, f"the run ended by itself: {self._last_words()}"
            assert time.monotonic() - begun < PATIENCE_S, f"not within {PATIENCE_S:g} s: {self.roles()}"
            time.sleep(0.1)
        return found, round(time.monotonic() - begun, 2)

    def goes_on(self, more=1000):
        """Waits until it has taken some more steps."""
        goal = self.until(self.status)[0]["step"] + more
        self.until(lambda: self.status()["step"] > goal)

    def names_on(self, host):
        """The roles whose processes live on a host."""
        pids = set(self.hosts.pids(host))
        return [name for name, role in self.roles().items() if role["pid"] in pids]

    def some_host(self):
        """One without the run's folder that an actor lives on: Ray decides which."""
        hosts = [host for host in (3, 2) if any(n.startswith("actor") for n in self.names_on(host))]
        assert hosts, "all actors live on the first host"
        return hosts[0]

    def strike(self, host, hit):
        """Does something to a host; returns after how many seconds all its roles work elsewhere."""
        struck = self.names_on(host)
        before = self.roles()
        hit(host)

        def is_replaced():
            now = self.roles()
            return all(now[n]["restarts"] > before[n]["restarts"] and not now[n]["is_away"] for n in struck)

        _, seconds = self.until(is_replaced)
        return {"roles": struck, "replaced_after_s": seconds, "step": self.status()["step"]}

    def stop(self):
        """Ends the run as Ctrl-C does; it takes a checkpoint."""
        for pid in self.hosts.pids(1):
            with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
                if b"chaos.kept" in file.read():
                    subprocess.run(["kill", f"-{signal.SIGINT.value}", str(pid)], check=False)
        self.process.wait(120)


def run_through_two_faults(hosts, folder):
    """A host is cut off and comes back; then Ray's own process on a host is killed."""
    folder.mkdir(parents=True)
    address = f"{hosts.address(1)}:{PORT}"
    assert hosts.run(1, sys.executable, "-c", ALL_HAVE_JOINED, address).wait(120) == 0
    training = Training(hosts, folder / "run")
    training.until(lambda: len(training.roles()) and not any(r["is_away"] for r in training.roles().values()))
    training.goes_on()
    found_on = [host for host in hosts.hosts() if any("actor" in n for n in training.names_on(host))]
    assert found_on == [1, 2, 3], f"actors live on {found_on}"
    first = training.some_host()
    found = {"cut_off": training.strike(first, hosts.cut)}
    training.goes_on()
    hosts.heal(first)
    hosts.rays[first].wait(60)  # what Ray had there has ended itself
    hosts.start_ray(only=first)
    training.goes_on()
    second = training.some_host()
    found["killed_raylet"] = training.strike(second, hosts.kill_raylet)
    training.goes_on()
    restarts = {name: role["restarts"] for name, role in training.roles().items()}
    training.stop()
    hosts.rays[second].wait(60)
    hosts.start_ray(only=second)
    return {**found, "restarts": restarts, "books": books_of(folder / "run")}
