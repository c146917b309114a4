"""The index against brute force in NumPy, after moves, loads and drift, in memories that have one.

An atom that the index loses is missed by a question asked at its very place, so every check asks there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracles import brute

from softcount import RecodeConfig, RecodeMemory
from softcount.memory.recode import NumpyEngine
from softcount.types import Array

engine_module = pytest.importorskip("softcount.memory.native_engine", reason="the native engine is not built")
NativeEngine = engine_module.NativeEngine

NUM, DIM = 2500, 6
CONFIG = RecodeConfig(size=NUM, dim=DIM, neighbours=10, kernel_epsilon=0.1, warmup_atoms=NUM)


def surface(rng: np.random.Generator, num: int, scale: float = 1.0) -> Array:
    """Points of a bent surface: few of them are near any one."""
    return (scale * np.sin(3 * rng.random((num, 2)) @ rng.standard_normal((2, DIM)))).astype(np.float32)


def state_of(rng: np.random.Generator, atoms: Array) -> dict[str, Any]:
    return {
        "atoms": atoms,
        "log_counts": rng.normal(size=len(atoms)),
        "births": np.arange(len(atoms)),
        "num_observed": len(atoms),
        "log_scale": -0.5,
        "d2_biased": 0.01,
        "d2_weight": 0.8,
    }


def indexed(config: RecodeConfig, state: dict[str, Any]) -> Any:
    """An engine with this state that has built its index."""
    engine = NativeEngine(config)
    engine.set_path("pruned")
    engine.load_state_dict(state)
    rng = np.random.default_rng(99)
    engine.observe(state["atoms"][:64], rng.random((64, 2)))
    assert engine.path == "pruned"
    return engine


def assert_no_atom_is_lost(engine: Any, others: Array, every: int = 1) -> None:
    """Asks at every n-th atom, at the youngest, and at other places."""
    state, config = engine.state_dict(), engine.config
    youngest = np.argsort(state["births"])[-200:]
    asked = np.concatenate((state["atoms"][::every], state["atoms"][youngest], others))
    expected = brute.rewards(
        state, asked, kernel_epsilon=config.kernel_epsilon, reward_constant=config.reward_constant
    )
    np.testing.assert_allclose(engine.score(asked), expected, rtol=1e-9)


def assert_learns_like_brute_force(engine: Any, rows: Array, uniforms: Array) -> None:
    """Feeds rows one by one; each must meet the atom that is nearest to it."""
    for row, uniform in zip(rows, uniforms, strict=True):
        d2 = brute.squared_distances(engine.state_dict(), row[None])[0]
        found = engine.observe(row[None], uniform[None])
        assert found.nearest[0] == d2.argmin()
        assert found.d2_nearest[0] == pytest.approx(d2.min(), rel=1e-9)


def test_scores_follow_atoms_that_were_moved() -> None:
    rng = np.random.default_rng(0)
    memory = RecodeMemory(CONFIG, seed=0, engine="native")
    memory.observe(surface(rng, NUM + 300))
    engine: Any = memory._engine
    assert engine.path == "pruned"
    before = memory.atoms
    for elsewhere in (before[::-1], before + 3, surface(rng, NUM, scale=5.0)):
        memory.observe(surface(rng, 64))  # so that an index is there again
        assert engine.path == "pruned"
        memory.move_atoms(elsewhere)
        np.testing.assert_array_equal(memory.atoms, elsewhere)
        assert_no_atom_is_lost(engine, before[::5])
        assert_learns_like_brute_force(engine, elsewhere[:40] + 0.01, rng.random((40, 2)))
        assert_no_atom_is_lost(engine, before[::5], every=5)


@pytest.mark.parametrize("num", [NUM, 2000])
def test_a_loaded_state_is_searched_and_not_the_one_before(num: int) -> None:
    rng = np.random.default_rng(1)
    engine = indexed(CONFIG, state_of(rng, surface(rng, NUM)))
    new = state_of(rng, surface(rng, num, scale=2.0))
    engine.load_state_dict(new)
    for name, value in engine.state_dict().items():
        np.testing.assert_array_equal(value, new[name], err_msg=name)
    assert_no_atom_is_lost(engine, surface(rng, 200))
    assert_learns_like_brute_force(engine, surface(rng, 60, scale=2.0), rng.random((60, 2)))
    assert_no_atom_is_lost(engine, surface(rng, 200), every=5)


@pytest.mark.parametrize("discount", [0.5, 0.99])
def test_no_atom_is_lost_that_leaves_its_group(discount: float) -> None:
    """Nothing is inserted and counts are soon forgotten, so atoms jump to whatever comes, far away too."""
    config = RecodeConfig(
        size=NUM,
        dim=DIM,
        kernel_epsilon=0.1,
        insertion_probability=0.0,
        count_discount=discount,
        embeddings_per_step=1,
    )
    rng = np.random.default_rng(2)
    engine = indexed(config, state_of(rng, surface(rng, NUM)))
    for scale in (1.0, 3.0, 10.0, 30.0):
        rows = surface(rng, 120, scale) + rng.normal(size=DIM).astype(np.float32)
        assert_learns_like_brute_force(engine, rows[:20], rng.random((20, 2)))
        engine.observe(rows[20:], rng.random((100, 2)))
        assert_no_atom_is_lost(engine, rows, every=3)
    assert engine.path == "pruned"


@pytest.mark.parametrize("removal", ["inverse_square", "smallest"])
def test_no_atom_is_lost_while_the_data_moves_away(removal: Any) -> None:
    """Every row becomes an atom far from the others: groups empty, dissolve, split and are rebuilt."""
    config = RecodeConfig(
        size=NUM,
        dim=DIM,
        kernel_epsilon=0.1,
        insertion_probability=1.0,
        far_tolerance=0.0,
        removal=removal,
        d2_step=0.01,
    )
    rng = np.random.default_rng(3)
    state = state_of(rng, surface(rng, NUM))
    engine, reference = indexed(config, state), NumpyEngine(config)
    reference.load_state_dict(engine.state_dict())
    for drift in np.linspace(0.0, 6.0, 8):
        rows = surface(rng, 500) + np.float32(drift)
        uniforms = rng.random((500, 2))
        got, want = engine.observe(rows, uniforms), reference.observe(rows, uniforms)
        np.testing.assert_array_equal(got.slot, want.slot)
        np.testing.assert_array_equal(got.merged_into, want.merged_into)
        assert_no_atom_is_lost(engine, rows[::5], every=5)
    work = engine.work()
    assert engine.path == "pruned"
    assert work["num_rows_pruned"] > 4000
    assert work["num_projected"] < 0.5 * NUM * (work["num_rows_pruned"] + work["num_heirs"])  # it does prune
