"""Embeddings of Montezuma's first room on recorded streams: do they order places by their visits?

A stream of 60,000 steps, 64 copies side by side, is played to RECODE with the preset's memory, while the
representation learns from what was seen so far, an update per 64 steps. Five times it is asked for every
place that was seen: ρ, the rank correlation of what a visit would be paid with how rare visits were;
identification, how often the nearest embedding of another frame is of the same place; noise, how far the
frames of a place spread, as a share of the way to the next place; and, for action prediction, how often it
names an action that shows what the right one shows (`atari_stream`); moved, how far the frames of the first
moment went since the moment before, as a share of their spread. RND pays its surprise: it has ρ alone. Some
learn eight times as often, to see whether they come to rest.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from experiments.agent.atari_runs import FOLDER
from experiments.drawing import COLOURS, legend_beside, new_figure
from experiments.figure import Figure
from experiments.jobs import Job, Row
from experiments.memory.atari_stream import Stream, recorded
from softcount.bonuses.make import BonusConfig, Place, make_bonus
from softcount.bonuses.normalise import NormaliserConfig
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.bonuses.surprise import SurpriseConfig
from softcount.measure.scored_places import rank_correlation
from softcount.presets import LAPTOP, LAPTOP_ATARI
from softcount.representations.acting import features_alone
from softcount.representations.make import make_representation
from softcount.representations.trainer import RepresentationTrainer
from softcount.types import Array, ArraySpec, DiscreteActions, Features, map_arrays

MOMENTS, PER_PLACE, AT_ONCE = 5, 8, 2048
KINDS = ("frame", "random", "ap", "ap by cells", "ap, fast bandwidth", "casm", "byol", "rnd")
"""What is compared; "ap" has the paper's encoder, "fast bandwidth" lets d²_ema follow ten times as fast."""
OFTEN = 8
LONG_KINDS = ("ap by cells, often", "ap by cells, often, restless")
"""Learn `OFTEN` times as often; "restless" by the laptop's schedule, which waits for an accuracy of 90 %."""

PLAIN = SurpriseConfig(normaliser=NormaliserConfig(kind="none"))
"""Errors as they are: neither ranks nor ratios depend on their scale."""


