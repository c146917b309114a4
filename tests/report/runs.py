"""Small runs to report on, and the data that a page carries."""

import json
import re
from dataclasses import replace

from launch.test_local import TINY

from softcount.runs.run import Run

CONFIG = replace(TINY, steps=900, report_every=100, evaluate_every=300, checkpoint_seconds=1e9)

TASKS = ["disco-maze:layout=1", "disco-maze:layout=2"]
TWO_TASKS = {
    "env": ",".join(TASKS),
    "env_options": {"size": 7, "observation": "palette"},
    "memory_per_task": True,
    "steps": 400,
}


def train(folder, **changes):
    run = Run.create(folder, replace(CONFIG, **changes))
    for _ in run.train():
        pass
    run.close()
    return folder


def data_of(page):
    """The JSON document inside a page."""
    text = page.read_text() if hasattr(page, "read_text") else page
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)[1])
