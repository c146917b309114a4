"""Speed of every representation: embeddings per second, and what an update costs.

    python benchmarks/representations.py [one-room | sixteen-games | representations]

Two worlds: 21×21 mazes through the grid torso, and 84×84 Atari frames through the DQN
convolutions. Then the price of the bonus: RECODE with |M| = 5·10⁴ full of atoms observes
64 embeddings; it should cost under 5 % of embedding the 64 frames. How far atoms can be ruled
out depends on where they come from, hence two scenes of random play, embedded by the DQN encoder as it is
initialised: the first room of Montezuma's Revenge alone, which is all that random play sees of it, and
sixteen games, standing for the rooms that fill a memory in earnest. Beside the full memory runs one that
RECODE fills by its own rule. One thread throughout; the median of repeated timings, in process time, so that
a busy machine does not count. Each part updates its entry of the JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from softcount.envs.families import EIGHT_GAMES
from softcount.envs.make import make
from softcount.measure.machine import machine
from softcount.memory import RecodeConfig, RecodeMemory
from softcount.representations import EmbeddingConfig, RepresentationTrainer, make_representation
from softcount.representations.make import GRID, KINDS, RepresentationConfig
from softcount.types import Array, ArraySpec, DiscreteActions, Sequence, Step

RESULT = Path("results/representations/benchmark.json")
FRAME = ArraySpec((210, 160, 1), "uint8")
SIXTEEN_GAMES = (
    *EIGHT_GAMES,
    *("alien", "amidar", "bank_heist", "berzerk", "frostbite", "ms_pacman", "wizard_of_wor", "zaxxon"),
)
WORLDS: dict[str, tuple[ArraySpec, RepresentationConfig, int, int]] = {
    "maze 21x21, grid torso": (ArraySpec((21, 21, 3), "uint8"), GRID, 16, 40),
    "atari 84x84, DQN convolutions": (ArraySpec((84, 84, 1), "uint8"), RepresentationConfig(), 2, 20),
}


def milliseconds(function: Callable[[], Any], repeats: int) -> float:
    """The median process time of a call."""
    function()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return 1000 * statistics.median(times)


def sequence(spec: ArraySpec, time_steps: int, batch: int, rng: np.random.Generator) -> Sequence:
    """Random content of the right shapes; colours are few, as in a maze."""
    shape = (time_steps, batch)
    observation = 36 * rng.integers(0, 8, (*shape, *spec.shape), dtype=np.uint8)
    action, never, nothing = rng.integers(0, 18, shape), np.zeros(shape, bool), np.zeros(shape, np.float32)
    return Sequence(Step(observation, action, nothing, nothing, never, never, never, action, {}), ())


def bench_representations() -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    rows = []
    for world, (spec, config, batch, length) in WORLDS.items():
        frames = torch.from_numpy(sequence(spec, 1, 64, rng).steps.observation[0])
        data = sequence(spec, length, batch, rng)
        for kind in KINDS:
            model: Any = make_representation(kind, spec, DiscreteActions(18), config).eval()
            model.after_update()  # as after the first one: RND says nothing before

            @torch.inference_mode()
            def embed(model: Any = model, frames: torch.Tensor = frames) -> Any:
                return model.represent(frames)

            acting = milliseconds(embed, 10)
            trainer = RepresentationTrainer(model)
            update = milliseconds(lambda t=trainer, d=data: t.update(d), 3) if kind != "random" else None  # type: ignore[misc]
            rows.append(
                {
                    "world": world,
                    "kind": kind,
                    "embeddings_per_second": round(64_000 / acting),
                    "embed_64_ms": round(acting, 3),
                    "update_ms": None if update is None else round(update, 1),
                    "update_traces": f"{batch} x {length}",
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows


def play(games: tuple[str, ...], num: int) -> Iterator[Array]:
    """Yields frames of random play, `num` at a time, the games in equal parts."""
    envs = [make(f"atari/{game}", num_envs=num // len(games), seed=i) for i, game in enumerate(games)]
    rng = np.random.default_rng(0)
    steps = [env.reset(0) for env in envs]
    while True:
        yield np.concatenate([step.observation for step in steps])
        steps = [env.step(rng.integers(18, size=env.num_envs)) for env in envs]


def bench_bonus(games: tuple[str, ...], num_atoms: int = 50_000) -> dict[str, Any]:
    """RECODE's share: embeddings of frames against memories that saw the frames before."""
    frames = play(games, 64)
    config = replace(RepresentationConfig(), embedding=EmbeddingConfig(torso="dqn"))
    model: Any = make_representation("ap", FRAME, DiscreteActions(18), config).eval()
    memories = {
        "full": RecodeMemory(RecodeConfig(size=num_atoms, warmup_atoms=num_atoms), seed=0),
        "own_rule": RecodeMemory(RecodeConfig(size=num_atoms), seed=0),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ("embed", *memories)}
    while len(seconds["embed"]) < 40:
        batch = torch.from_numpy(next(frames))
        started = time.process_time()
        with torch.inference_mode():
            features, _ = model.represent(batch)
        times = {"embed": time.process_time() - started}
        is_full = len(memories["full"]) == num_atoms
        for name, memory in memories.items():
            started = time.process_time()
            memory.observe(features.embedding)
            times[name] = time.process_time() - started
        for name in times if is_full else ():
            seconds[name].append(times[name])
    milliseconds = {name: 1000 * float(np.median(values)) for name, values in seconds.items()}
    engine: Any = memories["full"]._engine
    result = {
        "games": len(games),
        "embed_64_frames_210x160_ms": round(milliseconds["embed"], 3),
        **{f"observe_64_{name}_ms": round(milliseconds[name], 3) for name in memories},
        **{f"share_{name}": round(milliseconds[name] / milliseconds["embed"], 4) for name in memories},
        **{f"atoms_{name}": len(memory) for name, memory in memories.items()},
        "path_full": getattr(engine, "path", "numpy"),
        **describe(memories["full"], features.embedding.numpy()),
    }
    print(json.dumps(result), flush=True)
    return result


