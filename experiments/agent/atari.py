"""Montezuma's Revenge on one core: which bonus leaves the first room, and when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.agent.atari_runs import FOLDER, STEPS, atari_config, job
from experiments.drawing import WIDTH, colours_of, draw_steps, legend_beside, new_figure, steps_below
from experiments.figure import Figure
from experiments.jobs import SEEDS, Job, Row, by
from softcount.config import RunConfig
from softcount.envs.atari_places import MontezumaPlaces
from softcount.measure.coverage import Coverage, plot_heat_map

AGENTS = ("RECODE-FRAME", "COUNT", "RND", "RECODE-AP", "EMM-FRAME", "none", "NGU-AP")
THRICE = ("RECODE-FRAME", "RND", "RECODE-AP")
LABELS = {"COUNT": "true counts", "none": "no bonus", "RECODE-FRAME_long": "RECODE-FRAME"}
CELLS = MontezumaPlaces.rows * MontezumaPlaces.columns
LONG_SECONDS = 7200.0
CHANGE = "change_"
"""Begins the names of runs that differ from the preset."""
HEADER = (
    "| run | seed | rooms, and the step each was first seen | CPU minutes to the second | positions | keys"
    " | rewards a game | steps | frames | CPU minutes |"
)
"""Rewards a game are those of the last evaluation: a key is one, a door another."""
KEY = "100"
"""What the first key is worth."""


def config_of(agent: str, seed: int) -> RunConfig:
    """The preset as it suits a bonus (`presets.suited`)."""
    return atari_config("MEME" if agent == "none" else f"MEME-{agent}", seed)


def jobs() -> list[Job]:
    """The working setting with three seeds, then every bonus once, then the other seeds."""
    runs = [("RECODE-FRAME", seed) for seed in SEEDS]
    runs += [(agent, 0) for agent in AGENTS[1:]]
    runs += [(agent, seed) for agent in THRICE[1:] for seed in SEEDS[1:]]
    return [job(agent, config_of(agent, seed)) for agent, seed in runs]


def long_jobs() -> list[Job]:
    """One run of five times the steps."""
    return [job("RECODE-FRAME_long", replace(config_of("RECODE-FRAME", 0), steps=5 * STEPS), LONG_SECONDS)]


def map_jobs() -> list[Job]:
    """All runs, of which the map shows one."""
    return jobs() + long_jobs()


def label_of(row: Row) -> str:
    """Returns what a run is called where people read it."""
    name: str = row["name"]
    return LABELS.get(name, name.removeprefix(CHANGE).replace("_", " "))


def first_steps(row: Row) -> dict[int, int]:
    """Returns the step at which each room was first seen, in that order."""
    first: dict[int, int] = {}
    for place, step in sorted(zip(row["places"], row["first_seen"], strict=True), key=lambda x: x[1]):
        first.setdefault(place // CELLS, step)
    return first


def keys_of(row: Row) -> list[int]:
    """Returns how many keys had been fetched at each report."""
    return [report["points"].get(KEY, 0) for report in row["rows"]]


def plot(rows: Sequence[Row]) -> Any:
    """Draws rooms, positions and keys over steps, a line a run, a colour a bonus."""
    figure = new_figure(WIDTH, 3.6)
    panels = figure.subplots(1, 3)
    colours = colours_of(row["name"] for row in rows)
    for row in rows:
        colour = colours[row["name"]]
        is_new = row["seed"] == min(r["seed"] for r in rows if r["name"] == row["name"])
        style = {"color": colour, "label": label_of(row) if is_new else None}
        for axes, steps in zip(panels, (sorted(first_steps(row).values()), sorted(row["first_seen"]))):
            draw_steps(axes, steps, row["steps"], **style)
        panels[2].plot([report["step"] for report in row["rows"]], np.array(keys_of(row)) + 1, **style)
    for axes, title in zip(panels, ("rooms visited", "positions visited", "keys fetched + 1")):
        steps_below(axes, "steps")
        axes.set_title(title, fontsize=10)
    panels[0].yaxis.get_major_locator().set_params(integer=True)
    panels[2].set_yscale("log")
    legend_beside(figure)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    """A table, a line a run: rooms and when they were found, positions, keys, games, steps and time."""
    lines = [_line(row) for group in by(rows, "name").values() for row in group]
    return [HEADER, "|" + "---|" * (HEADER.count("|") - 1), *lines]


def _line(row: Row) -> str:
    (start, _), *later = first_steps(row).items()
    rooms = ", ".join([str(start), *(f"{room} ({step:,})" for room, step in later)])
    minutes = next((r["cpu_seconds"] / 60 for r in row["rows"] if later and r["step"] >= later[0][1]), None)
    games = [r["evaluation_return"] for r in row["rows"] if r["evaluation_return"] is not None]
    cells = (
        label_of(row),
        row["seed"],
        rooms,
        "-" if minutes is None else f"{minutes:.0f}",
        len(row["places"]),
        f"{keys_of(row)[-1]:,}",
        f"{games[-1]:.1f}" if games else "-",
        f"{row['steps']:,}",
        f"{row['rows'][-1]['frames']:,}",
        f"{row['cpu_seconds'] / 60:.0f}",
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def plot_map(rows: Sequence[Row]) -> Any:
    """Draws where the run with the most rooms has been, room beside room as they are in the pyramid."""
    row = _farthest(rows)
    coverage, places = Coverage(), MontezumaPlaces()
    seen = {name: np.array(row[name]) for name in ("places", "visits", "first_seen")}
    coverage.load_state_dict({"num_places": None, "steps": row["steps"], **seen})
    cells = np.array([places.cell_of(place) for place in row["places"]])
    size = np.array([places.rows, places.columns])
    (top, left), (bottom, right) = cells.min(0) // size * size, (cells.max(0) // size + 1) * size
    figure = new_figure(10, 4)
    axes = figure.subplots()
    plot_heat_map(axes, coverage, places, title=f"{label_of(row)}, seed {row['seed']}: ")
    axes.set(xlim=(left - 0.5, right - 0.5), ylim=(bottom - 0.5, top - 0.5))
    for column in range(left, right + 1, places.columns):
        axes.axvline(column - 0.5, color="white", linewidth=0.5)
    return figure


def describe_map(rows: Sequence[Row]) -> list[str]:
    """Says whose map it is."""
    row = _farthest(rows)
    rooms = ", ".join(f"{room}" for room in first_steps(row))
    return [f"{label_of(row)}, seed {row['seed']}: rooms {rooms} in this order"]


def _farthest(rows: Sequence[Row]) -> Row:
    """Returns the run with the most rooms, and of those the one with the most positions."""
    return max(rows, key=lambda row: (len(first_steps(row)), len(row["places"])))


FIGURE = Figure(
    name="atari",
    paper="Fig. 4, Montezuma's Revenge (departures in docs/atari.md)",
    claim="With a small agent RECODE leaves the first room within minutes of one core.",
    laptop_cost="13 runs of 1,000,000 steps or 1,800 CPU seconds",
    paper_cost="8 games × 4 agents × 6 seeds, 1e9 frames each",
    folder=FOLDER,
    jobs=jobs,
    plot=plot,
    describe=describe,
)

LONG = Figure(
    name="atari_long",
    paper="Fig. 4, Montezuma's Revenge (departures in docs/atari.md)",
    claim="With five million steps more rooms are found.",
    laptop_cost="one run of 5,000,000 steps or 7,200 CPU seconds",
    paper_cost="8 games × 4 agents × 6 seeds, 1e9 frames each",
    folder=FOLDER,
    jobs=long_jobs,
    plot=plot,
    describe=describe,
)

MAP = Figure(
    name="atari_map",
    paper="no figure of the paper",
    claim="Where the agent has been, read from the console's memory: the first room and what lies behind.",
    laptop_cost="none, from the runs of `atari` and `atari_long`",
    paper_cost="not in the paper",
    folder=FOLDER,
    jobs=map_jobs,
    plot=plot_map,
    describe=describe_map,
)
