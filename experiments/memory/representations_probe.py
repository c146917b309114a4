"""Do representations keep where the agent is, and drop what it cannot influence? (§3.2, §4.1)

A representation learns from random walks; then a probe reads the agent's true cell from
its embeddings: five nearest neighbours, and a linear classifier. Gallery and queries come
from different episodes; a tenth of the cells was hidden while the representation learned
and is scored apart. On the whole maze a second linear probe reads the walls' colours,
which are noise: 0.2 is chance. Three seeds, each with a maze of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from experiments.drawing import new_figure
from experiments.figure import Figure
from experiments.jobs import SEEDS, Job, Row, by, per_seed
from softcount.envs.disco_maze import NUM_WALL_COLOURS, PALETTE, DiscoMaze, DiscoMazeConfig
from softcount.envs.walks import Walks, screens, static, steer, walk
from softcount.optimiser import OptimiserConfig
from softcount.representations import (
    CasmConfig,
    EmbeddingConfig,
    RepresentationTrainer,
    TrainerConfig,
    make_representation,
)
from softcount.representations.acting import features_alone
from softcount.representations.embedding import FeedForward
from softcount.representations.features import Metrics, Representation, masked_mean
from softcount.representations.gated_transformer import GatedTransformerConfig
from softcount.representations.make import GRID
from softcount.torsos import mlp
from softcount.types import Array, ArraySpec, DiscreteActions, Sequence

RESULTS = Path("results/representations")
PREDICTORS = ("random", "ap", "casnotm", "casm")
LABELS = {"random": "random", "autoencoder": "autoencoder", "ap": "AP", "casnotm": "CASnotM", "casm": "CASM"}
COLOURS = dict(zip(LABELS, ("0.6", "tab:brown", "tab:blue", "tab:orange", "tab:green"), strict=True))


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One world, one way to see it, and who is compared in it."""

    view: Literal["whole", "window", "screens"]
    """How the maze is seen, see `envs.walks`."""
    size: int
    """Side of the maze."""
    side: int
    """Side of what is seen."""
    kinds: tuple[str, ...]
    """Representations, in the order of the plot."""
    updates: int
    """Optimiser steps per representation."""
    static: float = 0.0
    """Share of wrong pixels."""
    blind: float = 0.1
    """Share of moves that ignore walls."""
    inertia: float = 0.0
    """How often an open move is repeated."""
    pushing: float = 0.0
    """How often any move is repeated, walls or not."""
    steering: bool = False
    """Actions are turns relative to the last direction, not compass directions."""
    length: int = 20
    """Steps of a trace."""
    batch: int = 16
    """Traces of an update."""


SETTINGS = {
    "whole": Setting(
        view="whole", size=11, side=11, kinds=("random", "autoencoder", "ap"), updates=600, length=16
    ),
    "window": Setting(view="window", size=11, side=5, kinds=PREDICTORS, updates=300, batch=8, length=16),
    "screens": Setting(
        view="screens", size=15, side=5, kinds=PREDICTORS, updates=1000, static=0.4, blind=0.25, inertia=0.6
    ),
    "persistent": Setting(
        view="window", size=15, side=5, kinds=PREDICTORS, updates=1000, static=0.4, blind=1.0, pushing=0.8
    ),
    "steering": Setting(
        view="window", size=15, side=5, kinds=PREDICTORS, updates=2000, static=0.2, inertia=0.6, steering=True
    ),
}

CONFIG = replace(
    GRID, casm=CasmConfig(transformer=GatedTransformerConfig(width=64, num_heads=4, hidden_sizes=(128,)))
)
TRAINER = TrainerConfig(optimiser=OptimiserConfig(learning_rate=1e-3, weight_decay=0.01))