def describe(memory: RecodeMemory, embeddings: Array) -> dict[str, Any]:
    """Why a search costs what it costs: how the atoms lie around new embeddings."""
    atoms = memory.atoms.astype(np.float64)
    variances = np.linalg.eigvalsh(np.cov(atoms.T))[::-1]
    shares = np.cumsum(variances) / variances.sum()
    d2 = np.stack([((atoms - e) ** 2).sum(1) for e in embeddings.astype(np.float64)])
    in_ball = (d2 < memory.d2_ema).sum(1)
    return {
        "distinct_atoms": len(np.unique(memory.atoms, axis=0)),
        "variance_in_8_and_16_directions": [round(float(shares[i]), 3) for i in (7, 15)],
        "d2_of_20th_over_mean_d2": round(float(np.median(np.sort(d2, 1)[:, 19] / d2.mean(1))), 3),
        "atoms_in_ball_mean_and_most": [round(float(in_ball.mean()), 1), int(in_ball.max())],
    }


def conditions() -> dict[str, Any]:
    """What a part was measured on."""
    return {"machine": f"{machine()}, one thread", "load_average": [round(x, 1) for x in os.getloadavg()]}


PARTS: dict[str, Callable[[], Any]] = {
    "one-room": lambda: bench_bonus(("montezuma_revenge",)),
    "sixteen-games": lambda: bench_bonus(SIXTEEN_GAMES),
    "representations": bench_representations,
}

if __name__ == "__main__":
    torch.set_num_threads(1)
    report = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for part in sys.argv[1:] or PARTS:
        report[part] = {**conditions(), "measured": PARTS[part]()}
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text(json.dumps(report, indent=1) + "\n")
