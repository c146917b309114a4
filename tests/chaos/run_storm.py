"""A storm over a whole training run on Ray: every role is killed and hung at random times.

    PYTHONPATH=tests python -m chaos.run_storm --kills 50      # writes results/ray/run_chaos.json

The run must go on to its end. Then the books are compared: the memory's state is that of its journal
replayed, no stamp was counted twice, and every row that the trainer has was counted by the memory.
"""

import argparse
import random
import tempfile
import threading
import time
import warnings
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest import mock

import numpy as np
import ray

from chaos.books import books_of, faults_of
from chaos.ending import finish
from chaos.reckoning import digest
from chaos.storm import Log, Role, Storm
from softcount import checkpoint
from softcount.config import RuntimeConfig
from softcount.launch.ray import free, once
from softcount.launch.ray.cluster import connect
from softcount.presets import LAPTOP
from softcount.runs.run import Run

TORCH_BACK_S, MEMORY_BACK_S = 10.0, 4.0
RUNTIME = RuntimeConfig(kind="ray", num_actors=2, hang_seconds=8.0, call_timeout_s=5.0, snapshot_batches=300)


def faults_for(names, kills, hangs, seed):
    """So many of each, over all roles in turn, shuffled; the trainer's are rarer, since all go back."""
    rng = random.Random(seed)
    often = [name for name in names if name != "trainer"]
    faults = [("kill", "trainer" if i % 12 == 11 else often[i % len(often)]) for i in range(kills)]
    faults += [("hang", often[i % len(often)]) for i in range(hangs)]
    rng.shuffle(faults)
    return faults


def strike_all(run, faults, log, over, pause_s, seed):
    """Hits one role after the other while the run trains; in a thread of its own."""
    rng, storm = random.Random(seed), Storm(log, patience_s=120.0)
    roles = run.loop.supervisor.roles
    try:
        for fault, name in faults:
            time.sleep(rng.uniform(0.5, 1.5) * pause_s)
            watched = roles[name]
            storm.strike(fault, Role(name, lambda w=watched: w.pid, lambda w=watched: not w.is_away))
    finally:
        over.set()


def ride_out(config, cluster, folder, faults_of_roles, *, pause_s=6.0, seed=0):
    """Trains through a storm; returns the reckoning, the faults and what the run did."""
    log, over = Log(), threading.Event()
    keep = mock.patch.object(free.once, "OnceConfig", partial(once.OnceConfig, keep_history=True))
    with keep, mock.patch.object(free, "connect_for", return_value=nullcontext(cluster)):
        run = Run.create(folder, config)
        faults = faults_of_roles(list(run.loop.supervisor.roles))
        arguments = (run, faults, log, over, pause_s, seed)
        thread = threading.Thread(target=strike_all, args=arguments, daemon=True)
        thread.start()
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            for step, metrics in run.train(over.is_set):
                log.add("report", step=step, steps_per_second=round(metrics["charts/SPS"]))
        thread.join()
        found = reckon(run, folder)
        found["went_back"] = sum("all roles go back" in str(warning.message) for warning in said)
        restarts = {name: role.restarts for name, role in run.loop.supervisor.roles.items()}
        run.close()
    struck = [event for event in log.events if event["what"] == "fault"]
    return {
        "reckoning": found,
        "faults": struck,
        "restarts": restarts,
        "seconds": log.now(),
        "events": log.events,
    }


def reckon(run, folder):
    """The books after the last checkpoint; the live memory must still be as it was saved."""
    rows = {n: ray.get(run.loop.trainer.num_rows.remote(n)) for n in range(len(run.loop.actors))}
    saved = checkpoint.read(folder / "checkpoints").parts["memory"]
    is_same = digest(run.loop.memory.state_dict()) == digest(saved)
    return {**books_of(folder, rows), "state_is_that_of_the_checkpoint": is_same}


def summary(found):
    """How soon each kind of role was back after a kill."""
    back = {}
    for fault in found["faults"]:
        if fault["fault"] == "kill":
            back.setdefault(fault["role"].split()[0], []).append(fault["back_after_s"])
    return {
        "kills": sum(fault["fault"] == "kill" for fault in found["faults"]),
        "hangs": sum(fault["fault"] == "hang" for fault in found["faults"]),
        "never_back": sum(fault["back_after_s"] is None for fault in found["faults"]),
        "back_after_s": {
            role: {"median": float(np.median(times)), "longest": float(np.max(times)), "of": len(times)}
            for role, times in ((role, [x for x in xs if x is not None]) for role, xs in back.items())
            if times
        },
    }


def main():
    parser = argparse.ArgumentParser(prog="python -m chaos.run_storm", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--hangs", type=int, default=6)
    parser.add_argument("--pause", type=float, default=6.0, help="seconds between two faults, on average")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/ray/run_chaos.json"))
    args = parser.parse_args()
    config = replace(
        LAPTOP,
        runtime=RUNTIME,
        env_options={**LAPTOP.env_options, "lethal": False},
        terminal_observations="paid",  # every row is one for the memory and for the trainer
        steps=10**9,
        report_every=20_000,
        evaluate_every=100_000,
        checkpoint_seconds=20.0,
    )
    choose = partial(faults_for, kills=args.kills, hangs=args.hangs, seed=args.seed)
    with tempfile.TemporaryDirectory() as folder, connect() as cluster:
        path = Path(folder) / "run"
        found = ride_out(config, cluster, path, choose, pause_s=args.pause, seed=args.seed)
    finish("chaos.run_storm", args.out, summary(found), found, faults_of(found["reckoning"]))


if __name__ == "__main__":
    main()