class Autoencoder(FeedForward):
    """The baseline that keeps pixels: the same encoder, trained to rebuild the observation."""

    def __init__(self, spec: ArraySpec, embedding: EmbeddingConfig) -> None:
        super().__init__(spec, embedding)
        self.decoder = mlp(embedding.dim, (128,), int(np.prod(spec.shape)))

    def loss(self, sequence: Sequence[Tensor]) -> tuple[Tensor, Metrics]:
        """Mean squared error of the pixels; hidden rows, which are whole episodes, are left out."""
        steps = sequence.steps
        pixels = steps.observation.flatten(2).float() / 255
        errors = (self.decoder(self.embed(steps.observation)) - pixels).square().mean(-1)
        loss = masked_mean(errors, ~(steps.is_first & steps.is_last))
        return loss, {"loss": loss.detach()}


def record(setting: Setting, seed: int) -> tuple[Walks, Walks, int]:
    """Recordings for learning and gallery, recordings for queries, and the number of places."""
    config = DiscoMazeConfig(
        size=setting.size,
        layout=seed,
        lethal=False,
        max_steps=1_000_000,
        observation="palette",
        window=setting.side if setting.view == "window" else None,
    )
    env = DiscoMaze(config, num_envs=48, seed=seed)
    walks = walk(
        env,
        1500,
        warmup=2500,
        seed=seed,
        blind=setting.blind,
        inertia=setting.inertia,
        pushing=setting.pushing,
    )
    if setting.view == "screens":
        walks = screens(walks, env, setting.side)
    if setting.steering:
        walks = steer(walks)
    if setting.static > 0:
        walks = static(walks, setting.static, seed)
    assert env.num_places is not None
    return walks.part(slice(0, 36)), walks.part(slice(36, 48)), env.num_places


