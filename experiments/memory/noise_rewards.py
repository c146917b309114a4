"""White noise beside the picture: who stops paying for places it knows? (§4, noisy Montezuma)

Random walks through an 11×11 maze whose picture carries a panel of fresh uniform noise of
the same size. AP first learns on a recording of its own until it tells actions (with a
drifting embedding RECODE's counts mean nothing); then memory and RND start empty, both
representations learn from the same traces, and RECODE pays for AP's embeddings, RND for its
errors, both raw. Each reward is filed under how often its place had been visited before, by
anyone: a bonus that counts places falls. A tenth of the places is withheld throughout, and both
bonuses are asked all the time what these are worth. A reward over that of a place never visited, at
the same time, tells what visits did from what time did: RND's predictor learns what all pictures share.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.drawing import BONUS_COLOURS, WIDTH, legend_beside, new_figure
from experiments.figure import Figure
from experiments.jobs import SEEDS, Job, Row, per_seed
from softcount.bonuses import NormaliserConfig, Recode, RecodeBonusConfig, Surprise, SurpriseConfig
from softcount.envs.disco_maze import DiscoMaze, DiscoMazeConfig
from softcount.envs.noise import NoisyVector
from softcount.envs.walks import Walks, walk
from softcount.memory import RecodeConfig
from softcount.optimiser import OptimiserConfig
from softcount.representations import RepresentationTrainer, TrainerConfig, make_representation
from softcount.representations.acting import features_alone
from softcount.representations.make import GRID
from softcount.types import Array, DiscreteActions, Features, Sequence, Step

NUM_ENVS = 16
WARMUP_UPDATES = 700
STEPS = 1000
LEARN_EVERY = 4
TRACES, LENGTH = 16, 9
CHUNK = 100
EDGES = np.array([0, 10, 20, 40, 80, 160, 320, 10**9])
MEMORY = RecodeConfig(
    size=100, dim=16, neighbours=5, warmup_atoms=100, count_discount=0.9999, embeddings_per_step=NUM_ENVS
)
RAW = NormaliserConfig(kind="none")
AP_TRAINER = TrainerConfig(
    optimiser=OptimiserConfig(learning_rate=2e-3, weight_decay=0.01),
    schedule="saturating",
    acting="slow",
    slow_step=0.02,
)
RND_TRAINER = TrainerConfig(optimiser=OptimiserConfig(learning_rate=1e-3, weight_decay=0.0))


def measure(seed: int) -> dict[str, Any]:
    """One walk; mean rewards by how often a place was visited before, and scores of new places."""
    torch.set_num_threads(1)
    config = DiscoMazeConfig(size=11, layout=seed, lethal=False, max_steps=1_000_000)
    env = NoisyVector(DiscoMaze(config, num_envs=NUM_ENVS, seed=seed), seed=seed)
    before, walks = (
        walk(env, STEPS, warmup=1000, seed=10 * seed + i, blind=0.1, inertia=0.6, pushing=0.0) for i in (1, 2)
    )
    rng = np.random.default_rng([seed, 3])
    num_places = int(env.num_places or 0)
    withheld = rng.choice(num_places, num_places // 10, replace=False)
    specs = env.observation_spec, env.action_spec
    ap, acting = (make_representation("ap", *specs, GRID, seed=seed) for _ in range(2))
    rnd = make_representation("rnd", *specs, GRID, seed=seed)
    ap_trainer, rnd_trainer = RepresentationTrainer(ap, AP_TRAINER), RepresentationTrainer(rnd, RND_TRAINER)
    for _ in range(WARMUP_UPDATES):
        metrics = ap_trainer.update(_traces(before, STEPS, withheld, rng))
    recode = Recode(RecodeBonusConfig(memory=MEMORY, normaliser=RAW), seed=seed)
    surprise = Surprise(SurpriseConfig(normaliser=RAW))
    visits = np.zeros(num_places, np.int64)
    paid: list[tuple[Array, ...]] = []
    asked: list[tuple[Array, ...]] = []
    for t in range(STEPS):
        if t % LEARN_EVERY == 0:
            traces = _traces(walks, max(t, 2 * LENGTH), withheld, rng)
            metrics = ap_trainer.update(traces)
            rnd_trainer.update(traces)
            acting.load_state_dict(ap_trainer.acting_state())
        is_withheld = np.isin(walks.place[t], withheld)
        ids = np.flatnonzero(~is_withheld)
        features = _features(acting, rnd, walks.observation[t, ids])
        is_first, place = walks.is_first[t, ids], walks.place[t, ids]
        rewards = recode.observe(features, ids, is_first), surprise.observe(features, ids, is_first)
        if recode.is_paying:
            paid.append((np.full(len(ids), t), visits[place], *rewards))
        if recode.is_paying and is_withheld.any():
            unseen = _features(acting, rnd, walks.observation[t, is_withheld])
            asked.append((np.full(is_withheld.sum(), t), recode.score(unseen), surprise.score(unseen)))
        np.add.at(visits, place, 1)
    return {
        "steps": STEPS * NUM_ENVS,
        "updates_before": WARMUP_UPDATES,
        "updates": rnd_trainer.num_updates,
        "action_accuracy": metrics["accuracy"],
        **by_visits(*([np.concatenate(x) for x in zip(*rows, strict=True)] for rows in (paid, asked))),
        **_new_against_known(acting, rnd, recode, surprise, walks, withheld),
    }


def by_visits(paid: list[Array], asked: list[Array]) -> dict[str, list[float | None]]:
    """Files rewards under earlier visits to their place: as paid, and over those of places never visited.

    `paid` are times, visits, and the rewards of RECODE-AP and RND; `asked` are times and what both would
    pay for places never visited. The latter are averaged over `CHUNK` steps.
    """
    t, visits, *rewards = paid
    t_new, *scores = asked
    bins = [np.digitize(visits, EDGES) - 1 == i for i in range(len(EDGES) - 1)]
    filed = {"visits": _means(visits, bins)}
    for name, reward, score in zip(("recode_ap", "rnd"), rewards, scores, strict=True):
        sums, nums = (np.bincount(t_new // CHUNK, weights) for weights in (score, None))
        filed[name] = _means(reward, bins)
        filed[f"{name}_over_new"] = _means(reward / (sums / nums)[t // CHUNK], bins)
    return filed


def _means(values: Array, bins: list[Array]) -> list[float | None]:
    """Means over the rows of each bin, None where it is empty."""
    return [float(values[rows].mean()) if rows.any() else None for rows in bins]


def _new_against_known(
    ap: Any, rnd: Any, recode: Recode, surprise: Surprise, walks: Walks, withheld: Array
) -> dict[str, float]:
    """Mean score of withheld places over that of known ones, at the end."""
    observation, place = walks.observation[-300:].reshape(-1, 22, 11, 3), walks.place[-300:].ravel()
    features = _features(ap, rnd, observation)
    is_new = np.isin(place, withheld)
    ratios = {}
    for name, score in (("recode_ap", recode.score(features)), ("rnd", surprise.score(features))):
        ratios[f"{name}_new_over_known"] = float(score[is_new].mean() / score[~is_new].mean())
    return ratios


def _features(ap: Any, rnd: Any, observation: Array) -> Features:
    own, other = (features_alone(model, observation, DiscreteActions(4)) for model in (ap, rnd))
    return Features(own.embedding, other.surprise)


def _traces(walks: Walks, t: int, withheld: Array, rng: np.random.Generator) -> Sequence:
    """Random traces of the past that never touch a withheld place."""
    starts = rng.integers(t - LENGTH + 1, size=40 * TRACES)
    rows, env = starts + np.arange(LENGTH)[:, None], rng.integers(NUM_ENVS, size=40 * TRACES)
    keep = np.flatnonzero(~np.isin(walks.place[rows, env], withheld).any(0))[:TRACES]
    rows, env = rows[:, keep], env[keep]
    is_first, is_last, action = walks.is_first[rows, env], walks.is_last[rows, env], walks.action[rows, env]
    nothing, never = np.zeros(action.shape, np.float32), np.zeros_like(action)
    observation = walks.observation[rows, env]
    return Sequence(Step(observation, never, nothing, nothing, is_first, is_last, is_last, action, {}), ())


def jobs() -> list[Job]:
    return [Job(key=f"noise__seed{seed}", seed=seed, measure=partial(measure, seed)) for seed in SEEDS]


def earlier() -> Mapping[str, Row]:
    """Rows of the file that held all seeds."""
    path = Path("results/representations/noise.json")
    rows = json.loads(path.read_text()) if path.exists() else []
    return {f"noise__seed{row['seed']}": row for row in rows}


def plot(rows: list[Row]) -> Any:
    """Draws rewards by visits: against those of the least visited places, and of places never visited."""
    figure = new_figure(WIDTH, 3.8)
    axes = figure.subplots(1, 2)
    for name, label, bonus in (("recode_ap", "RECODE-AP", "RECODE"), ("rnd", "RND", "RND")):
        for row in rows:
            for axis, suffix in zip(axes, ("", "_over_new"), strict=True):
                pairs = zip(row["visits"], row[name + suffix], strict=True)
                x, y = np.array([(v, r) for v, r in pairs if r is not None]).T
                scaled = y if suffix else y / y[0]
                axis.plot(x, scaled, "o-", color=BONUS_COLOURS[bonus], markersize=3, label=label)
    for axis, what in zip(axes, ("under 10 visits", "never-visited places at the time"), strict=True):
        axis.set_xscale("log")
        axis.set_ylim(0, None)
        axis.set_xlabel("earlier visits to the place")
        axis.set_ylabel(f"reward / reward of {what}", fontsize=8)
    legend_beside(figure)
    return figure


def describe(rows: list[Row]) -> list[str]:
    """What new places are paid over known ones, at the end."""
    return [
        f"{label}: new over known {per_seed(row[f'{name}_new_over_known'] for row in rows)}"
        for name, label in (("recode_ap", "RECODE-AP"), ("rnd", "RND"))
    ]


FIGURE = Figure(
    name="noise_rewards",
    paper="Fig. 6 (the rewards behind it)",
    claim="With noise beside the picture RECODE-AP stops paying for known places, RND does not.",
    laptop_cost="1 CPU-minute",
    paper_cost="see `noise`",
    folder=Path("results/representations/noise"),
    jobs=jobs,
    plot=plot,
    describe=describe,
    images=Path("docs/images"),
    earlier=earlier,
)
