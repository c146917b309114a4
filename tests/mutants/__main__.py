"""Makes the code wrong, one line at a time, and fails if no test notices.

    PYTHONPATH=tests python -m mutants                 all of them
    PYTHONPATH=tests python -m mutants --tenth         a tenth that goes by the commit
    PYTHONPATH=tests python -m mutants --only memory roles/3    an area, a single one, or those of a file

Ends with 1 if a mutant survives, a snippet is gone, or a test that noticed one fails on the right code too.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from mutants.entries import EQUIVALENT, LISTS, ROOT, Mutant, problems, read, read_list
from mutants.judging import CRASHED, HUNG, KILLED, Court, Verdict
from softcount.measure.machine import machine

NOBODY, BY_COMMIT = -1, -2


def tenth_of_commit() -> int:
    """Returns which tenth the commit at hand tries: its hash modulo 10."""
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True)
    if asked.returncode != 0:
        sys.exit("no commit to go by; name the tenth, as in --tenth 3")
    return int(asked.stdout, 16) % 10


def chosen(mutants: Sequence[Mutant], tenth: int, only: Sequence[str] = ()) -> list[Mutant]:
    """Returns the mutants to run: of some areas, keys or files, or all; every tenth has some of each area."""
    picked = [x for x in mutants if not only or {x.area, x.key, x.file} & set(only)]
    return picked if tenth == NOBODY else picked[tenth::10]


def told(verdict: Verdict, done: int, num: int) -> str:
    """Returns the progress line of a verdict."""
    mark = "  " if verdict.is_dead else "!!"
    test = f" by {verdict.test}" if verdict.test else ""
    return f"{mark} {done:>3}/{num} {verdict.seconds:>5.1f} s  {verdict.mutant.key}: {verdict.outcome}{test}"


def as_record(verdict: Verdict) -> dict[str, object]:
    mutant = verdict.mutant
    return {
        "key": mutant.key,
        "file": mutant.file,
        "why": mutant.why,
        "outcome": verdict.outcome,
        "test": verdict.test,
        "seconds": verdict.seconds,
    }


def keep(path: Path, verdicts: Sequence[Verdict], seconds: float, num_at_once: int) -> None:
    """Writes the results of a run."""
    verdicts = sorted(verdicts, key=lambda x: (x.mutant.area, int(x.mutant.key.split("/")[1])))
    record = {
        "machine": machine(),
        "at_once": num_at_once,
        "seconds": round(seconds, 1),
        "num_mutants": len(verdicts),
        "num_dead": sum(x.is_dead for x in verdicts),
        "mutants": [as_record(x) for x in verdicts],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main() -> int:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--only", nargs="+", default=(), help="areas, keys (memory/7) or files")
    arguments.add_argument("--tenth", type=int, nargs="?", default=NOBODY, const=BY_COMMIT, help="0 to 9")
    arguments.add_argument("--at-once", type=int, default=os.cpu_count() or 1, help="how many run at once")
    arguments.add_argument("--limit", type=float, default=120.0, help="seconds after which one hangs")
    arguments.add_argument("--out", type=Path, help="where to keep the result as JSON")
    asked = arguments.parse_args()

    mutants, equivalent = read(), read_list(LISTS / f"{EQUIVALENT}.toml")
    wrong = problems([*mutants, *equivalent])
    print(*wrong, sep="\n", end="\n" if wrong else "")
    tenth = tenth_of_commit() if asked.tenth == BY_COMMIT else asked.tenth
    mutants = [x for x in chosen(mutants, tenth, asked.only) if x.problem() is None]
    which = "" if tenth == NOBODY else f" (tenth {tenth} of 0 to 9)"
    print(f"{len(mutants)} mutants{which}, {asked.at_once} at once", flush=True)

    started = time.monotonic()
    court = Court(asked.at_once, asked.limit)
    verdicts: list[Verdict] = []
    for verdict in court.judge(mutants):
        verdicts.append(verdict)
        print(told(verdict, len(verdicts), len(mutants)), flush=True)
    killers = sorted({x.test for x in verdicts if x.outcome == KILLED and x.test})
    liars = court.fails_when_right(killers) if killers else []
    court.close()
    seconds = time.monotonic() - started
    if asked.out is not None:
        keep(asked.out, verdicts, seconds, asked.at_once)
    return summarise(verdicts, liars, len(wrong), seconds)


def summarise(verdicts: Sequence[Verdict], liars: Sequence[str], num_wrong: int, seconds: float) -> int:
    """Says how it went; returns the exit code."""
    alive = [x for x in verdicts if not x.is_dead]
    for verdict in alive:
        mutant = verdict.mutant
        print(f"\n{mutant.key} {verdict.outcome}: {mutant.file}\n- {mutant.snippet}\n+ {mutant.replacement}")
        print(f"  {mutant.why}\n  expected to notice: {', '.join(mutant.killed_by)}")
    for test in liars:
        print(f"{test} fails on the right code too: what it noticed does not count")
    hung, crashed = (sum(x.outcome == outcome for x in verdicts) for outcome in (HUNG, CRASHED))
    print(
        f"{len(verdicts) - len(alive)} of {len(verdicts)} mutants are dead ({hung} hung, {crashed} crashed), "
        f"{num_wrong} entries do not fit the code; {seconds:.0f} s"
    )
    return 1 if alive or liars or num_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
