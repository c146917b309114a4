"""`make chaos`: a long storm over memory and clients; fails if anything was lost, doubled or paid wrongly."""

import argparse
import random
import tempfile
from pathlib import Path

import numpy as np

from chaos.ending import finish
from chaos.memory_storm import Settings, ride_out
from chaos.reckoning import faults_of
from chaos.storm import FAULTS
from softcount.launch.ray.cluster import connect

FIVE = (
    ("kill", "memory"),
    ("kill", "client"),
    ("full disk", "memory"),
    ("hang", "memory"),
    ("pause", "client"),
)
BACK_S = 4.0


def faults_for(kills, seed):
    """So many kills, two of three of the memory, and hangs, pauses and full disks between them."""
    num_memory = 2 * kills // 3
    faults = [("kill", "memory")] * num_memory + [("kill", "client")] * (kills - num_memory)
    faults += [("hang", "memory")] * (kills // 8) + [("pause", "client")] * (kills // 8)
    faults += [("full disk", "memory")] * (kills // 12) + [("kill on a full disk", "memory")] * (kills // 12)
    random.Random(seed).shuffle(faults)
    return tuple(faults)


def summary(found):
    """What to look at first."""
    back = [f["back_after_s"] for f in found["faults"] if (f["fault"], f["role"]) == ("kill", "memory")]
    return {
        "kills": sum(fault["fault"] == "kill" for fault in found["faults"]),
        "faults": {kind: sum(fault["fault"] == kind for fault in found["faults"]) for kind in FAULTS},
        "never_back": sum(fault["back_after_s"] is None for fault in found["faults"]),
        "memory_back_after_s": {
            "median": float(np.median(back)),
            "p90": float(np.quantile(back, 0.9)),
            "longest": max(back),
            "target": BACK_S,
            "within_target": sum(seconds <= BACK_S for seconds in back),
            "of": len(back),
        },
    }


def main():
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--embeddings", type=int, default=1_000_000, help="at least so many are sent")
    parser.add_argument("--kills", type=int, default=54, help="kill -9, of the memory and of clients")
    parser.add_argument("--five", action="store_true", help="five faults, one of each kind, for the timeline")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/ray/chaos.json"))
    args = parser.parse_args()
    faults = FIVE if args.five else faults_for(args.kills, args.seed)
    settings = Settings(
        embeddings=args.embeddings,
        faults=faults,
        seed=args.seed,
        pause_s=6.0 if args.five else 1.0,
        calm_s=6.0 if args.five else 0.0,
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        connect(num_cpus=2, object_store_bytes=200 * 2**20) as cluster,
    ):
        found = ride_out(settings, cluster, Path(folder))
    if not args.five:  # the timeline needs every sign of life; here what was done is enough
        found["events"] = [event for event in found["events"] if event["what"] != "memory"]
    finish("chaos", args.out, summary(found), found, faults_of(found["reckoning"]))


if __name__ == "__main__":
    main()
