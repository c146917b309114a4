"""Finds the goal of Random Disco Mazes with several agents, layouts and seeds.

    python -m experiments.agent.maze_goal --size 21 --agents MEME-RECODE-AP --layouts 0 1 2 --seeds 0 1

Each run is a training run of its own process in `--runs`, with the preset of the maze's size. It goes on
in stretches of `--stretch` steps until the last two evaluations reached the goal in `--solved` of their
episodes, or, with `--beyond N`, until N steps after two in a row first did, or `--steps` are over, or, with
`--stalled N`, N steps have shown no new place and the goal was never reached. Then it leaves one JSON file
in `--out` and is not run again while that is there; a run that was stopped is resumed. The file holds the
configuration, when each place was first seen and how deep in the maze, when the goal was first reached,
the evaluations on the way, how the bonus compared with true counts, how long it trained (without start-up
and the evaluation at the end of a stretch) and the machine. The picture shows all runs of the folder.

Options that are not listed below go to `softcount train`: `--no-overlap` lets a run have one core.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.agent.coverage import steps_below
from experiments.jobs import new_figure, save_picture
from softcount import checkpoint, store
from softcount.config_json import to_tree
from softcount.measure.machine import machine
from softcount.runs.run import CHECKPOINTS, CONFIG, read_config, read_reports

PRESET_OF = {11: "laptop", 21: "laptop-21"}


class Setting(NamedTuple):
    """One run."""

    agent: str
    size: int
    layout: int
    seed: int
    steps: int

    @property
    def name(self) -> str:
        return f"{self.agent}__size{self.size}__layout{self.layout}__seed{self.seed}"


def settings(
    agents: Sequence[str], size: int, layouts: Sequence[int], seeds: Sequence[int], steps: int
) -> Iterator[Setting]:
    for seed in seeds:
        for layout in layouts:
            for agent in agents:
                yield Setting(agent, size, layout, seed, steps)


def train(
    setting: Setting,
    runs: Path,
    extra: Sequence[str],
    *,
    stretch: int,
    solved: float,
    beyond: int = 0,
    stalled: int | None = None,
) -> Path:
    """Trains a run until it is solved, stalled or over, in processes of their own, from where it was left."""
    folder = runs / setting.name
    runs.mkdir(parents=True, exist_ok=True)
    _check_options(folder, extra)
    while (done := steps_done(folder)) < setting.steps and not is_solved(folder, solved, beyond):
        if stalled is not None and is_stalled(folder, stalled):
            break
        until = min(setting.steps, done // stretch * stretch + stretch)
        if (folder / CONFIG).exists():
            command = ["resume", str(folder), "--steps", str(until)]
        else:
            options = [f"size={setting.size}", f"layout={setting.layout}"]
            command = ["train", setting.agent, "--preset", PRESET_OF.get(setting.size, "laptop")]
            command += ["--run", str(folder), "--env-options", *options]
            command += ["--steps", str(until), "--seed", str(setting.seed), *extra]
            _options_of(folder).write_text(json.dumps(list(extra)))
        with open(runs / f"{setting.name}.log", "a") as log:
            ended = subprocess.run(
                [sys.executable, "-m", "softcount.cli", *command],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )
        if ended.returncode != 0:
            raise RuntimeError(f"{setting.name} failed; see {runs / setting.name}.log")
    return folder


def _options_of(folder: Path) -> Path:
    """Returns the file that says with which further options a run was begun."""
    return folder.with_suffix(".options.json")


def _check_options(folder: Path, extra: Sequence[str]) -> None:
    path = _options_of(folder)
    if path.exists() and (before := json.loads(path.read_text())) != list(extra):
        raise ValueError(f"{folder} was begun with the options {before}; expected {list(extra)}")


def steps_done(folder: Path) -> int:
    """Returns how far the last checkpoint of a run is, 0 if there is none."""
    manifest = folder / CHECKPOINTS / checkpoint.MANIFEST
    return int(json.loads(manifest.read_text())["step"]) if manifest.exists() else 0


def is_solved(folder: Path, share: float, beyond: int = 0) -> bool:
    """Says whether the last two evaluations reached the goal in this share of their episodes.

    With `beyond`, whether two evaluations in a row did so at least that many steps ago.
    """
    rows = [row for row in read_reports(folder) if "eval/return" in row]
    pairs = [
        after["step"]
        for before, after in pairwise(rows)
        if min(before["eval/success_rate"], after["eval/success_rate"]) >= share
    ]
    if not pairs:
        return False
    last = rows[-1]["step"]
    return bool(last - pairs[0] >= beyond if beyond else pairs[-1] == last)


def is_stalled(folder: Path, steps: int) -> bool:
    """Says whether this many steps have shown no new place, and no episode ever reached the goal."""
    rows = [row for row in read_reports(folder) if "coverage/places" in row]
    if not rows or any(row.get("charts/success_rate", 0.0) > 0 for row in rows):
        return False
    latest = next(row["step"] for row in rows if row["coverage/places"] == rows[-1]["coverage/places"])
    return bool(rows[-1]["step"] - latest >= steps)


def summarise(folder: Path) -> dict[str, Any]:
    """Reads what a finished run has seen and how it evaluated."""
    from softcount.launch.build import make_env

    config = read_config(folder)
    maze: Any = make_env(config, 1, 0)
    loop = checkpoint.read(folder / CHECKPOINTS).parts["loop"]
    seen = loop["coverage"]
    cells = [maze.cell_of(place) for place in seen["places"].tolist()]
    first_seen = dict(zip(cells, seen["first_seen"].tolist(), strict=True))
    discoveries = sorted((step, int(maze.distances[cell])) for cell, step in first_seen.items())
    rows = read_reports(folder)
    return {
        "agent": config.agent,
        "env_options": config.env_options,
        "seed": config.seed,
        "config": to_tree(config),
        "steps": loop["num_steps"],
        "seconds": total_seconds([row["time/elapsed"] for row in rows]),
        "num_places": maze.num_places,
        "places": len(cells),
        "discoveries": discoveries,  # of each place: step and distance from the start
        "goal_distance": int(maze.distances[maze.goal]),
        "depth": max(distance for _, distance in discoveries),
        "first_goal": first_seen.get(tuple(maze.goal)),
        "evaluations": [
            [r["step"], r["eval/success_rate"], r["eval/length"]] for r in rows if "eval/return" in r
        ],
        "coverage": [[r["step"], r["coverage/places"]] for r in rows],
        "success": [[r["step"], r.get("charts/success_rate")] for r in rows],  # of the actors' episodes
        "truth": [
            {"step": r["step"]} | {name[6:]: r[name] for name in r if name.startswith("truth/")}
            for r in rows
            if "eval/return" in r
        ],
    }


def total_seconds(elapsed: Sequence[float]) -> float:
    """Adds up clocks that start anew whenever a run is resumed."""
    ends = [before for before, after in pairwise(elapsed) if after < before]
    return sum(ends) + elapsed[-1]


def draw(results: Sequence[dict[str, Any]]) -> Any:
    """Draws coverage, depth and evaluations over steps: a line per run, a star where the goal was found."""
    figure = new_figure(14, 4)
    coverage, depth, evaluation = figure.subplots(1, 3)
    agents = list(dict.fromkeys(r["agent"] for r in results))
    for result in results:
        colour = f"C{agents.index(result['agent'])}"
        style: dict[str, Any] = {"color": colour, "alpha": 0.75, "linewidth": 1.2}
        steps, distances = np.array([*result["discoveries"], (result["steps"], 0)]).T
        found = np.arange(1, len(steps) + 1)
        found[-1] -= 1  # the end of the run discovers nothing
        coverage.step(steps, found / result["num_places"], where="post", **style)
        share = np.maximum.accumulate(distances) / result["goal_distance"]
        depth.step(steps, share, where="post", **style)
        if result["first_goal"]:
            depth.plot(result["first_goal"], 1.0, marker="*", color=colour, markersize=10)
        if result["evaluations"]:
            steps, success, _ = np.array(result["evaluations"]).T
            evaluation.plot(steps, success, marker=".", **style)
    for i, agent in enumerate(agents):
        num = sum(r["agent"] == agent for r in results)
        coverage.plot([], [], color=f"C{i}", label=f"{agent} ({num} run{'s' * (num > 1)})")
    coverage.legend(frameon=False, fontsize=8)
    coverage.set(ylabel="share of places", title="places visited")
    depth.set(ylabel="share of the way to the goal", title="deepest place (stars: the goal)")
    evaluation.set(ylabel="share of episodes", title="return: the evaluator reaches the goal")
    for axes in (coverage, depth, evaluation):
        axes.set_ylim(-0.03, 1.05)
        steps_below(axes)
    return figure


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--agents", nargs="+", default=["MEME-RECODE-AP", "MEME"], help="names of the paper's taxonomy")
    add("--size", type=int, default=11, help="of the maze; 21 has a preset of its own, others `laptop`")
    add("--layouts", type=int, nargs="+", default=[0, 1, 2], help="mazes of that size")
    add("--seeds", type=int, nargs="+", default=[0, 1], help="a run for each agent, layout and seed")
    add("--steps", type=int, default=1_000_000, help="most steps of a run")
    add("--runs", type=Path, default=Path("runs/maze_goal"), help="folders of training runs")
    add("--out", type=Path, help="where each run leaves its file; default results/meme/maze_SIZE")
    add("--picture", type=Path, help="what to draw of all files there; default docs/images/maze_SIZE.png")
    add("--workers", type=int, default=2, help="runs side by side")
    add("--stretch", type=int, default=500_000, help="steps between looks at whether a run is solved")
    add("--solved", type=float, default=0.9, help="share of episodes, in two evaluations in a row")
    add("--beyond", type=int, default=0, help="steps to go on for after that")
    add("--stalled", type=int, metavar="N", help="stop when N steps have shown no new place and no goal")
    add("--draw", action="store_true", help="run nothing, only draw what is in --out")
    arguments, extra = parser.parse_known_args()
    arguments.out = arguments.out or Path(f"results/meme/maze_{arguments.size}")
    arguments.picture = arguments.picture or Path(f"docs/images/maze_{arguments.size}.png")
    if not arguments.draw:
        todo = settings(arguments.agents, arguments.size, arguments.layouts, arguments.seeds, arguments.steps)
        with ThreadPoolExecutor(arguments.workers) as pool:
            for line in pool.map(lambda setting: _run(setting, arguments, extra), todo):
                print(line, flush=True)
    results = [json.loads(path.read_text()) for path in sorted(arguments.out.glob("*.json"))]
    save_picture(draw(results), arguments.picture.stem, arguments.picture.parent)
    return 0


def _run(setting: Setting, arguments: argparse.Namespace, extra: Sequence[str]) -> str:
    path = arguments.out / f"{setting.name}.json"
    if not path.exists():
        folder = train(
            setting,
            arguments.runs,
            extra,
            stretch=arguments.stretch,
            solved=arguments.solved,
            beyond=arguments.beyond,
            stalled=arguments.stalled,
        )
        content = {"command": " ".join(sys.argv[1:]), "machine": machine(), **summarise(folder)}
        path.parent.mkdir(parents=True, exist_ok=True)
        store.write_atomically(path, (json.dumps(content) + "\n").encode())
    result = json.loads(path.read_text())
    return f"{setting.name}: {result['places']} places, goal {result['first_goal'] or 'not reached'}"


if __name__ == "__main__":
    sys.exit(main())
