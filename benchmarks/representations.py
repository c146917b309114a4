"""Speed of every representation: embeddings per second, and what an update costs.

    python benchmarks/representations.py

Two worlds: 21×21 mazes through the grid torso, and 84×84 Atari frames through the DQN
convolutions. Then the price of the bonus: RECODE with |M| = 5·10⁴ full of atoms observes
64 embeddings; it must cost under 5 % of embedding the 64 frames. One thread throughout;
the median of repeated timings, in process time, so that a busy machine does not count.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from softcount.envs.make import make
from softcount.memory import RecodeConfig, RecodeMemory
from softcount.representations import EmbeddingConfig, RepresentationTrainer, make_representation
from softcount.representations.make import GRID, KINDS, RepresentationConfig
from softcount.types import ArraySpec, DiscreteActions, Sequence, Step

RESULT = Path("results/representations/benchmark.json")
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


def bench_bonus(num_atoms: int = 50_000) -> dict[str, Any]:
    """RECODE's share: embeddings of real frames of Montezuma's Revenge against a full memory.

    The frames are those of random play, 64 copies at a time, embedded by the DQN encoder as it
    is initialised; the memory is filled with them and goes on with frames it has not seen.
    """
    env = make("atari/montezuma_revenge", num_envs=64, seed=0)
    config = replace(RepresentationConfig(), embedding=EmbeddingConfig(torso="dqn"))
    model: Any = make_representation("ap", env.observation_spec, env.action_spec, config).eval()
    memory = RecodeMemory(RecodeConfig(size=num_atoms, warmup_atoms=num_atoms), seed=0)
    rng = np.random.default_rng(0)
    step = env.reset(0)
    embedding_seconds, memory_seconds = [], []
    while len(memory_seconds) < 40:
        started = time.process_time()
        with torch.inference_mode():
            features, _ = model.represent(torch.from_numpy(step.observation))
        embedded = time.process_time()
        is_full = len(memory) == num_atoms
        memory.observe(features.embedding)
        if is_full:
            embedding_seconds.append(embedded - started)
            memory_seconds.append(time.process_time() - embedded)
        step = env.step(rng.integers(18, size=64))
    env.close()
    embed_ms, observe_ms = (1000 * float(np.median(x)) for x in (embedding_seconds, memory_seconds))
    result = {
        "engine": memory.engine,
        "atoms": len(memory),
        "observe_64_ms": round(observe_ms, 3),
        "embed_64_frames_210x160_ms": round(embed_ms, 3),
        "bonus_share_210x160": round(observe_ms / embed_ms, 4),
    }
    print(json.dumps(result), flush=True)
    return result


if __name__ == "__main__":
    torch.set_num_threads(1)
    report = {
        "machine": f"{platform.processor() or platform.machine()}, one thread, torch {torch.__version__}",
        "load_average": [round(x, 1) for x in os.getloadavg()],
        "bonus": bench_bonus(),
        "representations": bench_representations(),
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(report, indent=1) + "\n")
