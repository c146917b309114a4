"""What a few hundred updates leave behind, as digests: to see that a change of structure changed no bit.

    python benchmarks/digests.py --out before.json        on the commit before
    python benchmarks/digests.py --against before.json    on the commit after

Small agents are trained in a maze and on Atari. For each, parameters, optimisers, memory, replay, actors and
metrics are hashed apart. A leaf is known by its last name and its content, not by where it stands, so that
state may move between records. Digests are of one machine: other processors round differently.
What is new in the rows of a trace, and the order of the fields of an episode, is left out; so are the bytes
that the Atari emulator saves, which differ between any two runs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from softcount.presets import LAPTOP, suited
from softcount.runs.run import make_loop
from softcount.torsos import GridConfig

AGENTS = (
    "MEME-RECODE-AP",
    "MEME-RECODE-CASM",
    "MEME-NGU-AP",
    "MEME-EMM-AP",
    "MEME-RND",
    "MEME-RNDonAP",
    "MEME-COUNT",
    "MEME",
)
ON_ATARI = ("MEME-RECODE-AP", "MEME-RND")
LEFT_OUT = ("episodes.", "extras.task", "bytes", "compression", "console")
UPDATES = {"maze": 300, "atari": 60}
ATARI_OPTIONS = {"full_actions": False, "max_noops": 5}


def config_of(agent: str, world: str) -> Any:
    """The laptop preset in small."""
    config = suited(LAPTOP, agent)
    config = replace(
        config,
        num_envs=4,
        evaluation_episodes=2,
        overlap=False,
        env_options={"size": 9, "layout": 1, "observation": "palette"},
        meme=replace(
            config.meme,
            network=replace(config.meme.network, core_size=16, head_size=16),
            target_update_period=20,
            batch_size=4,
            replay=replace(config.meme.replay, trace_length=6, period=3, capacity=200, min_traces=8),
        ),
        recode=replace(
            config.recode, memory=replace(config.recode.memory, size=60, warmup_atoms=20, neighbours=4)
        ),
    )
    if world == "maze":
        return config
    network = replace(config.meme.network, torso=GridConfig(channels=2), core="lstm")
    return replace(
        config,
        env="atari/montezuma_revenge",
        env_options=ATARI_OPTIONS,
        meme=replace(config.meme, network=replace(network, torso="dqn")),
        representation=replace(
            config.representation,
            embedding=replace(config.representation.embedding, torso="dqn"),
            rnd=replace(config.representation.rnd, torso="dqn"),
        ),
    )


def digests_of(agent: str, world: str) -> dict[str, str]:
    """Trains and hashes every part."""
    loop = make_loop(config_of(agent, world))
    reported: list[Any] = []
    while loop.num_updates < UPDATES[world]:
        loop.step()
        reported.append(loop.roles.memory.metrics())
    state = loop.state_dict()
    parts = {
        "agent": state["learner"]["agent"],
        "representation": state["learner"]["trainer"],
        "acting": state["inference"],
        "memory": state["memory"],
        "replay": [state["replay"], {name: make() for name, make in loop.segments().items()}],
        "actor": state["actor"],
        "loop": state["loop"],
        "metrics": [reported, loop.means.take(), loop.roles.replay.metrics()],
    }
    return {name: digest(part) for name, part in parts.items()}


def digest(tree: Any) -> str:
    """Hashes the leaves of a tree, in any order, each with its last name."""
    lines = sorted(
        f"{name} {_bytes(leaf).hex() if len(_bytes(leaf)) < 64 else _sha(_bytes(leaf))}"
        for name, leaf in leaves(tree)
    )
    return _sha("\n".join(lines).encode())[:16]


def leaves(tree: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if name == "rng" and isinstance(tree, str):  # the same generator, whichever way it is written
        tree = json.loads(tree)
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, str(key))
    elif isinstance(tree, list | tuple):
        for i, value in enumerate(tree):
            yield from leaves(value, f"{name}.{i}")
    elif tree is not None and not name.startswith(LEFT_OUT):
        yield name, tree


def _bytes(leaf: Any) -> bytes:
    if isinstance(leaf, str | int):
        return str(leaf).encode()
    array = np.ascontiguousarray(leaf)
    return f"{array.dtype.kind}{array.shape}".encode() + array.tobytes()


def _sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="write all digests to this file")
    parser.add_argument("--against", type=Path, help="compare with this file; fails where anything differs")
    parser.add_argument("--only", nargs="*", help="such as maze/MEME-RND")
    parsed = parser.parse_args()
    torch.set_num_threads(1)
    keys = [f"maze/{agent}" for agent in AGENTS] + [f"atari/{agent}" for agent in ON_ATARI]
    before = json.loads(parsed.against.read_text()) if parsed.against else {}
    found, num_different = {}, 0
    for key in parsed.only or keys:
        world, agent = key.split("/")
        found[key] = digests_of(agent, world)
        differing = [name for name, x in found[key].items() if key in before and before[key].get(name) != x]
        num_different += len(differing)
        if parsed.out:
            parsed.out.write_text(json.dumps(found, indent=1) + "\n")
        print(
            key,
            f"differs in {', '.join(differing)}" if differing else "same" if before else found[key],
            flush=True,
        )
    return 1 if num_different else 0


if __name__ == "__main__":
    sys.exit(main())
