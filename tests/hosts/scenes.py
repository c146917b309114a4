"""What is done to three hosts, and what must come of it; each returns the reckoning and how long it took."""

import json
import subprocess
import sys
import threading
import time

from hosts.netns import PORT, Hosts

JOIN = """
import sys
from softcount.launch.ray.cluster import ClusterError, connect
try:
    with connect(sys.argv[1]) as cluster:
        print("joined")
except ClusterError as error:
    print(error)
"""


class Play:
    """A scenario that runs on the first host, and what it has said so far."""

    def __init__(self, hosts: Hosts, folder, *options):
        folder.mkdir(parents=True)
        command = [
            sys.executable,
            "-m",
            "hosts.scenario",
            f"{hosts.address(1)}:{PORT}",
            str(folder),
            *options,
        ]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = hosts.run(1, *command, text=True, **pipes)
        self.said, self.is_new = [], threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for line in self.process.stdout:
            if line.startswith("{"):  # Ray says things too
                with self.is_new:
                    self.said.append({**json.loads(line), "heard": time.monotonic()})
                    self.is_new.notify_all()

    def until(self, is_it, seconds=120.0):
        """Waits for something to be said from now on; returns it, and after how many seconds."""
        with self.is_new:
            start, begun = len(self.said), time.monotonic()
            while True:
                for event in self.said[start:]:
                    if is_it(event):
                        return event, round(event["heard"] - begun, 2)
                    start += 1
                left = begun + seconds - time.monotonic()
                if left <= 0 or not self.is_new.wait(left):
                    raise TimeoutError(f"not within {seconds} seconds; last said: {self.said[-3:]}")

    def counts(self, more=300):
        """Waits until the memory has counted some more batches."""
        base = self.until(lambda e: e["what"] == "memory")[0]["position"]
        return self.until(lambda e: e["what"] == "memory" and e["position"] >= base + more)

    def stop(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        found, _ = self.until(lambda e: e["what"] == "reckoning", 300)
        assert self.process.wait(60) == 0
        return {name: value for name, value in found.items() if name not in ("what", "heard")}


def is_client(actor):
    return lambda event: event["what"] == "client" and event["actor"] == actor


def is_later(epoch):
    return lambda event: event["what"] == "memory" and event["epoch"] > epoch


def cut_off_client(hosts, folder):
    """A client's host is cut off and comes back: another host takes its place, and it can join anew."""
    play = Play(hosts, folder)
    play.until(is_client(1))
    play.counts()
    hosts.cut(3)
    event, seconds = play.until(is_client(1))
    play.counts()
    hosts.heal(3)
    play.counts()
    reckoning = play.stop()
    hosts.rays[3].wait(60)  # what Ray had there has ended itself
    hosts.start_ray(only=3)
    return {"replaced_after_s": seconds, "on": event["node"], "reckoning": reckoning}


def cut_off_memory(hosts, folder):
    """The memory's own host is cut off, with a client beside it: another memory takes over the journal."""
    return _without_memory(hosts, folder, hosts.cut, hosts.heal)


def killed_raylet(hosts, folder):
    """Ray's own process on the memory's host is killed."""
    return _without_memory(hosts, folder, hosts.kill_raylet, lambda host: None)


def _without_memory(hosts, folder, break_host, heal_host):
    play = Play(hosts, folder, "--may-move")
    host = play.until(lambda e: e["what"] == "memory is at")[0]["host"]
    play.until(is_client(0))  # the one beside it
    play.counts()
    epoch = play.until(lambda e: e["what"] == "memory")[0]["epoch"]
    break_host(host)
    _, seconds = play.until(is_later(epoch))
    play.counts()
    heal_host(host)
    play.counts()
    reckoning = play.stop()
    hosts.rays[host].wait(60)
    hosts.start_ray(only=host)
    return {"answered_after_s": seconds, "reckoning": reckoning}


def wrong_token(hosts, folder):
    """Somebody on another host has an address and no token, or a wrong one."""
    folder.mkdir(parents=True)
    wrong = folder / "token"
    wrong.write_text("0" * 64)
    asked = [sys.executable, "-c", JOIN, f"{hosts.address(1)}:{PORT}"]
    said = {}
    for name, path in (("wrong", wrong), ("right", hosts.token)):
        process = hosts.run(
            2,
            *asked,
            environment={"RAY_AUTH_TOKEN_PATH": str(path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        said[name] = process.communicate(timeout=120)[0].strip()
    return said


SCENES = (wrong_token, cut_off_client, cut_off_memory, killed_raylet)
