"""The books of a run on Ray, from its folder alone: journal, checkpoint, memory and trainer must agree.

    PYTHONPATH=tests python -m chaos.books RUN

The journal must have been kept whole: `python -m chaos.kept train …` is `softcount train …` that keeps it.
And a row must be one for both: every row shown to the memory, in a world where nobody is ever nowhere.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from chaos.reckoning import digest
from softcount import checkpoint
from softcount.launch.build import build_inference, look_at_world, plan_of
from softcount.launch.ray import free, once
from softcount.runs.run import read_config

WRONG_UNLESS_0 = ("doubled", "gaps", "rows_of_the_trainer_that_the_memory_never_counted")


def books_of(folder, rows=None):
    """Compares the last checkpoint with the journal; nothing may have been counted since.

    `rows` are those of the trainer since its state was loaded, by actor and for each environment.
    """
    config, saved = read_config(folder), checkpoint.read(folder / "checkpoints")
    if config.terminal_observations != "paid" or config.env_options.get("lethal", True):
        raise ValueError("rows cannot be compared; expected --terminal-observations paid and lethal=false")
    specs, _ = look_at_world(config)
    replayed = plan_of(config, specs, build_inference(config, specs).dim).build()
    stamps, since_load = [], Counter()
    for record, _ in once.replay(folder / free.MEMORY_FOLDER, replayed):
        request = record.request
        stamps.append((request.actor, request.incarnation, request.sequence))
        if request.kind == "load":
            since_load.clear()
        since_load[request.actor] += request.kind == "observe"
    missing = [max(0, num - since_load[actor]) for actor, num in (rows or {}).items()]
    counted = rows_counted(saved.parts["memory"])
    trained = int(np.sum(saved.parts["loop"]["coverage"]["visits"]))  # a row is a visit of its place
    acted = saved.parts["replay"]["replay"]["counters"]["num_acted"]
    return {
        "requests_counted": len(stamps),
        "doubled": len(stamps) - len(set(stamps)),
        "gaps": gaps(stamps),
        "state_is_the_replayed_journal": digest(replayed.state_dict()) == digest(saved.parts["memory"]),
        "rows_counted": counted,
        "rows_of_the_trainer": trained,
        "rows_of_the_trainer_that_the_memory_never_counted": max(0, trained - counted) + sum(missing),
        "rows_counted_and_lost_with_a_killed_actor": max(0, counted - trained),
        "steps": saved.step,
        "is_the_replays_number_of_steps": acted == saved.step,
    }


def rows_counted(memory):
    """How many rows a RECODE memory was shown, from its part of a checkpoint."""
    if isinstance(memory, dict):
        found = [x if name == "num_observed" else rows_counted(x) for name, x in memory.items()]
        return int(sum(found))
    return 0


def gaps(stamps):
    """How many numbers are missing within the lives of actors."""
    lives = {}
    for actor, incarnation, sequence in stamps:
        lives.setdefault((actor, incarnation), []).append(sequence)
    return sum(len(set(range(max(numbers) + 1)) - set(numbers)) for numbers in lives.values())


def faults_of(found):
    """What is wrong; nothing, if all is well."""
    wrong = [name for name in WRONG_UNLESS_0 if found[name] != 0]
    return wrong + [name for name, x in found.items() if name.startswith(("state_is", "is_the")) and not x]


if __name__ == "__main__":
    found = books_of(Path(sys.argv[1]))
    print(json.dumps(found, indent=1))
    sys.exit(", ".join(faults_of(found)))
