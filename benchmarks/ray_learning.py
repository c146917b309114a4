"""Does free mode learn as one process does? Trains in a maze in both ways and compares.

    python benchmarks/ray_learning.py --seeds 0 1 2     # MEME, 11x11; writes results/ray/learning
    python benchmarks/ray_learning.py --plot            # draws docs/images/ray_learning.png from it
    python benchmarks/ray_learning.py --agent vmpo      # V-MPO, 9x9; writes results/ray/learning_vmpo

Reported for each run: the share of places visited and the success of evaluations as they grew, steps,
updates, replay ratio, parameter lag, wall clock and CPU seconds of all roles.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.agent.vmpo_learning import ONE_MAZE
from softcount.config import RunConfig, RuntimeConfig
from softcount.launch.ray.free import FreeLoop
from softcount.measure.machine import machine
from softcount.presets import LAPTOP
from softcount.runs.run import Run, read_reports

OUT, PICTURE = Path("results/ray/learning"), Path("docs/images/ray_learning.png")
WAYS = {
    "local": RuntimeConfig(),
    "ray, 2 actors": RuntimeConfig(kind="ray", num_actors=2),
}
LOOSE = ", not strict"
"""Where V-MPO's actors do not wait for what was learned."""
KEPT = (
    "coverage/fraction",
    "eval/success_rate",
    "charts/success_rate",
    "replay/ratio",
    "runtime/parameter_lag",
)


def config_of(agent: str, way: str, seed: int) -> RunConfig:
    """The laptop preset, or V-MPO's in the maze of `docs/agent/vmpo.md`, reported often."""
    runtime = WAYS[way.removesuffix(LOOSE)]
    if agent == "meme":
        return replace(LAPTOP, runtime=runtime, seed=seed, report_every=10_000, evaluate_every=50_000)
    vmpo = replace(ONE_MAZE.vmpo, strict=LOOSE not in way)
    return replace(ONE_MAZE, runtime=runtime, seed=seed, vmpo=vmpo, report_every=5_000, evaluate_every=25_000)


def train(config: RunConfig, way: str, most_seconds: float) -> dict[str, Any]:
    """Trains once; returns its curves."""
    started, cpu = time.monotonic(), time.process_time()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "run"
        run = Run.create(folder, config)
        for _ in run.train(lambda: time.monotonic() - started > most_seconds):
            pass
        cpu_seconds = time.process_time() - cpu
        if isinstance(run.loop, FreeLoop):
            run.loop.supervisor.greet()
            roles = run.loop.supervisor.roles.values()
            cpu_seconds += sum(role.numbers.get("cpu_seconds", 0.0) for role in roles)
        run.close()
        reports = read_reports(folder)
    curves = {name: [[row["step"], row[name]] for row in reports if name in row] for name in KEPT}
    return {
        "way": way,
        "seed": config.seed,
        "agent": config.agent,
        "steps": run.loop.num_steps,
        "updates": run.loop.num_updates,
        "seconds": round(time.monotonic() - started, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "machine": machine(),
        "curves": curves,
    }


def steps_to(row: dict[str, Any], name: str, level: float) -> int | None:
    """Returns the first step at which a curve was as high as this."""
    return next((step for step, value in row["curves"][name] if value is not None and value >= level), None)


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Draws coverage and success, a line for each seed."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    colours = dict(zip(WAYS, ("tab:blue", "tab:orange")))
    titles = {
        "coverage/fraction": "Share of all places visited",
        "eval/success_rate": "Evaluations that find the goal",
    }
    for axes, (name, title) in zip(figure.subplots(1, 2), titles.items()):
        for row in rows:
            curve = np.array(row["curves"][name], float).reshape(-1, 2)
            label = (
                row["way"] if row["seed"] == min(r["seed"] for r in rows if r["way"] == row["way"]) else None
            )
            axes.plot(curve[:, 0], curve[:, 1], color=colours[row["way"]], label=label, alpha=0.8)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel("steps")
        axes.set_ylim(-0.03, 1.05)
        axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--agent", choices=("meme", "vmpo"), default="meme")
    parser.add_argument("--ways", nargs="*", help="all, unless named: " + "; ".join([*WAYS, f"…{LOOSE}"]))
    parser.add_argument("--steps", type=int, help="[400,000 for MEME, 150,000 for V-MPO]")
    parser.add_argument("--most-seconds", type=float, default=1200.0)
    parser.add_argument("--out", type=Path, help="folder with one file for each run")
    parser.add_argument("--plot", action="store_true")
    parsed = parser.parse_args()
    is_meme = parsed.agent == "meme"
    parsed.out = parsed.out or (OUT if is_meme else OUT.with_name("learning_vmpo"))
    ways = parsed.ways or (list(WAYS) if is_meme else [*WAYS, f"ray, 2 actors{LOOSE}"])
    if parsed.plot:
        plot([json.loads(path.read_text()) for path in sorted(parsed.out.glob("*.json"))], PICTURE)
        return
    for seed in parsed.seeds:
        for way in ways:
            config = config_of(parsed.agent, way, seed)
            steps = parsed.steps or (400_000 if is_meme else config.steps)
            row = train(replace(config, steps=steps), way, parsed.most_seconds)
            path = parsed.out / f"{way.replace(', ', '-').replace(' ', '-')}-{seed}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(row) + "\n")
            full, goal = steps_to(row, "coverage/fraction", 1.0), row["curves"]["eval/success_rate"]
            print(f"{way}, {seed}: {row['seconds']:.0f} s, all places at {full}, goal {goal}", flush=True)


if __name__ == "__main__":
    main()