def measure(kind: str, num_actions: int, seed: int = 0) -> dict[str, Any]:
    """Plays the stream to a representation and a memory; returns what was asked at each moment."""
    torch.set_num_threads(1)
    stream = recorded(num_actions)
    listener = Listener(kind, stream, _settings_of(kind), seed)
    moments = [len(stream.action) * (i + 1) // MOMENTS - 1 for i in range(MOMENTS)]
    rows = []
    for t in range(len(stream.action)):
        listener.hear(t)
        if t in moments and listener.can_tell():
            rows.append({"step": (t + 1) * stream.action.shape[1], **listener.ask()})
    return {"rows": rows, "knowable": stream.knowable(), "num_places": len(listener.frames)}


def _settings_of(kind: str) -> RecodeBonusConfig:
    """The preset's memory, which pays what it finds; its atoms follow whatever learns."""
    recode = replace(LAPTOP_ATARI.recode, normaliser=NormaliserConfig(kind="none"))
    if "fast" in kind:
        recode = replace(recode, memory=replace(recode.memory, d2_step=10 * recode.memory.d2_step))
    return replace(recode, reembed_every=0) if kind in ("frame", "random") else recode


class Listener:
    """A representation that learns from a stream, a memory that counts with it, and the truth beside them."""

    def __init__(self, kind: str, stream: Stream, recode: RecodeBonusConfig, seed: int) -> None:
        self.stream, self.rng = stream, np.random.default_rng(seed)
        spec = ArraySpec((*stream.observation.shape[2:], 1), "uint8")
        by: Any = "cells" if "cells" in kind else "encoder"
        predicting = replace(LAPTOP_ATARI.representation.action_prediction, by=by)
        config = replace(LAPTOP_ATARI.representation, newest_channels=0, action_prediction=predicting)
        trainer = LAPTOP_ATARI.trainer if "cells" in kind and "restless" not in kind else LAPTOP.trainer
        self.times = OFTEN if "often" in kind else 1
        kind = kind.split(",")[0].split(" ")[0]
        self.actions = DiscreteActions(stream.num_actions)
        self.learning: Any = make_representation(kind, spec, self.actions, config, seed=seed)
        self.trainer = RepresentationTrainer(self.learning, trainer)
        self.acting: Any = copy.deepcopy(self.learning).eval()
        num_envs = stream.action.shape[1]
        place = Place(dim=self.acting.dim, representation=kind, num_envs=num_envs, seed=seed)
        settings = BonusConfig(recode=recode, surprise=PLAIN)
        bonus = make_bonus("surprise" if kind == "rnd" else "recode", settings, place)
        assert bonus is not None
        self.bonus, self.ids = bonus, np.arange(num_envs)
        self.visits: dict[int, int] = {}
        self.frames: dict[int, list[Array]] = {}
        self.followed: Array | None = None
        self.stood: Array | None = None

    def hear(self, t: int) -> None:
        """Counts a row of every copy, and learns where enough was heard; last rows are not counted."""
        stream, is_kept = self.stream, ~self.stream.is_last[t]
        frames = stream.observation[t][is_kept]
        features = self.represent(frames)
        if self.bonus.can_read(features):
            self.bonus.observe(features, self.ids[is_kept], stream.is_first[t][is_kept])
        if self.bonus.wants_observations:
            self.bonus.keep(frames)
        for place, frame in zip(stream.place[t][is_kept].tolist(), frames, strict=True):
            if place >= 0:
                self._remember(place, frame)
        if t > 16 and self.trainer.needs_statistics:
            self.trainer.learn_statistics(stream.observation[:t].reshape(-1, *frames.shape[1:])[..., None])
        for _ in range(self.times if t > 16 else 0):
            self._learn(t)

    def _learn(self, t: int) -> None:
        """Learns from what was heard before a row; atoms follow now and then."""
        if self.trainer.update(self.stream.sample(t, self.rng)):
            self.acting.load_state_dict(self.trainer.acting_state())
            is_due = self.trainer.num_updates % LAPTOP_ATARI.recode.reembed_every == 0
            if is_due and self.bonus.num_founded:
                self._move_atoms()

    def _remember(self, place: int, frame: Array) -> None:
        """Keeps a fair sample of a place's frames."""
        num = self.visits[place] = self.visits.get(place, 0) + 1
        kept = self.frames.setdefault(place, [])
        if len(kept) < PER_PLACE:
            kept.append(frame)
        elif self.rng.random() < PER_PLACE / num:
            kept[self.rng.integers(PER_PLACE)] = frame

    def _move_atoms(self) -> None:
        num = self.bonus.num_founded
        borders = range(0, num, AT_ONCE)
        parts = [self.represent(self.bonus.founding_observations(i, min(i + AT_ONCE, num))) for i in borders]
        self.bonus.move_atoms(map_arrays(lambda *leaves: np.concatenate(leaves), *parts))

    def represent(self, frames: Array) -> Features:
        return features_alone(self.acting, np.ascontiguousarray(frames)[..., None], self.actions)

    def can_tell(self) -> bool:
        """Whether the bonus can be asked already: RND has nothing to say before its first update."""
        return self.bonus.can_read(self.represent(self.stream.observation[0]))

    def ask(self) -> dict[str, Any]:
        """Judges the embedding and the memory as they are now."""
        places = np.repeat(list(self.frames), [len(kept) for kept in self.frames.values()])
        features = self.represent(np.concatenate([np.stack(kept) for kept in self.frames.values()]))
        paid = self.bonus.score(features)
        means = np.array([paid[places == place].mean() for place in self.frames])
        visits = np.array([self.visits[place] for place in self.frames])
        rarest = np.argsort(visits)
        fifth = max(1, len(rarest) // 5)
        row = {
            "rho": rank_correlation(-visits, means),
            "rare_over_common": float(means[rarest[:fifth]].mean() / means[rarest[-fifth:]].mean()),
            "updates": self.trainer.num_updates,
        }
        if features.embedding is not None:
            row["identification"] = identification(features.embedding, places)
            row["noise"] = noise(features.embedding, places)
            row.update(self._moved())
        if hasattr(self.learning, "logits"):
            row["class_accuracy"] = class_accuracy(self.learning, self.stream)
            row["accuracy"] = self.trainer.accuracy.value
        return {name: round(value, 4) for name, value in row.items()}

    def _moved(self) -> dict[str, float]:
        """How far the frames of the first moment are from where they were at the last."""
        if self.followed is None:
            self.followed = np.stack([kept[0] for kept in self.frames.values()])
        before, self.stood = self.stood, self.represent(self.followed).embedding
        assert self.stood is not None
        return {} if before is None else {"moved": moved(before, self.stood)}


def moved(before: Array, now: Array) -> float:
    """How far embeddings went, over how far they are from their mean; medians."""
    spread = np.linalg.norm(now - now.mean(0), axis=1)
    return float(np.median(np.linalg.norm(now - before, axis=1)) / max(np.median(spread), 1e-12))


def identification(embedding: Array, places: Array) -> float:
    """How often the nearest other embedding is of the same place."""
    squares = (embedding.astype(np.float64) ** 2).sum(1)
    distances = squares[:, None] + squares - 2 * embedding.astype(np.float64) @ embedding.T
    np.fill_diagonal(distances, np.inf)
    return float((places[distances.argmin(1)] == places).mean())


def noise(embedding: Array, places: Array) -> float:
    """How far frames of a place are from their mean, over the way to the next place's mean; the median."""
    numbers = np.unique(places)
    means = np.stack([embedding[places == place].mean(0) for place in numbers]).astype(np.float64)
    shares = []
    for i, place in enumerate(numbers):
        own = embedding[places == place]
        if len(own) > 1 and len(numbers) > 1:
            way = np.linalg.norm(np.delete(means, i, 0) - means[i], axis=1).min()
            shares.append(np.linalg.norm(own - means[i], axis=1).mean() / max(way, 1e-12))
    return float(np.median(shares)) if shares else float("nan")


def class_accuracy(representation: Any, stream: Stream) -> float:
    """How often action prediction names an action that shows what the right one shows; all count alike."""
    num, num_actions = stream.next.shape[:2]
    module = representation.eval()
    named = np.empty((num, num_actions), np.int64)
    with torch.inference_mode():
        before = torch.from_numpy(stream.now)[..., None]
        for action in range(num_actions):
            after = torch.from_numpy(np.ascontiguousarray(stream.next[:, action]))[..., None]
            named[:, action] = module.logits(before, after).argmax(-1).numpy()
    classes = stream.classes()
    return float((np.take_along_axis(classes, named, 1) == classes).mean())


def jobs() -> list[Job]:
    """The embeddings that need no learning first; with 8 actions, then with all 18."""
    return [
        Job(
            key=f"{kind.replace(', ', '_').replace(' ', '_')}__{num_actions}actions"
            + (f"__seed{seed}" if seed else ""),
            seed=seed,
            settings={"kind": kind, "num_actions": num_actions},
            measure=partial(measure, kind, num_actions, seed),
        )
        for num_actions in (8, 18)
        for kind in (*KINDS, *LONG_KINDS)
        for seed in ((0, 1) if kind == "ap by cells" else (0,))
    ]


def plot(rows: Sequence[Row]) -> Any:
    """Draws ρ over steps, a panel per number of actions, and how far what learns often still moves."""
    figure = new_figure(13, 4)
    *panels, last = figure.subplots(1, 3)
    panels[1].sharey(panels[0])
    for axes, num_actions in zip(panels, (8, 18)):
        for colour, kind in zip(COLOURS, KINDS):
            for row in rows:
                if (row["kind"], row["num_actions"]) == (kind, num_actions):
                    steps = [moment["step"] for moment in row["rows"]]
                    label = None if row["seed"] else kind
                    rho = [moment["rho"] for moment in row["rows"]]
                    axes.plot(steps, rho, "o-", color=colour, label=label)
        axes.set(xlabel="steps", title=f"{num_actions} actions", ylabel="ρ of pay with rarity")
    legend_beside(figure)  # of these two panels; the last has other lines
    for row in rows:
        if row["kind"] in LONG_KINDS:
            moments = [moment for moment in row["rows"] if "moved" in moment]
            last.plot(
                [moment["updates"] for moment in moments],
                [moment["moved"] for moment in moments],
                "o-" if row["num_actions"] == 18 else "o:",
                color=COLOURS[LONG_KINDS.index(row["kind"])],
                label=f"{row['kind'].removeprefix('ap by cells, ')}, {row['num_actions']} actions",
            )
    last.set(xlabel="updates", title="ap by cells", ylabel="moved since the moment before", ylim=(0, None))
    if last.lines:
        last.legend(frameon=False, fontsize=8)
    return figure


def describe(rows: Sequence[Row]) -> list[str]:
    """A line per embedding: ρ and moves at each moment, and the last of the rest."""
    lines = []
    for row in rows:
        rho = " ".join(f"{moment['rho']:.2f}" for moment in row["rows"])
        last = row["rows"][-1]
        rest = [
            f"{title} {last[name]:.2f}"
            for name, title in (
                ("identification", "identified"),
                ("noise", "noise"),
                ("class_accuracy", "right class"),
            )
            if name in last
        ]
        moves = [f"{moment['moved']:.2f}" for moment in row["rows"] if "moved" in moment]
        rest += ["moved " + " ".join(moves)] if moves else []
        paid = f"rare places paid {last['rare_over_common']:.1f} times common ones"
        seed = f", seed {row['seed']}" if row["seed"] else ""
        title = f"{row['num_actions']} actions, {row['kind']}{seed}: "
        lines.append(title + ", ".join([f"ρ {rho}", paid, *rest]))
    for num_actions in dict.fromkeys(row["num_actions"] for row in rows):
        knowable = next(row["knowable"] for row in rows if row["num_actions"] == num_actions)
        lines.append(f"{num_actions} actions: a perfect predictor names {knowable:.2f} of them right")
    return lines


FIGURE = Figure(
    name="atari_streams",
    paper="§3.2 on Montezuma's Revenge; the paper has no such figure",
    claim="Embeddings that need no learning order places by visits from the start; action prediction later.",
    laptop_cost="two recordings of three CPU-minutes, 22 jobs of up to five",
    paper_cost="not in the paper",
    folder=FOLDER / "streams",
    jobs=jobs,
    plot=plot,
    describe=describe,
)
