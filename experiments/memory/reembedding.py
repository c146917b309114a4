"""Atoms that follow the representation against atoms that stay (not in the paper), on walks.

Every atom keeps the observation that founded it and is put where that is embedded now, every ten steps
(`bonuses.following`), or stays where it was, as in the paper. Modes as in `frozen`: an embedding that
settles, one that moves on, and a memory that is filled before the embedding has learned anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from experiments.drawing import COLOURS, WIDTH, legend_beside, new_figure, steps_below
from experiments.figure import Figure
from experiments.jobs import RESULTS, Job, Row
from experiments.memory import walk_streams
from experiments.memory.walk_streams import (
    Judgement,
    Mode,
    describe_courses,
    draw_courses,
    draw_places,
    embedded_walks,
    judge,
    memory_config,
    start_of,
    summarise,
    walk_jobs,
)
from softcount.bonuses.following import Following
from softcount.bonuses.normalise import NormaliserConfig
from softcount.bonuses.recode import Recode, RecodeBonusConfig
from softcount.roles.memory_server import MemoryServer
from softcount.types import Array, Features

MODES: tuple[Mode, ...] = ("settling", "moving", "cold")
PERIOD = 10
NEIGHBOURS = (5, 10)
LABELS = {False: "atoms stay (the paper)", True: "atoms follow"}


def measure(mode: Mode, seed: int) -> dict[str, Any]:
    """Both kinds of memory, with both k, on the same walks."""
    servers = {(k, follow): _server(k, seed, follow) for k in NEIGHBOURS for follow in LABELS}
    courses: dict[tuple[int, bool], list[Judgement]] = {key: [] for key in servers}
    drawn = draw_places(seed, None)
    visits = np.zeros(len(drawn[0]), np.int64)
    env_ids = np.arange(walk_streams.NUM_ENVS)
    no = np.zeros(len(env_ids), bool)
    for moment in embedded_walks(seed, "ap", mode):
        if moment.t < start_of(mode):
            continue
        embed = partial(_features, moment.embed)
        features = embed(moment.observation)
        visits += np.bincount(moment.place, minlength=len(visits))
        now = moment.t + 1
        is_due = now % walk_streams.MOMENT == 0 and now > walk_streams.HEAD_START
        views = [embed(image) for image in drawn] if is_due else []
        for key, server in servers.items():
            if moment.t % PERIOD == 0:
                num = server.num_founded()
                if num:
                    server.move_atoms(embed(server.founding_observations(0, num)))
            server(features, env_ids, no, no, None, moment.observation)
            if is_due:
                assert server.bonus is not None
                courses[key].append(judge(np.mean([server.bonus.score(v) for v in views], axis=0), visits))
    results = [
        {"neighbours": k, "follow": follow, **summarise(course)} for (k, follow), course in courses.items()
    ]
    return {"results": results}


def _features(embed: Callable[[Array], tuple[Array, Array | None]], observation: Array) -> Features:
    return Features(embedding=embed(observation)[0])


def _server(k: int, seed: int, follow: bool) -> MemoryServer:
    config = RecodeBonusConfig(memory=memory_config(neighbours=k), normaliser=NormaliserConfig(kind="none"))
    recode = Recode(config, seed=seed)
    return MemoryServer(Following(recode) if follow else recode)


def jobs() -> list[Job]:
    return walk_jobs("mode", MODES, measure)


def _found(rows: Sequence[Row], mode: str, k: int, follow: bool) -> list[dict[str, Any]]:
    results = [r for row in rows if row["mode"] == mode for r in row["results"]]
    return [r for r in results if r["neighbours"] == k and r["follow"] == follow]


def plot(rows: Sequence[Row]) -> Any:
    """The course of the agreement, thin lines seeds and thick ones their means."""
    figure = new_figure(WIDTH, 3.8)
    for axes, mode in zip(figure.subplots(1, len(MODES), sharey=True), MODES):
        for (k, follow), colour in zip(((k, f) for k in NEIGHBOURS for f in LABELS), COLOURS):
            found = [r["course"] for r in _found(rows, mode, k, follow)]
            draw_courses(axes, found, colour, f"k = {k}, {LABELS[follow]}")
        axes.set_title(f"embedding {mode}", fontsize=10)
        steps_below(axes, "steps")
    figure.axes[0].set_ylabel("rank correlation with true-count bonus")
    legend_beside(figure)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    lines = []
    for mode in MODES:
        for k in NEIGHBOURS:
            for follow, label in LABELS.items():
                lines += describe_courses(f"{mode}, k = {k}, {label}", _found(rows, mode, k, follow))
    return lines


FIGURE = Figure(
    name="reembedding",
    paper="not in the paper",
    claim="Atoms that follow the representation count right while it moves, and from an untrained start.",
    laptop_cost="9 streams × 4 memories, about 3 CPU-minutes in all",
    paper_cost="not planned",
    folder=RESULTS / "reembedding",
    jobs=jobs,
    plot=plot,
    describe=describe,
)
