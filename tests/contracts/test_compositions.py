"""Every representation with every bonus it can feed: the cut of the project, run through."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from softcount import store
from softcount.bonuses import NormaliserConfig
from softcount.bonuses.make import BonusConfig, Place, make_bonus
from softcount.bonuses.recode import RecodeBonusConfig
from softcount.memory import RecodeConfig
from softcount.representations.casm import CasmConfig
from softcount.representations.embedding import EmbeddingConfig
from softcount.representations.gated_transformer import GatedTransformerConfig
from softcount.representations.make import GRID, RepresentationConfig, make_representation
from softcount.representations.trainer import RepresentationTrainer, TrainerConfig
from softcount.taxonomy import Recipe, parse
from softcount.tensors import to_tensors
from softcount.types import ArraySpec, DiscreteActions, Features, Sequence, Step

NUM_ENVS, STEPS, LENGTH = 3, 48, 12
SPEC, ACTIONS = ArraySpec((5,), "float32"), DiscreteActions(3)
SMALL = RepresentationConfig(
    embedding=EmbeddingConfig(torso="mlp", dim=4),
    casm=CasmConfig(
        transformer=GatedTransformerConfig(num_layers=1, width=16, num_heads=2, hidden_sizes=(16,))
    ),
    byol=replace(GRID.byol, horizon=3, state_size=16),
    rnd=replace(GRID.rnd, torso="mlp", outputs=8),
)
NAMES = [
    f"{bonus}-{embedding}"
    for bonus in ("RECODE", "EMM", "NGU")
    for embedding in ("AP", "CASM", "CASnotM", "BYOL", "RANDOM", "FRAME")
] + ["RND", "RNDonAP", "BYOL-Explore"]


class Pair:
    """A representation in training and the bonus on top of it."""

    def __init__(self, name: str, seed: int = 0) -> None:
        self.recipe: Recipe = parse(name)
        kind = self.recipe.representation_kind
        representation = make_representation(kind, SPEC, ACTIONS, SMALL, seed=seed)
        self.trainer = RepresentationTrainer(representation, TrainerConfig())
        memory = RecodeConfig(size=40, neighbours=3, warmup_atoms=6)
        recode = RecodeBonusConfig(memory=memory, normaliser=NormaliserConfig(kind="none"))
        bonus = make_bonus(
            self.recipe.bonus,
            BonusConfig(recode=recode),
            Place(
                dim=representation.dim,
                representation=self.recipe.representation,
                num_envs=NUM_ENVS,
                seed=seed,
            ),
        )
        assert bonus is not None
        self.bonus = bonus

    def run(self, data: Step, start: int, end: int) -> np.ndarray:
        """Acts through rows `start … end`, learning from the last `LENGTH` rows every so often."""
        rewards = []
        for t in range(start, end):
            rewards.append(self.act(data, t))
            if t % LENGTH == LENGTH - 1:
                rows = window(data, t - LENGTH + 1, t + 1)
                self.trainer.update(rows)
                if self.bonus.paid_in == "learning":
                    rewards[-1] = self.learn_rewards(rows)[-1]
        return np.stack(rewards)

    @torch.no_grad()
    def act(self, data: Step, t: int) -> np.ndarray:
        module = self.trainer.representation.eval()
        inputs = to_tensors((data.observation[t], data.prev_action[t], data.is_first[t]))
        features, _ = module.represent(*inputs, module.initial_state(NUM_ENVS))
        if self.bonus.paid_in == "learning":
            return np.zeros(NUM_ENVS, np.float32)
        arrays = Features(*(None if part is None else part.numpy() for part in features))
        if not self.bonus.can_read(arrays):
            return np.zeros(NUM_ENVS, np.float32)
        return self.bonus.observe(arrays, np.arange(NUM_ENVS), data.is_first[t])

    def learn_rewards(self, rows: Sequence) -> np.ndarray:
        surprise = self.trainer.representation.surprise(to_tensors(rows)).numpy()
        ids = np.tile(np.arange(NUM_ENVS), LENGTH)
        flat = self.bonus.observe(Features(surprise=surprise.ravel()), ids, rows.steps.is_first.ravel())
        return flat.reshape(surprise.shape)

    def state_dict(self):
        return {"trainer": self.trainer.state_dict(), "bonus": self.bonus.state_dict()}

    def load_state_dict(self, state):
        self.trainer.load_state_dict(state["trainer"])
        self.bonus.load_state_dict(state["bonus"])


def walk(seed: int = 0) -> Step:
    """A random walk in five dimensions; episodes of 13 to 17 steps."""
    rng = np.random.default_rng(seed)
    is_first = np.stack([np.arange(STEPS) % (13 + 2 * i) == 0 for i in range(NUM_ENVS)], 1)
    is_last = np.roll(is_first, -1, axis=0)
    moves = rng.normal(size=(STEPS, NUM_ENVS, 5)).astype(np.float32)
    observation = np.where(is_first[..., None], 0, moves).cumsum(0).astype(np.float32)
    action = rng.integers(0, 3, (STEPS, NUM_ENVS))
    prev_action = np.where(is_first, 0, np.roll(action, 1, axis=0))
    nothing = np.zeros((STEPS, NUM_ENVS), np.float32)
    return Step(observation, prev_action, nothing, nothing, is_first, is_last, is_last, action, {})


def window(data: Step, start: int, end: int) -> Sequence:
    return Sequence(Step(*(part[start:end] for part in data[:-1]), {}), ())


@pytest.mark.parametrize("name", NAMES)
def test_it_pays_is_seeded_and_continues_from_disk_bit_for_bit(name, tmp_path):
    data = walk()
    copies = [np.array(part) for part in data[:-1]]
    one, two = Pair(name), Pair(name)
    rewards = one.run(data, 0, 30)
    np.testing.assert_array_equal(rewards, two.run(data, 0, 30))

    store.save(tmp_path / "pair", one.state_dict(), kind="pair")
    other = Pair(name, seed=1)
    other.load_state_dict(store.load(tmp_path / "pair", kind="pair"))
    rest = one.run(data, 30, STEPS)
    np.testing.assert_array_equal(rest, other.run(data, 30, STEPS))

    paid = np.concatenate((rewards, rest))
    assert paid.dtype == np.float32
    assert np.isfinite(paid).all()
    assert (paid >= 0).all()
    assert (paid[data.is_first] == 0).all()
    if name not in ("RND", "RNDonAP"):  # which gather 100 rewards first
        assert paid.max() > 0
    for part, copy in zip(data[:-1], copies):
        np.testing.assert_array_equal(part, copy)


def test_every_combination_of_the_taxonomy_is_here():
    from softcount.taxonomy import EMBEDDINGS, ON_EMBEDDINGS, WHOLE

    every = {f"{bonus}-{part}" for bonus in ON_EMBEDDINGS for part in EMBEDDINGS} | set(WHOLE) - {"COUNT"}
    assert set(NAMES) == every
