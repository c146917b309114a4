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


def bench_bonus() -> dict[str, Any]:
    """RECODE's share: 64 real embeddings of Atari-sized frames against a full memory."""
    rng = np.random.default_rng(0)
    result: dict[str, Any] = {}
    memory = RecodeMemory(RecodeConfig(warmup_atoms=50_000), seed=0)
    centres = rng.normal(size=(2000, 32)) * 3
    for _ in range(60):  # rooms: a thousand embeddings at a time until full, then visited again
        rooms = centres[rng.integers(2000, size=1000)]
        memory.observe((rooms + 0.1 * rng.normal(size=rooms.shape)).astype(np.float32))
    batches = [
        (centres[rng.integers(2000, size=64)] + 0.1 * rng.normal(size=(64, 32))).astype(np.float32)
        for _ in range(25)
    ]
    times = iter(batches * 3)
    result["engine"] = memory.engine
    result["atoms"] = len(memory)
    result["observe_64_ms"] = round(milliseconds(lambda: memory.observe(next(times)), 40), 3)
    for shape in ((84, 84, 1), (210, 160, 1)):
        spec = ArraySpec(shape, "uint8")
        config = replace(RepresentationConfig(), embedding=EmbeddingConfig(torso="dqn"))
        model: Any = make_representation("ap", spec, DiscreteActions(18), config).eval()
        frames = torch.from_numpy(rng.integers(0, 256, (64, *shape), dtype=np.uint8))

        @torch.inference_mode()
        def embed(model: Any = model, frames: torch.Tensor = frames) -> Any:
            return model.represent(frames)

        name = f"embed_64_frames_{shape[0]}x{shape[1]}_ms"
        result[name] = round(milliseconds(embed, 10), 3)
        result[f"bonus_share_{shape[0]}x{shape[1]}"] = round(result["observe_64_ms"] / result[name], 4)
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
