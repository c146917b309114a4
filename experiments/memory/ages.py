"""How old clusters are against the length of an episode (Figs. 3, 14).

`ages` reads trained agents in small mazes. `ages_stream` runs the memory alone with the constants of the
Atari table (|M| = 5·10⁴, η = 0.05, γ = 0.999 shared by 64 actors), full from the start, for 4·10⁶
embeddings of 64 walkers in a 4-dimensional world; an episode lasts 1000 steps, in which the fleet sends
64,000 embeddings. Ages are in embeddings of the whole fleet; of the atoms that were there at the start
only their share is told, as their ages were made up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments.agent.bonuses import jobs as bonus_jobs
from experiments.agent.maze_runs import FOLDER
from experiments.drawing import BONUS_COLOURS, COLOURS, WIDTH, legend_beside, new_figure, steps_below
from experiments.figure import Figure
from experiments.jobs import RESULTS, SEEDS, Job, Row
from experiments.memory.streams import EPISODE, filled_state, make_stream
from softcount.memory import RecodeConfig, RecodeMemory

NUM_WALKERS = 64
NUM_EMBEDDINGS = 4_000_000


def measure_stream(
    seed: int, num_embeddings: int = NUM_EMBEDDINGS, config: RecodeConfig | None = None
) -> dict[str, Any]:
    """Feeds the stream to a memory with the table's constants; returns how old the atoms born in it are."""
    memory = RecodeMemory(config or RecodeConfig(), seed=seed)
    stream = make_stream("walk4", memory.config.dim, num_walkers=NUM_WALKERS, seed=seed)
    memory.load_state_dict(filled_state(memory.config, stream, seed=seed))
    for _, batch in zip(range(num_embeddings // NUM_WALKERS), stream):
        memory.observe(batch)
    ages = memory.ages[memory.ages <= num_embeddings]
    numbers, edges = np.histogram(ages, bins=60, range=(0, num_embeddings))
    return {
        "episode": EPISODE * NUM_WALKERS,
        "atoms": len(memory),
        "replaced": len(ages) / len(memory),
        "percentiles": np.percentile(ages, (5, 25, 50, 75, 95)).tolist(),
        "older_than_an_episode": float((ages > EPISODE * NUM_WALKERS).mean()),
        "histogram": [numbers.tolist(), edges.tolist()],
    }


def episode_of(row: Row) -> float:
    """Returns how many embeddings a fleet sends during a mean episode at the end of a run."""
    lengths = [s["episodic_length"] for s in row["snapshots"] if s["episodic_length"]]
    return float(np.mean(lengths[-5:]) * row["config"]["num_envs"])


def plot(rows: Sequence[Row]) -> Any:
    """Histograms of ages in the memories of trained agents."""
    figure = new_figure(WIDTH, 3.2)
    for axes, row in zip(np.atleast_1d(figure.subplots(1, len(rows), sharey=True)), rows, strict=True):
        axes.hist(row["ages"], bins=40, color=BONUS_COLOURS["RECODE"])
        axes.axvline(episode_of(row), color=COLOURS[1], label="a mean episode of all actors")
        axes.set_title(f"seed {row['seed']}", fontsize=10)
        steps_below(axes, "age (embeddings)")
    figure.axes[0].set_ylabel("atoms")
    legend_beside(figure)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    lines = []
    for row in rows:
        ages, episode = np.array(row["ages"]), episode_of(row)
        lines.append(
            f"seed {row['seed']}: {(ages > episode).mean():.0%} of atoms older than an episode "
            f"({episode:,.0f} embeddings); median {np.median(ages) / episode:.0f} episodes, "
            f"oldest {ages.max() / episode:.0f}"
        )
    return lines


def plot_stream(rows: Sequence[Row]) -> Any:
    """Histograms of ages with the Atari table's constants."""
    figure = new_figure(WIDTH, 3.8)
    axes = figure.subplots()
    for colour, row in zip((COLOURS[0], COLOURS[2], COLOURS[3]), rows):
        numbers, edges = row["histogram"]
        axes.stairs(numbers, edges, color=colour, label=f"seed {row['seed']}")
    axes.axvline(rows[0]["episode"], color=COLOURS[1], label="an episode of all actors")
    axes.set(ylabel="atoms born in the run", title="|M| = 50,000, η = 0.05, γ = 0.999")
    steps_below(axes, "age (embeddings)")
    legend_beside(figure)
    return figure


def describe_stream(rows: Sequence[Row]) -> list[str]:
    return [
        f"seed {row['seed']}: {row['replaced']:.0%} of {row['atoms']:,} atoms were inserted during the run; "
        f"of these {row['older_than_an_episode']:.0%} are older than an episode, "
        f"median age {row['percentiles'][2] / row['episode']:.0f} episodes, "
        f"95th percentile {row['percentiles'][4] / row['episode']:.0f}"
        for row in rows
    ]


FIGURE = Figure(
    name="ages",
    paper="Figs. 3, 14",
    claim="Most clusters are much older than an episode.",
    laptop_cost="3 runs of 150,000 steps, shared with `bonuses`",
    paper_cost="RECODE-AP, 8 games × 6 seeds, 1e9 frames each (Pitfall! and Montezuma's Revenge are shown)",
    folder=FOLDER,
    jobs=lambda: bonus_jobs(("RECODE-AP",)),
    plot=plot,
    describe=describe,
)

STREAM = Figure(
    name="ages_stream",
    paper="Fig. 14 (the memory's constants alone)",
    claim="With the Atari table's constants most clusters are much older than an episode.",
    laptop_cost="3 streams of 4 million embeddings, about 2 CPU-minutes each",
    paper_cost="see `ages`",
    folder=RESULTS / "ages_stream",
    jobs=lambda: [
        Job(
            key=f"seed{seed}",
            seed=seed,
            settings={"embeddings": NUM_EMBEDDINGS},
            measure=partial(measure_stream, seed),
        )
        for seed in SEEDS
    ],
    plot=plot_stream,
    describe=describe_stream,
)
