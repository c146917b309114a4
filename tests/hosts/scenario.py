"""What runs on the first host: a memory and clients on hosts by choice, until it is told to stop.

    python -m hosts.scenario ADDRESS FOLDER [--may-move]

Says in JSON lines who is where. A line on its input ends it; its last line is the reckoning.
"""

import argparse
import json
import sys
import threading
import time
from pathlib import Path

import ray
from chaos.memory_storm import Clients, Settings, Supervised, plan_of
from chaos.reckoning import reckon
from chaos.storm import Log, Watch
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from softcount.launch.ray import once
from softcount.launch.ray.cluster import connect
from softcount.launch.ray.memory_host import MemoryHost, RayCalls
from softcount.launch.ray.once import OnceConfig


def say(**fields):
    print(json.dumps(fields), flush=True)


def wait_for(hosts):
    """Node ids by host, when all have joined."""
    while True:
        alive = [node for node in ray.nodes() if node["Alive"]]
        found = {int(node["NodeManagerAddress"].rpartition(".")[2]): node["NodeID"] for node in alive}
        if hosts <= found.keys():
            return found
        time.sleep(0.2)


class Told(Log):
    """A log that is said as well."""

    def add(self, what, **fields):
        entry = super().add(what, **fields)
        say(**entry)
        return entry


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--may-move", action="store_true", help="the memory lives on host 2 or 3, not on 1")
    args = parser.parse_args()
    settings = Settings(embeddings=1, clients=2, rows=16, atoms=500)
    with connect(args.address) as cluster:
        nodes = wait_for({1, 2, 3})
        say(what="joined", hosts=sorted(nodes))
        plan, log = plan_of(settings), Told()
        once.found(args.folder / "memory", plan.build())
        pinned = {"scheduling_strategy": NodeAffinitySchedulingStrategy(nodes[1], soft=False)}
        memory = ray.remote(MemoryHost).options(
            name="memory",
            namespace=cluster.namespace,
            max_restarts=-1,
            max_task_retries=0,
            num_cpus=0,
            **({"resources": {"movable": 0.1}} if args.may_move else pinned),
        )
        config = OnceConfig(snapshot_batches=500, keep_history=True)
        handle = memory.remote(plan, str(args.folder / "memory"), config)
        ray.get(handle.ping.remote())
        at = int(ray._private.state.actors(handle._actor_id.hex())["Address"]["IPAddress"].rpartition(".")[2])
        say(what="memory is at", host=at)
        watched = Supervised(handle, log, may_kill=False)
        clients = Clients(settings, RayCalls(cluster.namespace, "memory"), args.folder, log)
        clients.nodes = dict(enumerate((nodes[2], nodes[3]) if at < 3 else (nodes[3], nodes[2])))
        watch = Watch(watched.look, log, "memory", 0.2)
        clients.start()
        watch.start()
        threading.Thread(target=lambda: (sys.stdin.readline(), clients.is_calm.set()), daemon=True).start()
        for thread in clients.threads:
            thread.join()
        watch.stop()
        live = ray.get(handle.ask.remote("state_dict"), timeout=60)
        found = reckon(args.folder / "memory", args.folder, range(2), 16, plan, live)
        say(what="reckoning", **found)


if __name__ == "__main__":
    main()
