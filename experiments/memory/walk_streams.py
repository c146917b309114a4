"""Exploration without an agent: recorded walks that reach ever farther, embedded as they go.

64 copies of an 11×11 Disco Maze (walls only block) are walked at random with inertia from the start,
in episodes of 15, 30, 60, 120 and 240 steps: as in exploration, the start is visited all the time, far
places late and seldom, some never. A representation is either learned on the way from what was seen so
far, or learned on another recording of the whole maze and frozen. Every 100 steps all places are
drawn four times and embedded, so that a bonus can be asked what it would pay for each.

The memory starts after 100 steps, when the embedding has made 300 updates on them: a memory filled by an
untrained embedding may never recover (mode `cold` has no such head start).

Whatever is compared on a stream sees the same observations, embeddings and true visits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Literal, NamedTuple

import numpy as np
import torch

from experiments.agent.maze_runs import DRAWINGS, FIRST_LAYOUT
from experiments.jobs import SEEDS, Job, per_seed
from softcount.envs.disco_maze import DiscoMaze, DiscoMazeConfig
from softcount.envs.walks import Walks, walk
from softcount.measure.scored_places import agreement
from softcount.memory import RecodeConfig, RecodeMemory
from softcount.presets import LAPTOP
from softcount.representations import RepresentationTrainer, TrainerConfig, make_representation
from softcount.representations.acting import features_alone
from softcount.representations.compose import Frozen
from softcount.representations.make import RepresentationConfig
from softcount.representations.rnd import RandomDistillation
from softcount.types import Array, DiscreteActions, Sequence, Step

NUM_ENVS = 64
EPISODES = (15, 30, 60, 120, 240)
PHASE = 300
MOMENT = 100
LEARN_EVERY = 2
TRACES, LENGTH = 16, 16
PRETRAINING = 600
HEAD_START, FIRST_UPDATES = 100, 300

Mode = Literal["settling", "moving", "frozen", "cold"]
TRAINERS: dict[str, TrainerConfig] = {
    "settling": LAPTOP.trainer,
    "moving": replace(LAPTOP.trainer, schedule="constant", acting="latest"),
    "frozen": LAPTOP.trainer,
    "cold": LAPTOP.trainer,
}
"""`settling` is the laptop preset, `moving` embeds with the latest parameters at a constant rate."""


@dataclass(frozen=True)
class Stream:
    """What a bonus is shown, and the truth beside it."""

    embeddings: Array  # [T, B, D]; D = 0 for representations without
    places: Array  # [T, B]
    moments: Array  # [K] steps after which all places were looked at
    views: Array  # [K, DRAWINGS, places, D]
    surprises: Array | None  # [K, DRAWINGS, places]
    accuracy: float | None  # of action prediction, at the end
    start: int  # how many steps the memory does not see

    @property
    def num_places(self) -> int:
        return int(self.views.shape[2])

    def visits_at(self, moment: int) -> Array:
        """True visits of every place from the memory's first step to this one."""
        return np.bincount(self.places[self.start : moment].ravel(), minlength=self.num_places)


@lru_cache(maxsize=2)
def record(seed: int, window: int | None = None) -> tuple[Walks, Walks]:
    """Walks that reach ever farther, and others all over the maze to learn a frozen embedding from."""

    def stroll(max_steps: int, number: int, steps: int, warmup: int = 0) -> Walks:
        env = _maze(seed, window, max_steps=max_steps)
        return walk(env, steps, warmup=warmup, seed=100 * seed + number, blind=0.1, inertia=0.6, pushing=0.0)

    phases = [stroll(length, i, PHASE) for i, length in enumerate(EPISODES)]
    joined = Walks(
        *(np.concatenate([getattr(p, name) for p in phases]) for name in Walks.__dataclass_fields__)
    )
    joined.is_last[PHASE - 1 :: PHASE] = True  # a phase ends where the next one starts
    return joined, stroll(1_000_000, 9, 500, warmup=500)


class Moment(NamedTuple):
    """One step of the walks, as a representation sees it that has learned from all before."""

    t: int
    observation: Array  # [B, ...]
    place: Array  # [B]
    embed: Callable[[Array], tuple[Array, Array | None]]  # observations to embeddings and surprises
    accuracy: float | None  # of action prediction in the last update


