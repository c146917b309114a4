"""All scenes on three emulated hosts: `PYTHONPATH=tests python -m hosts`; needs root."""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import ray
from chaos import books
from chaos.reckoning import faults_of
from hosts.netns import Hosts, reason_to_skip
from hosts.scenes import SCENES
from hosts.whole_run import run_through_two_faults

from softcount.measure.machine import machine
from softcount.store import write_atomically


def main():
    parser = argparse.ArgumentParser(prog="python -m hosts", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/ray/hosts.json"))
    scenes = {scene.__name__: scene for scene in (*SCENES, run_through_two_faults)}
    parser.add_argument("--only", nargs="*", default=list(scenes), choices=list(scenes))
    args = parser.parse_args()
    if reason := reason_to_skip():
        sys.exit(reason)
    started, found = time.monotonic(), {}
    with tempfile.TemporaryDirectory() as folder, Hosts(3, Path(folder) / "token") as hosts:
        hosts.start_ray()
        for name in args.only:
            found[name] = scenes[name](hosts, Path(folder) / name)
            print(name, json.dumps(found[name]), flush=True)
    document = {
        "command": f"PYTHONPATH=tests python -m hosts {' '.join(sys.argv[1:])}".strip(),
        "scenes": found,
        "target_s": 10,
        "seconds": time.monotonic() - started,
        "load": os.getloadavg(),
        "machine": f"{machine()}, Ray {ray.__version__}; three network namespaces, one kernel, one disk",
    }
    write_atomically(args.out, json.dumps(document, indent=1).encode())
    wrong = [name for name, scene in found.items() if faults_of(scene.get("reckoning", {}))]
    wrong += [
        fault for scene in found.values() if "books" in scene for fault in books.faults_of(scene["books"])
    ]
    if wrong:
        sys.exit(f"something was lost, doubled or paid wrongly: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
