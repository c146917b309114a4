"""A new agent on an embedding that another run has learned, frozen (the paper's Fig. 12).

    python -m experiments.agent.frozen_agent SOURCE TARGET [--recode.memory.count_discount 1]

The new run has the source's configuration with an embedding learning rate of 0 and the latest
parameters acting, so that everything else, `softcount resume` too, works as for any other run.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from softcount import checkpoint
from softcount.config import RunConfig, with_fields
from softcount.runs.folder import CHECKPOINTS
from softcount.runs.run import Run, read_config
from softcount.tensors import load_module


def frozen_config(
    source: RunConfig, *, count_discount: float | None = None, steps: int | None = None
) -> RunConfig:
    """Returns the source's configuration with learning of the embedding switched off."""
    changes: dict[str, Any] = {"trainer.optimiser.learning_rate": 0.0, "trainer.acting": "latest"}
    if count_discount is not None:
        changes["recode.memory.count_discount"] = count_discount
    if steps is not None:
        changes["steps"] = steps
    return with_fields(source, changes)


def create(source: Path, target: Path, config: RunConfig) -> Run:
    """Creates a run whose representation is the one that acts in the source's last checkpoint."""
    state = checkpoint.read(source / CHECKPOINTS).parts["inference"]["representation"]
    if state is None:
        raise ValueError(f"{source} has no representation to freeze")
    run = Run.create(target, config)
    learner = run.loop.roles.learner
    assert learner.trainer is not None
    load_module(learner.trainer.representation, state)
    run.loop.roles.inference.load(learner.parameters())
    run.save()
    return run


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument("--recode.memory.count_discount", type=float, dest="count_discount")
    parser.add_argument("--steps", type=int, default=250_000_000)
    arguments = parser.parse_args()
    config = frozen_config(
        read_config(arguments.source), count_discount=arguments.count_discount, steps=arguments.steps
    )
    run = create(arguments.source, arguments.target, config)
    for step, metrics in run.train():
        print(f"{step:,} steps, return {metrics.get('charts/episodic_return')}", flush=True)
    run.close()


if __name__ == "__main__":
    main()