def embedded_walks(
    seed: int,
    kind: str = "ap",
    mode: Mode = "settling",
    window: int | None = None,
    config: RepresentationConfig = LAPTOP.representation,
) -> Iterator[Moment]:
    """Goes through the walks of a seed with a representation that learns on the way, or before."""
    torch.set_num_threads(1)
    walks, elsewhere = record(seed, window)
    maze = _maze(seed, window)
    spec, actions = maze.observation_spec, maze.action_spec
    model = make_representation(kind, spec, actions, config, seed=seed)
    acting = make_representation(kind, spec, actions, config, seed=seed)
    rng = np.random.default_rng([seed, 5])
    trainer = RepresentationTrainer(model, TRAINERS[mode])
    if mode == "frozen":
        _pretrain(model, elsewhere, rng)
        trainer = RepresentationTrainer(model, TRAINERS["moving"])  # what still learns, if anything
        acting.load_state_dict(trainer.acting_state())
    metrics: dict[str, float] = {}
    for t in range(len(walks.place)):
        num_updates = FIRST_UPDATES if t == HEAD_START and mode != "cold" else int(t % LEARN_EVERY == 0)
        if t >= LENGTH and num_updates:
            if trainer.needs_statistics:
                trainer.learn_statistics(walks.observation[:t].reshape(-1, *walks.observation.shape[2:]))
            for _ in range(num_updates):
                metrics = trainer.update(_traces(walks, t, rng)) or metrics
            acting.load_state_dict(trainer.acting_state())
        embed = partial(_features, acting)
        yield Moment(t, walks.observation[t], walks.place[t], embed, metrics.get("accuracy"))


@lru_cache(maxsize=8)
def make_stream(
    seed: int,
    kind: str = "ap",
    mode: Mode = "settling",
    window: int | None = None,
    config: RepresentationConfig = LAPTOP.representation,
) -> Stream:
    """Embeds the walks of a seed once for all memories that shall see them."""
    rows: list[Array] = []
    places: list[Array] = []
    views: list[list[Array]] = []
    surprises: list[list[Array | None]] = []
    drawn = draw_places(seed, window)
    for moment in embedded_walks(seed, kind, mode, window, config):
        rows.append(moment.embed(moment.observation)[0])
        places.append(moment.place)
        if (moment.t + 1) % MOMENT == 0:
            seen = [moment.embed(image) for image in drawn]
            views.append([embedding for embedding, _ in seen])
            surprises.append([surprise for _, surprise in seen])
    return Stream(
        embeddings=np.stack(rows),
        places=np.stack(places),
        moments=np.arange(MOMENT, len(rows) + 1, MOMENT),
        views=np.array(views),
        surprises=None if surprises[0][0] is None else np.array(surprises),
        accuracy=moment.accuracy,
        start=start_of(mode),
    )


def start_of(mode: Mode) -> int:
    """Returns how many steps the memory does not see."""
    return 0 if mode == "cold" else HEAD_START


