"""How a storm ends: what was found is written and said, and a fault of the program ends in an error."""

import json
import os
import sys

import ray

from softcount.measure.machine import machine
from softcount.store import write_atomically


def finish(module, out, summary, found, wrong):
    """Writes and prints what a storm found; exits with what is wrong, if anything is."""
    document = {
        "command": f"PYTHONPATH=tests python -m {module} {' '.join(sys.argv[1:])}".strip(),
        "summary": summary,
        **found,
        "load": os.getloadavg(),
        "machine": f"{machine()}, Ray {ray.__version__}",
    }
    write_atomically(out, json.dumps(document, indent=1).encode())
    print(json.dumps({**summary, **found.get("reckoning", {})}, indent=1))
    if summary.get("never_back"):
        wrong = [*wrong, "a role never came back"]
    if wrong:
        sys.exit(f"the storm broke something: {', '.join(wrong)}")