def measure(name: str, kind: str, seed: int) -> dict[str, Any]:
    """Trains one representation and probes it."""
    torch.set_num_threads(1)
    setting = SETTINGS[name]
    learn, queries, num_places = record(setting, seed)
    rng = np.random.default_rng([seed, 7])
    hidden = rng.choice(num_places, num_places // 10, replace=False)
    spec = ArraySpec((setting.side, setting.side, 3), "uint8")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        if kind == "autoencoder":
            model: Representation = Autoencoder(spec, CONFIG.embedding)
        else:
            model = make_representation(kind, spec, DiscreteActions(4), CONFIG, seed=seed)
    trainer = RepresentationTrainer(model, TRAINER)
    losses = []
    for _ in range(setting.updates if kind != "random" else 0):
        metrics = trainer.update(learn.sample(setting.length, setting.batch, rng, hidden))
        losses.append([metrics["loss"], metrics.get("accuracy", float("nan"))])
    curve = np.array(losses).reshape(-1, 2)
    return {
        "updates": len(losses),
        "environment_steps": int(learn.place.size),
        "floors": floors(learn),
        **probe(
            model, learn, queries, hidden, np.random.default_rng(9), with_colours=setting.view == "whole"
        ),
        "loss": _mean(curve[-100:, 0]),
        "accuracy": _mean(curve[-100:, 1]),
        "loss_curve": [round(float(x), 4) for x in curve[: len(curve) // 20 * 20, 0].reshape(-1, 20).mean(1)],
    }


def floors(walks: Walks) -> dict[str, float]:
    """The least loss of telling a_t with places known: from those of t and t+1, and from what was before.

    Entropies of the recording's frequencies; "previous_action" is that of a_{t−1} alone, without looking.
    """
    is_step = ~(walks.is_first[1:-1] | walks.is_last[1:-1])
    previous, action = walks.action[:-2][is_step], walks.action[1:-1][is_step]
    before, place, after = (x[is_step] for x in (walks.place[:-2], walks.place[1:-1], walks.place[2:]))
    num = int(walks.place.max()) + 1
    pair = place * num + after
    contexts = {
        "pair": pair,
        "pair_and_previous_action": pair * 4 + previous,
        "pair_and_previous_place": pair * num + before,
        "previous_action": previous,
    }
    return {name: _conditional_entropy(action, context) for name, context in contexts.items()}


def _conditional_entropy(values: Array, context: Array) -> float:
    """H(values | context) of the empirical frequencies, in nats."""
    _, context = np.unique(context, return_inverse=True)
    counts = np.zeros((context.max() + 1, int(values.max()) + 1))
    np.add.at(counts, (context, values), 1)
    chance = counts / counts.sum(1, keepdims=True)
    return float(-np.log(chance[context, values]).mean())


def _mean(values: Array) -> float | None:
    return None if len(values) == 0 or np.isnan(values).any() else float(values.mean())


def probe(
    model: Any, learn: Walks, queries: Walks, hidden: Array, rng: np.random.Generator, with_colours: bool
) -> dict[str, Any]:
    """How well cells, and colours, can be read from the embeddings of other episodes."""
    gallery, gallery_place = learn.rows(4000, rng)
    query, place = queries.rows(2000, rng)
    x, y = embed(model, gallery), embed(model, query)
    is_right = nearest(x, gallery_place, y) == place
    is_hidden = np.isin(place, hidden)
    linear = linear_probe(x, gallery_place, y) == place
    result: dict[str, Any] = {
        "knn": float(is_right[~is_hidden].mean()),
        "knn_hidden_cells": float(is_right[is_hidden].mean()),
        "linear": float(linear.mean()),
        "within_over_between": spread(y, place),
    }
    if with_colours:
        walls = np.flatnonzero(((gallery >= 1) & (gallery <= NUM_WALL_COLOURS)).all(0).ravel())
        hits = [
            linear_probe(x, gallery.reshape(len(gallery), -1)[:, w], y) == query.reshape(len(query), -1)[:, w]
            for w in walls[::5]
        ]
        result["colour"] = float(np.mean(hits))
    return result


def embed(model: Any, palette: Array) -> Array:
    """Embeddings of observations given as palette indices."""
    return np.asarray(features_alone(model, PALETTE[palette], DiscreteActions(4)).embedding, np.float64)


def nearest(x: Array, labels: Array, queries: Array, k: int = 5) -> Array:
    """The most frequent label among the k nearest rows of x."""
    d2 = (queries**2).sum(1)[:, None] - 2 * queries @ x.T + (x**2).sum(1)
    votes = labels[np.argpartition(d2, k, axis=1)[:, :k]]
    return np.array([np.bincount(row).argmax() for row in votes])


def linear_probe(x: Array, labels: Array, queries: Array) -> Array:
    """Least squares on one-hot labels, a little ridge."""
    ones = np.ones((len(x), 1))
    inputs = np.hstack([(x - x.mean(0)) / (x.std(0) + 1e-8), ones])
    targets = np.eye(int(labels.max()) + 1)[labels]
    weights = np.linalg.solve(inputs.T @ inputs + 1e-3 * len(x) * np.eye(inputs.shape[1]), inputs.T @ targets)
    standard = np.hstack([(queries - x.mean(0)) / (x.std(0) + 1e-8), np.ones((len(queries), 1))])
    return np.asarray((standard @ weights).argmax(1))


def spread(x: Array, place: Array) -> float:
    """Mean squared distance within a cell over that between centres of cells: small is good."""
    centres = {p: x[place == p].mean(0) for p in np.unique(place)}
    within = np.mean([((x[place == p] - c) ** 2).sum(1).mean() for p, c in centres.items()])
    return float(within / (2 * np.var(np.stack(list(centres.values())), axis=0).sum()))


def jobs(*names: str) -> list[Job]:
    """Every setting with every seed and kind."""
    return [
        Job(
            key=_key(name, kind, seed),
            seed=seed,
            settings={"setting": name, "kind": kind},
            measure=partial(measure, name, kind, seed),
        )
        for name in names
        for seed in SEEDS
        for kind in SETTINGS[name].kinds
    ]


def _key(name: str, kind: str, seed: int) -> str:
    return f"{name}__{kind}__seed{seed}"


def earlier(*names: str) -> Mapping[str, Row]:
    """Rows of the files that held all runs of a setting."""
    paths = [path for name in names if (path := RESULTS / f"{name}.json").exists()]
    rows = [row for path in paths for row in json.loads(path.read_text())]
    return {_key(row["setting"], row["kind"], row["seed"]): row for row in rows}


def plot(rows: list[Row]) -> Any:
    """Draws probes and loss curves of several settings, a column each."""
    settings = by(rows, "setting")
    figure = new_figure(4.6 * len(settings), 6.4)
    axes = figure.subplots(2, len(settings), squeeze=False)
    for column, (name, runs) in enumerate(settings.items()):
        _plot_probes(axes[0, column], name, runs)
        _plot_losses(axes[1, column], name, runs)
    return figure


def _plot_probes(axis: Any, name: str, runs: list[dict[str, Any]]) -> None:
    """Bars of the means over seeds, a dot for each seed."""
    probes = {"knn": "5-NN", "knn_hidden_cells": "5-NN, cells\nnever learned on", "linear": "linear"}
    if SETTINGS[name].view == "whole":
        probes["colour"] = "wall colour\n(linear)"
    kinds = SETTINGS[name].kinds
    for i, kind in enumerate(kinds):
        values = np.array([[run[p] for p in probes] for run in runs if run["kind"] == kind])
        x = np.arange(len(probes)) + (i - (len(kinds) - 1) / 2) * 0.8 / len(kinds)
        axis.bar(x, values.mean(0), 0.75 / len(kinds), color=COLOURS[kind], label=LABELS[kind])
        for row in values:
            axis.plot(x, row, "k.", markersize=3)
    axis.set_xticks(range(len(probes)), list(probes.values()), fontsize=8)
    axis.set_title(f"{name}: how well the cell is read", fontsize=10)
    axis.set_ylim(0, 1.25)
    axis.legend(fontsize=7, loc="upper center", ncol=len(kinds))


def _plot_losses(axis: Any, name: str, runs: list[dict[str, Any]]) -> None:
    """Loss curves; dashed, where it was worked out, the least loss with places known."""
    for run in runs:
        if run["kind"] not in ("random", "autoencoder"):
            steps = np.arange(len(run["loss_curve"])) * 20 + 10
            axis.plot(steps, run["loss_curve"], color=COLOURS[run["kind"]], linewidth=1)
        if run["kind"] in ("ap", "casnotm") and "floors" in run:
            is_ap = run["kind"] == "ap"
            floor = min(x for told_by, x in run["floors"].items() if (told_by == "pair") == is_ap)
            axis.axhline(floor, color=COLOURS[run["kind"]], linewidth=0.6, linestyle="--")
    axis.set_title("loss of action prediction (nats)", fontsize=10)
    axis.set_xlabel("updates")
    axis.set_ylim(0, 1.5)


def describe(rows: list[Row]) -> list[str]:
    """How often five neighbours tell the cell, one line per setting and kind."""
    return [
        f"{name}, {LABELS[kind]}: cells {per_seed(row['knn'] for row in group)}; "
        f"cells never learned on {per_seed(row['knn_hidden_cells'] for row in group)}"
        for (name, kind), group in by(rows, "setting", "kind").items()
    ]


def _figure_of(name: str, paper: str, claim: str, cost: str, *settings: str) -> Figure:
    return Figure(
        name=name,
        paper=paper,
        claim=claim,
        laptop_cost=cost,
        paper_cost="see `representations`",
        folder=RESULTS / "probes",
        jobs=partial(jobs, *settings),
        plot=plot,
        describe=describe,
        images=Path("docs/images"),
        earlier=partial(earlier, *settings),
    )


FIGURES = (
    _figure_of(
        "representations_probe",
        "Fig. 7 (what the embeddings keep)",
        "AP and CASM keep where the agent is and drop what it cannot influence; CASM more so.",
        "33 runs, 10 CPU-minutes in all",
        *("whole", "window", "screens"),
    ),
    _figure_of(
        "representations_history",
        "Fig. 20 (what history tells)",
        "Where history tells the action, CASnotM's loss is far below AP's and CASM's, and CASM keeps places.",
        "24 runs, 10 CPU-minutes in all",
        *("persistent", "steering"),
    ),
)
