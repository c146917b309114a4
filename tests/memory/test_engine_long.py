"""Slow: half a million steps of native = NumPy, memories of 2e5 atoms, and no growth of the process."""

from __future__ import annotations

import resource
from typing import Any

import numpy as np
import pytest

from experiments.memory.streams import filled_state, make_stream
from softcount import RecodeConfig
from softcount.memory.recode import NumpyEngine

engine_module = pytest.importorskip("softcount.memory.native_engine", reason="the native engine is not built")
NativeEngine = engine_module.NativeEngine
pytestmark = pytest.mark.slow


def assert_engines_agree(
    config: RecodeConfig, name: str, num: int, path: str, batch: int, filled: bool
) -> None:
    """Feeds both engines the same rows and uniforms and compares every outcome and the final state."""
    numpy, native = NumpyEngine(config), NativeEngine(config)
    native.set_path(path)
    stream = make_stream(name, config.dim, num_walkers=batch, seed=1)
    if filled:
        state = filled_state(config, make_stream(name, config.dim, seed=2))
        numpy.load_state_dict(state)
        native.load_state_dict(state)
    rng = np.random.default_rng(3)
    for _ in range(num // batch):
        rows, uniforms = next(stream), rng.random((batch, 2))
        got, want = native.observe(rows, uniforms), numpy.observe(rows, uniforms)
        for field in ("nearest", "is_far", "is_inserted", "slot", "merged_into"):
            np.testing.assert_array_equal(getattr(got, field), getattr(want, field), err_msg=field)
        for field in ("reward", "soft_count", "d2_nearest"):
            np.testing.assert_allclose(getattr(got, field), getattr(want, field), rtol=1e-10, err_msg=field)
    a, b = native.state_dict(), numpy.state_dict()
    np.testing.assert_array_equal(a["atoms"], b["atoms"])
    np.testing.assert_allclose(a["log_counts"], b["log_counts"], rtol=1e-12, atol=1e-12)
    assert a["d2_biased"] == pytest.approx(b["d2_biased"], rel=1e-12)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("removal", ["inverse_square", "inverse", "smallest"])
@pytest.mark.parametrize("name", ["walk4", "rooms", "gauss"])
def test_native_is_numpy_over_half_a_million_steps(name: str, removal: Any) -> None:
    config = RecodeConfig(size=2000, dim=8, removal=removal, insertion_probability=0.2)
    for path, batch in (("auto", 64), ("pruned", 256)):
        assert_engines_agree(config, name, 28_160, path, batch, filled=False)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("name", "path", "size"), [("walk6", "pruned", 200_000), ("gauss", "brute", 50_000)])
def test_native_is_numpy_in_large_memories(name: str, path: str, size: int) -> None:
    config = RecodeConfig(size=size, dim=32, insertion_probability=0.5)
    assert_engines_agree(config, name, 1024, path, 64, filled=True)


@pytest.mark.timeout(3600)
def test_pruned_is_brute_in_a_memory_of_2e5_atoms() -> None:
    config = RecodeConfig(size=200_000, dim=32, insertion_probability=1.0, far_tolerance=0.02)
    state = filled_state(config, make_stream("walk4", seed=2))
    engines = [NativeEngine(config), NativeEngine(config)]
    for engine, path in zip(engines, ("brute", "pruned"), strict=True):
        engine.load_state_dict(state)
        engine.set_path(path)
    stream, rng = make_stream("walk4", seed=4), np.random.default_rng(5)
    for _ in range(200):
        rows, uniforms = next(stream), rng.random((64, 2))
        brute, pruned = (engine.observe(rows, uniforms) for engine in engines)
        for field, want in brute._asdict().items():
            np.testing.assert_array_equal(getattr(pruned, field), want, err_msg=field)
    np.testing.assert_array_equal(engines[0].state_dict()["atoms"], engines[1].state_dict()["atoms"])
    assert engines[1].work()["num_heirs"] > 5000


@pytest.mark.timeout(3600)
def test_a_million_steps_do_not_grow_the_process() -> None:
    config = RecodeConfig(size=5000, dim=8, insertion_probability=0.5)
    engine = NativeEngine(config)
    stream, rng = make_stream("drift", 8, num_walkers=250, seed=6), np.random.default_rng(7)

    def feed(num: int) -> int:
        for _ in range(num // 250):
            engine.observe(next(stream), rng.random((250, 2)))
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    before = feed(200_000)
    bytes_before = engine.bytes
    after = feed(1_000_000)
    assert after - before < 8 * 1024  # KiB
    assert engine.bytes < 1.5 * bytes_before
