"""The demo: the same agent with and without RECODE's bonus, in a small Random Disco Maze.

    python -m experiments.demo --out demo

Walls kill and their colours change at every step, and the only reward lies at the far end.
Without a bonus nothing tells the agent to go farther than it stumbles. Both agents train
side by side for the same number of steps; afterwards a picture shows where each has been, an
animation how the one with the bonus plays, and a report all there is to know of both.
Fails unless the one with the bonus has visited at least 1.5 times as many places.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from experiments.drawing import WIDTH, colours_of, legend_beside, new_figure, steps_below
from softcount.report import write_report
from softcount.runs.metrics_log import read_metrics
from softcount.runs.playback import evaluate_run, open_run

AGENTS = {"MEME-RECODE-AP": "with_bonus", "MEME": "without_bonus"}
REQUIRED_FACTOR = 1.5


def train(out: Path, size: int, steps: int, seed: int) -> dict[str, Path]:
    """Trains both agents at the same time, each in a process of its own; returns their run folders."""
    processes = {}
    for agent, name in AGENTS.items():
        command = [sys.executable, "-m", "softcount", "train", agent, "--run", str(out / name)]
        command += ["--env-options", f"size={size}", "--steps", str(steps), "--seed", str(seed)]
        command += ["--report-every", "2000"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        log = open(out / f"{name}.log", "w")  # noqa: SIM115
        processes[agent] = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment)
    try:
        _show_progress(processes, out, steps)
    finally:
        for process in processes.values():
            process.kill() if process.poll() is None else None
    for agent, process in processes.items():
        if process.returncode != 0:
            log_text = (out / f"{AGENTS[agent]}.log").read_text()
            raise RuntimeError(f"training {agent} failed:\n{log_text[-2000:]}")
    return {agent: out / name for agent, name in AGENTS.items()}


def _show_progress(processes: dict[str, subprocess.Popen[bytes]], out: Path, steps: int) -> None:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:16s}"), BarColumn(), TextColumn("{task.completed:>9,.0f} steps"))
    with Progress(*columns, TextColumn("{task.fields[places]:>3} places"), TimeRemainingColumn()) as progress:
        tasks = {agent: progress.add_task(agent, total=steps, places=0) for agent in processes}
        while any(process.poll() is None for process in processes.values()):
            time.sleep(1.0)
            for agent, task in tasks.items():
                path = out / AGENTS[agent] / "metrics.jsonl"
                rows = list(read_metrics(path)) if path.exists() else []
                if rows:
                    places = int(rows[-1]["coverage/places"])
                    progress.update(task, completed=min(rows[-1]["step"], steps), places=places)


def draw(runs: dict[str, Path], path: Path) -> dict[str, int]:
    """Draws coverage over time and both maps of visits; returns how many places each has visited."""
    import numpy as np
    from matplotlib.colors import LogNorm

    from softcount.measure.coverage import heat_map

    figure = new_figure(WIDTH, 3.4)
    axes = figure.subplots(1, 3, width_ratios=[1.2, 1, 1])
    colours = colours_of(runs)
    places = {}
    for (agent, folder), axis in zip(runs.items(), axes[1:], strict=True):
        loop = open_run(folder)
        coverage, env = loop.coverage, loop.roles.actor.env
        assert coverage is not None
        maze: Any = env
        places[agent] = coverage.num_visited
        steps, known = coverage.curve()
        axes[0].step(
            [*steps, coverage.steps], [*known, known[-1]], where="post", label=agent, color=colours[agent]
        )
        floor = np.full(maze.map_shape, np.nan)
        for place in range(coverage.num_places or 0):
            floor[maze.cell_of(place)] = 0.85
        axis.set_facecolor("0.15")
        axis.imshow(floor, cmap="gray", vmin=0, vmax=1)
        axis.imshow(heat_map(coverage, maze), cmap="inferno", norm=LogNorm(1, coverage.visits.max()))
        row, column = maze.goal
        axis.plot(column, row, marker="*", color="deepskyblue", markersize=14)
        axis.set_title(f"{agent}: {coverage.num_visited} of {coverage.num_places} places", fontsize=10)
        axis.set_xticks([]), axis.set_yticks([])
    axes[0].set_ylabel("places visited")
    steps_below(axes[0])
    legend_beside(figure)
    figure.savefig(path, dpi=140)
    return places


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--out", type=Path, default=Path("demo"), help="folder for runs and pictures; replaced"
    )
    parser.add_argument("--size", type=int, default=11, help="cells per side of the maze")
    parser.add_argument("--steps", type=int, default=260_000, help="actor steps of each agent")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    out: Path = arguments.out
    if out.exists() and not (out / "demo.txt").exists() and any(out.iterdir()):
        parser.error(f"{out} exists and was not made by this demo")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / "demo.txt").write_text("Made by experiments.demo; replaced each time it runs.\n")
    started = time.monotonic()
    runs = train(out, arguments.size, arguments.steps, arguments.seed)
    places = draw(runs, out / "exploration.png")
    factor = places["MEME-RECODE-AP"] / places["MEME"]
    print(
        f"places visited in {arguments.steps:,} steps: {places['MEME-RECODE-AP']} with RECODE's bonus, "
        f"{places['MEME']} without: {factor:.1f} times as many ({time.monotonic() - started:.0f} s)"
    )
    print(evaluate_run(runs["MEME-RECODE-AP"], 10, out / "play.gif"))
    report = write_report(list(runs.values()), out / "report.html")
    print(f"where they went: {out / 'exploration.png'}; everything about both: {report}")
    if factor < REQUIRED_FACTOR:
        print(f"FAILED: expected at least {REQUIRED_FACTOR} times as many", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
