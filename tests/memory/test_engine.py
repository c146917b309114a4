"""The native engine makes the decisions of the NumPy engine, whatever path, batch or kernels it uses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softcount import RecodeConfig
from softcount.memory.recode import NumpyEngine, Observed
from softcount.types import Array

engine_module = pytest.importorskip("softcount.memory.native_engine", reason="the native engine is not built")
NativeEngine = engine_module.NativeEngine

DECISIONS = ("nearest", "is_far", "is_inserted", "slot", "merged_into")
VALUES = ("reward", "soft_count", "d2_nearest")
PATHS = ("brute", "pruned", "auto")


def gauss(rng: np.random.Generator, num: int, dim: int) -> Array:
    return rng.standard_normal((num, dim)).astype(np.float32)


def walk(rng: np.random.Generator, num: int, dim: int) -> Array:
    return np.cumsum(0.05 * rng.standard_normal((num, dim)), axis=0).astype(np.float32)


def grid(rng: np.random.Generator, num: int, dim: int) -> Array:
    """Few whole numbers: ties everywhere."""
    return rng.integers(0, 3, (num, dim)).astype(np.float32)


def duplicates(rng: np.random.Generator, num: int, dim: int) -> Array:
    return np.repeat(gauss(rng, num // 8 + 1, dim), 8, axis=0)[:num]


def far_away(rng: np.random.Generator, num: int, dim: int) -> Array:
    """|e| / d is about 1000."""
    return (0.1 * rng.standard_normal((num, dim)) + 100.0).astype(np.float32)


def all_magnitudes(rng: np.random.Generator, num: int, dim: int) -> Array:
    """From squares that underflow in float32 to the largest float32."""
    scale = 10.0 ** rng.uniform(-30, 38.5, (num, 1))
    return np.clip(rng.standard_normal((num, dim)) * scale, -3.4e38, 3.4e38).astype(np.float32)


STREAMS = (gauss, walk, grid, duplicates, far_away, all_magnitudes)
CONFIGS: dict[str, dict[str, Any]] = {
    "paper": {"size": 300, "dim": 8},
    "smallest, three dimensions": {"size": 60, "dim": 3, "removal": "smallest", "insertion_probability": 0.5},
    "inverse, quick discount": {
        "size": 200,
        "dim": 32,
        "removal": "inverse",
        "count_discount": 0.9,
        "embeddings_per_step": 1,
        "insertion_probability": 0.3,
    },
    "literal tau": {
        "size": 100,
        "dim": 17,
        "d2_step": 0.9999,
        "insertion_probability": 1.0,
        "count_discount": 1.0,
    },
    "always insert": {
        "size": 400,
        "dim": 5,
        "insertion_probability": 1.0,
        "far_tolerance": 0.0,
        "warmup_atoms": 500,
    },
    "never insert": {"size": 250, "dim": 4, "insertion_probability": 0.0},
    "never far": {"size": 250, "dim": 6, "far_tolerance": 1e6, "insertion_probability": 1.0, "neighbours": 7},
    "one atom": {"size": 1, "dim": 2, "insertion_probability": 1.0, "far_tolerance": 0.0},
    "more neighbours than atoms": {"size": 40, "dim": 9, "neighbours": 64, "insertion_probability": 0.5},
}


def run(engine: Any, data: Array, uniforms: Array, batch: int) -> Observed:
    parts = [engine.observe(data[i : i + batch], uniforms[i : i + batch]) for i in range(0, len(data), batch)]
    return Observed(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def assert_same_outcome(got: Observed, want: Observed, rtol: float = 1e-12) -> None:
    for name in DECISIONS:
        np.testing.assert_array_equal(getattr(got, name), getattr(want, name), err_msg=name)
    for name in VALUES:
        np.testing.assert_allclose(getattr(got, name), getattr(want, name), rtol=rtol, atol=0, err_msg=name)


def assert_same_state(got: Any, want: Any, rtol: float = 1e-12) -> None:
    a, b = got.state_dict(), want.state_dict()
    assert a.keys() == b.keys()
    for name in ("atoms", "births", "num_observed"):
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)
    assert a["atoms"].dtype == b["atoms"].dtype
    for name in ("log_counts", "log_scale", "d2_biased", "d2_weight"):
        np.testing.assert_allclose(a[name], b[name], rtol=rtol, atol=1e-12, err_msg=name)


def assert_bit_equal(got: Any, want: Any) -> None:
    for name, value in want.items() if isinstance(want, dict) else want._asdict().items():
        other = got[name] if isinstance(got, dict) else getattr(got, name)
        np.testing.assert_array_equal(other, value, err_msg=name)


@pytest.mark.parametrize("settings", CONFIGS.values(), ids=CONFIGS.keys())
@pytest.mark.parametrize("make", STREAMS, ids=lambda make: make.__name__)
def test_native_decides_and_pays_like_numpy(make: Any, settings: dict[str, Any]) -> None:
    config = RecodeConfig(**settings)
    rng = np.random.default_rng(0)
    data, uniforms = make(rng, 900, config.dim), rng.random((900, 2))
    numpy = NumpyEngine(config)
    want = run(numpy, data, uniforms, 900)
    for path, batch in (("brute", 64), ("pruned", 16), ("auto", 256), ("brute", 1), ("pruned", 3)):
        native = NativeEngine(config)
        native.set_path(path)
        assert_same_outcome(run(native, data, uniforms, batch), want)
        assert_same_state(native, numpy)


@pytest.mark.parametrize("make", [gauss, walk, grid], ids=lambda make: make.__name__)
def test_native_is_numpy_in_a_full_memory_with_many_groups(make: Any) -> None:
    """Large enough for splits, rebuilt and dissolved groups of the index."""
    config = RecodeConfig(size=3000, dim=6, insertion_probability=1.0, far_tolerance=0.05, warmup_atoms=3000)
    rng = np.random.default_rng(1)
    data, uniforms = make(rng, 7000, 6), rng.random((7000, 2))
    numpy, native = NumpyEngine(config), NativeEngine(config)
    native.set_path("pruned")
    assert_same_outcome(run(native, data, uniforms, 64), run(numpy, data, uniforms, 64))
    assert_same_state(native, numpy)


def test_pruned_is_brute_bit_for_bit_while_the_data_moves_away() -> None:
    """Every atom is replaced several times, so groups empty and new ones grow."""
    config = RecodeConfig(size=4000, dim=16, insertion_probability=0.8, far_tolerance=0.01, warmup_atoms=4000)
    rng = np.random.default_rng(2)
    latent = rng.random((20_000, 3)) + np.linspace(0, 4, 20_000)[:, None]
    data = np.tanh(latent @ rng.standard_normal((3, 16))).astype(np.float32)
    uniforms = rng.random((len(data), 2))
    brute, pruned = NativeEngine(config), NativeEngine(config)
    brute.set_path("brute")
    pruned.set_path("pruned")
    assert_bit_equal(run(pruned, data, uniforms, 64), run(brute, data, uniforms, 256))
    assert_bit_equal(pruned.state_dict(), brute.state_dict())
    assert pruned.work()["num_rows_pruned"] > 19_000
    assert brute.work()["num_rows_pruned"] == 0
    scanned = pruned.work()["num_projected"] / pruned.work()["num_rows_pruned"]
    assert scanned < 0.25 * config.size  # it does prune


@pytest.mark.parametrize("path", PATHS)
def test_score_is_the_reward_that_observe_would_pay(path: str) -> None:
    config = RecodeConfig(size=2000, dim=4, insertion_probability=0.5)
    rng = np.random.default_rng(3)
    engine = NativeEngine(config)
    engine.set_path(path)
    for batch in np.split(walk(rng, 4000, 4), 100):
        before = engine.state_dict()
        scores = engine.score(batch)
        assert_bit_equal(engine.state_dict(), before)
        assert scores[0] == engine.observe(batch[:1], rng.random((1, 2))).reward[0]
        engine.observe(batch[1:], rng.random((39, 2)))
    reference = NumpyEngine(config)
    reference.load_state_dict(engine.state_dict())
    np.testing.assert_allclose(engine.score(batch), reference.score(batch), rtol=1e-12)


def test_baseline_and_widest_kernels_agree_bit_for_bit() -> None:
    config = RecodeConfig(size=1500, dim=19, insertion_probability=0.7, far_tolerance=0.01)
    rng = np.random.default_rng(4)
    data, uniforms = walk(rng, 4000, 19), rng.random((4000, 2))
    results = []
    for only_baseline in (False, True):
        for path in ("brute", "pruned"):
            engine = NativeEngine(config, only_baseline=only_baseline)
            engine.set_path(path)
            results.append((run(engine, data, uniforms, 64), engine.state_dict()))
    assert NativeEngine(config, only_baseline=True).kernels == "baseline"
    for outcome, state in results[1:]:
        assert_bit_equal(outcome, results[0][0])
        assert_bit_equal(state, results[0][1])


@pytest.mark.parametrize("removal", ["inverse_square", "inverse", "smallest"])
def test_a_state_moves_between_engines_in_mid_stream(removal: str) -> None:
    config = RecodeConfig(size=200, dim=5, removal=removal, insertion_probability=0.5, count_discount=0.9)
    rng = np.random.default_rng(5)
    data, uniforms = gauss(rng, 1500, 5), rng.random((1500, 2))
    reference = NumpyEngine(config)
    want = run(reference, data, uniforms, 500)
    engines = [NumpyEngine(config), NativeEngine(config), NumpyEngine(config), NativeEngine(config)]
    engines[3].set_path("pruned")
    got, cuts = [], (0, 100, 150, 700, 1500)
    for i, engine in enumerate(engines):
        if i > 0:
            engine.load_state_dict(engines[i - 1].state_dict())
            assert_bit_equal(engine.state_dict(), engines[i - 1].state_dict())
        part = slice(cuts[i], cuts[i + 1])
        got.append(run(engine, data[part], uniforms[part], 64))
    assert_same_outcome(Observed(*(np.concatenate(c) for c in zip(*got, strict=True))), want)
    assert_same_state(engines[-1], reference)


def test_counts_fold_like_numpy_when_the_common_scale_runs_out() -> None:
    config = RecodeConfig(
        size=50, dim=2, count_discount=0.5, embeddings_per_step=1, insertion_probability=0.2, warmup_atoms=20
    )
    rng = np.random.default_rng(6)
    data, uniforms = gauss(rng, 6000, 2), rng.random((6000, 2))
    numpy, native = NumpyEngine(config), NativeEngine(config)
    assert_same_outcome(run(native, data, uniforms, 64), run(numpy, data, uniforms, 64))
    assert_same_state(native, numpy)
    assert native.state_dict()["log_counts"].min() < -1000  # it did fold


def test_total_count_is_discounted_then_grows_by_one() -> None:
    config = RecodeConfig(
        size=500, dim=4, insertion_probability=0.5, count_discount=0.99, embeddings_per_step=4
    )
    rng = np.random.default_rng(7)
    engine = NativeEngine(config)
    engine.observe(gauss(rng, 3000, 4), rng.random((3000, 2)))
    state = engine.state_dict()
    g = config.embedding_discount
    total = np.exp(state["log_counts"] + state["log_scale"]).sum()
    assert total == pytest.approx((1 - g**3000) / (1 - g), rel=1e-10)


@pytest.mark.parametrize("removal", ["inverse_square", "inverse", "smallest"])
@pytest.mark.parametrize("make", [gauss, grid], ids=lambda make: make.__name__)
def test_heirs_scanned_for_in_advance_are_those_searched_for_one_by_one(make: Any, removal: Any) -> None:
    """Batches guess whom they will remove, single rows do not; changes overtake some of the guesses."""
    config = RecodeConfig(
        size=300, dim=5, removal=removal, insertion_probability=0.5, count_discount=0.9, far_tolerance=0.02
    )
    rng = np.random.default_rng(12)
    data, uniforms = make(rng, 4000, 5), rng.random((4000, 2))
    engines = [NativeEngine(config) for _ in range(3)]
    for engine in engines:
        engine.set_path("brute")
    want = run(engines[0], data, uniforms, 1)
    for engine, batch in zip(engines[1:], (16, 256), strict=True):
        assert_bit_equal(run(engine, data, uniforms, batch), want)
        assert_bit_equal(engine.state_dict(), engines[0].state_dict())
        work = engine.work()
        assert 0 < work["num_foreseen"] < work["num_heirs"]
    assert engines[0].work()["num_foreseen"] == 0


def test_auto_leaves_the_index_on_noise_and_keeps_it_on_structure() -> None:
    rng = np.random.default_rng(8)
    config = RecodeConfig(size=20_000, dim=32, warmup_atoms=20_000)
    paths = {}
    for name, latents in (("noise", 32), ("structure", 2)):
        into = rng.standard_normal((latents, 32))
        data = (
            rng.random((21_000, latents)) if name == "structure" else rng.standard_normal((21_000, latents))
        )
        rows = np.sin(3 * data @ into).astype(np.float32) if name == "structure" else data.astype(np.float32)
        engine = NativeEngine(config)
        engine.load_state_dict(
            {
                "atoms": rows[:20_000],
                "log_counts": np.zeros(20_000),
                "births": np.zeros(20_000, np.int64),
                "num_observed": 20_000,
                "log_scale": 0.0,
                "d2_biased": 0.01 if name == "structure" else 20.0,
                "d2_weight": 1.0,
            }
        )
        run(engine, rows[20_000:], rng.random((1000, 2)), 64)
        paths[name] = engine.path
    assert paths == {"noise": "brute", "structure": "pruned"}


def test_bytes_count_the_index() -> None:
    config = RecodeConfig(size=5000, dim=8, warmup_atoms=5000)
    rng = np.random.default_rng(9)
    engine = NativeEngine(config)
    engine.set_path("brute")
    engine.observe(gauss(rng, 5000, 8), rng.random((5000, 2)))
    without = engine.bytes
    engine.set_path("pruned")
    engine.observe(gauss(rng, 1, 8), rng.random((1, 2)))
    assert engine.bytes > without > 5000 * 8 * 4


def test_an_unknown_path_is_refused() -> None:
    with pytest.raises(ValueError, match="path is 'fast'; expected 'auto', 'brute' or 'pruned'"):
        NativeEngine(RecodeConfig(size=10, dim=2)).set_path("fast")