def replay(stream: Stream, memory: RecodeMemory, *, keep: bool = False) -> dict[str, Any]:
    """Feeds a stream to a memory; returns how well its scores follow the true visits at each moment."""
    course, scores = [], np.zeros(stream.num_places)
    for t, rows in enumerate(stream.embeddings[stream.start :], start=stream.start + 1):
        memory.observe(rows)
        if t % MOMENT == 0 and t > HEAD_START:
            scores = np.mean([memory.score(view) for view in stream.views[t // MOMENT - 1]], axis=0)
            course.append(judge(scores, stream.visits_at(t)))
    found = {**summarise(course), "atoms": len(memory)}
    if keep:
        found["scores"], found["visits"] = scores.round(6).tolist(), stream.visits_at(t).tolist()
    return found


def steps_of(course: Any) -> Array:
    """Returns the actor steps at which a course was measured."""
    return NUM_ENVS * (HEAD_START + MOMENT * np.arange(1, 1 + len(course)))


def draw_courses(axes: Any, courses: Iterable[Any], colour: str, label: str) -> None:
    """Draws how the agreement went: thin lines seeds, a thick one their mean; nothing if there are none."""
    found = np.array(list(courses))
    if len(found) == 0:
        return
    steps = steps_of(found[0])
    axes.plot(steps, found.T, color=colour, linewidth=0.6, alpha=0.5)
    axes.plot(steps, found.mean(axis=0), color=colour, linewidth=2, label=label)


class Judgement(NamedTuple):
    """How well scores follow true visits at one moment."""

    agreement: float
    """That of `measure.scored_places`."""
    contrast: float | None
    """Pay of rare places (at most 10 visits) over that of common ones (at least 500), None without either."""


def judge(scores: Array, visits: Array) -> Judgement:
    """Compares the scores of places with their true visits."""
    rare, common = scores[visits <= 10], scores[visits >= 500]
    contrast = float(rare.mean() / common.mean()) if len(rare) and len(common) else None
    return Judgement(agreement(scores, visits), contrast)


def summarise(course: list[Judgement]) -> dict[str, Any]:
    """Returns the course of the agreement, its mean, and the median of the contrasts that there are."""
    contrasts = [step.contrast for step in course if step.contrast is not None]
    return {
        "course": [round(step.agreement, 4) for step in course],
        "agreement": float(np.mean([step.agreement for step in course])),
        "contrast": float(np.median(contrasts)) if contrasts else None,
    }


def describe_courses(label: str, found: Iterable[Mapping[str, Any]]) -> list[str]:
    """Says how the agreement was over the walk and at its end, a number a seed; nothing if there is none."""
    rows = list(found)
    means, ends = per_seed(row["agreement"] for row in rows), per_seed(row["course"][-1] for row in rows)
    return [f"{label}: mean {means}; at the end {ends}"] if rows else []


def walk_jobs(
    label: str, names: Iterable[Any], measure: Callable[[Any, int], Mapping[str, Any]]
) -> list[Job]:
    """Returns one job per seed and name, seeds outermost; `label` is what the files call the name."""
    return [
        Job(
            key=f"{name.replace(',', '').replace(' ', '-')}-seed{seed}",
            seed=seed,
            settings={label: name, "steps": 96_000},
            measure=partial(measure, name, seed),
        )
        for seed in SEEDS
        for name in names
    ]


def memory_config(**fields: Any) -> RecodeConfig:
    """The laptop preset's memory for these embeddings, with some fields replaced."""
    dim = LAPTOP.representation.embedding.dim
    return replace(LAPTOP.recode.memory, **{"dim": dim, "embeddings_per_step": NUM_ENVS, **fields})


def draw_places(seed: int, window: int | None) -> list[Array]:
    """Returns four pictures of every place, walls coloured anew: palette arrays `[places, H, W]`."""
    env, rng = _maze(seed, window), np.random.default_rng([seed, 6])
    return [env.portray(np.arange(len(env.maze.cells)), rng) for _ in range(DRAWINGS)]


def _maze(seed: int, window: int | None, **options: Any) -> DiscoMaze:
    config = DiscoMazeConfig(
        size=11, layout=FIRST_LAYOUT + seed, lethal=False, observation="palette", window=window, **options
    )
    return DiscoMaze(config, num_envs=NUM_ENVS)


def _pretrain(model: Any, walks: Walks, rng: np.random.Generator) -> None:
    """Learns from another recording and freezes what embeds; a predictor on top of it goes on learning."""
    inner = model.on if isinstance(model, RandomDistillation) and model.on is not None else model
    if not any(p.requires_grad for p in inner.parameters()):
        return
    trainer = RepresentationTrainer(inner, TRAINERS["settling"])
    for _ in range(PRETRAINING):
        trainer.update(_traces(walks, len(walks.place), rng))
    inner.load_state_dict(trainer.acting_state())
    Frozen(inner)  # no gradient any more


def _traces(walks: Walks, t: int, rng: np.random.Generator) -> Sequence:
    """Random traces of the first t steps."""
    starts = rng.integers(t - LENGTH + 1, size=TRACES)
    rows, env = starts + np.arange(LENGTH)[:, None], rng.integers(NUM_ENVS, size=TRACES)
    is_first, is_last, action = (x[rows, env] for x in (walks.is_first, walks.is_last, walks.action))
    previous = np.where(is_first, 0, walks.action[np.maximum(rows - 1, 0), env])
    nothing = np.zeros(action.shape, np.float32)
    observation = walks.observation[rows, env]
    return Sequence(Step(observation, previous, nothing, nothing, is_first, is_last, is_last, action, {}), ())


def _features(model: Any, observation: Array) -> tuple[Array, Array | None]:
    features = features_alone(model, observation, DiscreteActions(4))
    nowhere = np.zeros((len(observation), model.dim or 0), np.float32)
    return nowhere if features.embedding is None else features.embedding, features.surprise
