"""White noise beside the picture: who stops paying for places it knows? (§4, noisy Montezuma)

    python -m softcount.experiments.noise_rewards run
    python -m softcount.experiments.noise_rewards plot

Random walks through an 11×11 maze whose picture carries a panel of fresh uniform noise of
the same size. One representation learns action prediction and random distillation side by
side from the same steps; RECODE pays for AP's embeddings, RND for its own errors, both
raw. Each reward is filed under how often its place had been visited before, by anyone. A
bonus that counts places falls; one that is fooled by noise stays where it was.
"""

from __future__ import annotations

import json
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from softcount.bonuses import NormaliserConfig, Recode, RecodeBonusConfig, Surprise, SurpriseConfig
from softcount.envs.disco_maze import DiscoMaze, DiscoMazeConfig
from softcount.envs.noise import NoisyVector
from softcount.experiments.maze_walks import walk
from softcount.memory import RecodeConfig
from softcount.representations import RepresentationTrainer, TrainerConfig, make_representation
from softcount.representations.make import GRID
from softcount.types import Array, Features, Sequence, Step

RESULT = Path("results/representations/noise.json")
IMAGE = Path("docs/images/noise_rewards.png")
SEEDS = (0, 1, 2)
NUM_ENVS = 32
STEPS = 3000
LEARN_EVERY = 8
EDGES = np.array([0, 30, 60, 120, 240, 480, 960, 1920, 10**9])
MEMORY = RecodeConfig(
    size=300, dim=16, neighbours=5, warmup_atoms=300, count_discount=0.9999, embeddings_per_step=NUM_ENVS
)
RAW = NormaliserConfig(kind="none")


def run_one(seed: int) -> dict[str, Any]:
    """One walk; mean rewards by how often a place was visited before."""
    start, start_cpu = time.perf_counter(), time.process_time()
    config = DiscoMazeConfig(size=11, layout=seed, lethal=False, max_steps=1_000_000)
    noisy = NoisyVector(DiscoMaze(config, num_envs=NUM_ENVS, seed=seed), seed=seed)
    walks = walk(noisy, STEPS, warmup=0, seed=seed, blind=0.1, inertia=0.6, pushing=0.0)
    model = make_representation("ap+rnd", noisy.observation_spec, noisy.action_spec, GRID, seed=seed)
    trainer = RepresentationTrainer(model, TrainerConfig(learning_rate=1e-3, weight_decay=0.01))
    recode = Recode(RecodeBonusConfig(memory=MEMORY, normaliser=RAW), seed=seed)
    surprise = Surprise(SurpriseConfig(normaliser=RAW))
    visits = np.zeros(noisy.num_places or 0, np.int64)
    rows: list[tuple[Array, Array, Array, Array]] = []
    accuracy = 0.0
    for t in range(STEPS):
        features = _features(model, walks.observation[t])
        ids, is_first, place = np.arange(NUM_ENVS), walks.is_first[t], walks.place[t]
        paid = recode.observe(features, ids, is_first), surprise.observe(features, ids, is_first)
        np.add.at(visits, place, 1)
        rows.append((np.full(NUM_ENVS, t), visits[place] - 1, *paid))
        if t % LEARN_EVERY == LEARN_EVERY - 1:
            accuracy = trainer.update(_latest(walks, t, 2 * LEARN_EVERY))["embedding_accuracy"]
    time_, num, by_recode, by_rnd = (np.concatenate(column) for column in zip(*rows, strict=True))
    counted = time_ >= 2 * MEMORY.size // NUM_ENVS + LEARN_EVERY  # after warm-up of memory and statistics
    bins = np.digitize(num, EDGES) - 1
    select = [counted & (bins == i) for i in range(len(EDGES) - 1)]
    return {
        "seed": seed,
        "steps": STEPS * NUM_ENVS,
        "updates": trainer.num_updates,
        "action_accuracy": accuracy,
        "visits": [float(num[s].mean()) if s.any() else None for s in select],
        "recode_ap": [float(by_recode[s].mean()) if s.any() else None for s in select],
        "rnd": [float(by_rnd[s].mean()) if s.any() else None for s in select],
        "seconds": round(time.perf_counter() - start, 1),
        "cpu_seconds": round(time.process_time() - start_cpu, 1),
        "machine": f"{platform.processor() or platform.machine()}, one thread, torch {torch.__version__}",
    }


def _features(model: Any, observation: Array) -> Features:
    with torch.no_grad():
        features, _ = model.represent(torch.from_numpy(observation))
    return Features(features.embedding.numpy(), features.surprise.numpy())


def _latest(walks: Any, t: int, length: int) -> Sequence:
    """The last steps of all copies as a sequence."""
    part = slice(max(0, t + 1 - length), t + 1)
    action, is_last = walks.action[part], walks.is_last[part]
    nothing = np.zeros(action.shape, np.float32)
    prev_action = np.vstack([np.zeros_like(action[:1]), action[:-1]])
    steps = Step(
        walks.observation[part],
        np.where(walks.is_first[part], 0, prev_action),
        nothing,
        nothing,
        walks.is_first[part],
        is_last,
        is_last,
        action,
        {},
    )
    return Sequence(steps, ())


def plot() -> None:
    """Draws rewards relative to those of the least visited places."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    runs = json.loads(RESULT.read_text())
    figure, axis = plt.subplots(figsize=(5.2, 3.6))
    for name, label, colour in (("recode_ap", "RECODE-AP", "tab:blue"), ("rnd", "RND", "tab:red")):
        for i, run in enumerate(runs):
            points = [(v, r) for v, r in zip(run["visits"], run[name], strict=True) if r is not None]
            x, y = np.array(points).T
            axis.plot(x, y / y[0], "o-", color=colour, markersize=3, label=label if i == 0 else None)
    axis.set_xscale("log")
    axis.set_ylim(0, None)
    axis.set_xlabel("earlier visits to the place")
    axis.set_ylabel("reward / reward at few visits")
    axis.set_title("With white noise attached to the observation", fontsize=10)
    axis.legend()
    figure.tight_layout()
    IMAGE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGE, dpi=110)


def run() -> None:
    """Runs all seeds and writes what is there after each."""
    torch.set_num_threads(1)
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    runs = []
    for seed in SEEDS:
        runs.append(run_one(seed))
        print(json.dumps(runs[-1]), flush=True)
        RESULT.write_text(json.dumps(runs, indent=1) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["run"]:
        run()
    elif sys.argv[1:] == ["plot"]:
        plot()
    else:
        sys.exit(f"usage: {sys.argv[0]} run | plot")
