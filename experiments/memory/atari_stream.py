"""Records what an agent with true counts sees in Montezuma's Revenge, and what can be known of its actions.

At some moments every action is tried from the same state of the emulator. Actions that show the same next
frame cannot be told apart by anybody: they are one class. A predictor of actions is judged by how often it
names the right class, which a perfect one always does, however many actions are aliased.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from experiments.agent.atari_runs import atari_config
from softcount.config import with_fields
from softcount.envs.atari import Atari
from softcount.runs.run import make_loop
from softcount.types import Array, Sequence, Step

RUNS = Path("runs/atari")
STEPS = 60_000
SEED = 3
BETA = 0.05
"""β of the agent that is recorded: what suits RECODE there, not what suits true counts best."""
PROBE_EVERY, PROBES_AT_ONCE = 1500, 12


@dataclass(frozen=True)
class Stream:
    """Frames `[T, B, H, W]` with actions, ends and places `[T, B]`, and what each action would show."""

    observation: Array
    action: Array
    is_first: Array
    is_last: Array
    place: Array
    now: Array  # [S, H, W], the frame before
    next: Array  # [S, A, H, W], the frame after each action

    @property
    def num_actions(self) -> int:
        return int(self.next.shape[1])

    def classes(self) -> Array:
        """Returns a number for each action of each moment, equal where the next frames are."""
        frames = self.next.reshape(*self.next.shape[:2], -1)
        return np.stack([np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1) for rows in frames])

    def knowable(self) -> float:
        """The accuracy of a perfect predictor where all actions are as likely: classes per action."""
        return float(np.mean([len(set(row)) for row in self.classes().tolist()]) / self.num_actions)

    def sample(self, before: int, rng: np.random.Generator, *, length: int = 16, batch: int = 16) -> Sequence:
        """Draws traces that end before a row, half of them from the newest 64 rows."""
        starts = rng.integers(0, before - length, size=batch)
        newest = max(0, before - length - 64)
        starts[: batch // 2] = rng.integers(newest, before - length, size=batch // 2)
        rows = starts + np.arange(length + 1)[:, None], rng.integers(self.action.shape[1], size=batch)
        nothing, none = np.zeros((length + 1, batch), np.float32), np.zeros((length + 1, batch), np.int64)
        steps = Step(
            self.observation[rows][..., None],
            none,
            nothing,
            nothing,
            self.is_first[rows],
            self.is_last[rows],
            self.is_last[rows],
            self.action[rows],
            {},
        )
        return Sequence(steps, ())


def recorded(num_actions: int) -> Stream:
    """Returns the stream with 8 or 18 actions; it is recorded once, in about three CPU-minutes."""
    path = RUNS / f"stream_{num_actions}.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "wb") as file:
            np.savez(file, **record(num_actions))  # type: ignore[arg-type]
    with np.load(path) as content:
        return Stream(**{name: content[name] for name in Stream.__dataclass_fields__})


def record(num_actions: int, steps: int = STEPS) -> dict[str, Array]:
    """Trains an agent with true counts and keeps every row that it sees."""
    config = with_fields(atari_config("MEME-COUNT", SEED), {"meme.loss.beta_max": BETA})
    if num_actions == 18:
        config = replace(config, env_options={**config.env_options, "actions": ()})
    loop = make_loop(replace(config, overlap=False))
    source: Any = loop.roles.replay
    add, rows = source.add, []

    def listen(row: Step, state: Any) -> None:
        frame = row.observation[..., -1].copy()
        rows.append((frame, row.action.copy(), row.is_first, row.is_last, row.extras["place"]))
        add(row, state)

    source.add = listen
    env: Any = loop.roles.actor.env
    rng, probes, due = np.random.default_rng(0), [], 2 * PROBE_EVERY
    while loop.num_steps < steps:
        loop.step()
        if loop.num_steps >= due:
            chosen = rng.choice(len(env.envs), PROBES_AT_ONCE, replace=False)
            probes += [probe(env.envs[i]) for i in chosen if not loop.roles.actor.timestep.is_last[i]]
            due += PROBE_EVERY
    columns = [np.stack(column) for column in (*zip(*rows), *zip(*probes))]
    return dict(zip(Stream.__dataclass_fields__, columns, strict=True))


def probe(env: Atari) -> tuple[Array, Array]:
    """Returns the newest frame and what each action would show next; the game is where it was."""
    state = env.get_state()
    frames = []
    for action in range(len(env.actions)):
        frames.append(env.step(action)[0][..., -1])
        env.set_state(state)
    return state["stack"][..., -1], np.stack(frames)
