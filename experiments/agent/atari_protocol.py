"""Montezuma's Revenge: from the `laptop-atari` preset to the paper's protocol, one step after the other.

Each run has the changes of all before it; the agent and its memory stay the preset's. Lives go on after a
death in the preset already. The first step is a run of `atari_changes`, and both figures share it.
"""

from __future__ import annotations

from dataclasses import replace

from experiments.agent import atari
from experiments.agent.atari_changes import OPTIONS, STEPS, key_of
from experiments.agent.atari_runs import FOLDER, atari_config, job
from experiments.figure import Figure
from experiments.jobs import Job
from softcount.config import RunConfig, with_fields

SEED = 1
STEPWISE = {
    "all 18 actions": OPTIONS["all 18 actions"],
    "and deaths shown": OPTIONS["deaths shown"],
    "and no clipping": OPTIONS["no clipping"],
    "and games of 27,000 steps": {"max_steps": 27_000, "limit_is_terminal": True},
    "and 210 by 160, one frame": {"size": None, "stack": 1},
}
"""Options of the environment that each step sets, beside those of the steps before it."""
LARGE = {"meme.replay.max_bytes": 6 * 2**30}
"""Room for as many traces of large frames."""


def config_of(step: str) -> RunConfig:
    """The preset with the changes of this step and of all before it."""
    config = replace(atari_config("MEME-RECODE-FRAME", SEED), steps=STEPS)
    for name, options in STEPWISE.items():
        config = replace(config, env_options={**config.env_options, **options})
        if "size" in options:
            config = with_fields(config, LARGE)
        if name == step:
            return config
    raise ValueError(f"no step is called {step!r}")


def jobs() -> list[Job]:
    """A run a step."""
    return [job(key_of(step), config_of(step)) for step in STEPWISE]


FIGURE = Figure(
    name="atari_protocol",
    paper="App. “Experimental setup”: its protocol, with our small agent",
    claim="What each step from our setting to the paper's protocol costs.",
    laptop_cost="five runs of 400,000 steps or 1,800 CPU seconds",
    paper_cost="not in the paper",
    folder=FOLDER / "changes",
    jobs=jobs,
    plot=atari.plot,
    describe=atari.describe,
)
