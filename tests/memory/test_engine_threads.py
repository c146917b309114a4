"""Threads inside a batch change no bit; threads of the caller lose nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable

import numpy as np
import pytest

from softcount import RecodeConfig, RecodeMemory

engine_module = pytest.importorskip("softcount.memory.native_engine", reason="the native engine is not built")
NativeEngine = engine_module.NativeEngine


def test_one_two_and_four_threads_give_the_same_bits() -> None:
    config = RecodeConfig(size=4000, dim=24, insertion_probability=0.5, far_tolerance=0.05, warmup_atoms=4000)
    rng = np.random.default_rng(0)
    data = rng.standard_normal((6000, 24)).astype(np.float32)
    uniforms = rng.random((6000, 2))
    results = []
    for num_threads in (1, 2, 4):
        engine = NativeEngine(config, num_threads)
        engine.set_path("brute")
        parts = [engine.observe(data[i : i + 120], uniforms[i : i + 120]) for i in range(0, 6000, 120)]
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        results.append([*columns, engine.score(data[:500]), *engine.state_dict().values()])
    for other in results[1:]:
        for got, want in zip(other, results[0], strict=True):
            np.testing.assert_array_equal(got, want)


def test_callers_in_several_threads_lose_nothing() -> None:
    config = RecodeConfig(size=500, dim=4, insertion_probability=0.3, count_discount=0.99)
    memory = RecodeMemory(config, engine="native")
    errors: list[BaseException] = []

    def call(seed: int) -> None:
        rng = np.random.default_rng(seed)
        try:
            for _ in range(40):
                assert np.isfinite(memory.observe(rng.standard_normal((25, 4)))).all()
                assert np.isfinite(memory.score(rng.standard_normal((5, 4)))).all()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert memory.num_observed == 4000
    assert len(memory) == 500
    g = config.embedding_discount
    assert memory.counts.sum() == pytest.approx((1 - g**4000) / (1 - g), rel=1e-10)


@pytest.mark.parametrize("engine", ["native", "numpy"])
@pytest.mark.parametrize("read", [len, lambda m: m.num_observed, lambda m: m.bytes, lambda m: m.d2_ema, repr])
def test_every_read_waits_for_a_batch_under_way(engine: str, read: Callable[[RecodeMemory], object]) -> None:
    memory = RecodeMemory(RecodeConfig(size=10, dim=2), engine=engine)  # type: ignore[arg-type]
    reader = threading.Thread(target=read, args=(memory,), daemon=True)
    with memory._lock:
        reader.start()
        reader.join(0.05)
        assert reader.is_alive()
    reader.join(5)
    assert not reader.is_alive()


def test_what_can_be_seen_stays_whole_while_other_threads_change_it() -> None:
    config = RecodeConfig(size=3000, dim=8, insertion_probability=0.5, far_tolerance=0.05, warmup_atoms=3000)
    memory = RecodeMemory(config, engine="native")
    memory._engine.set_path("pruned")
    state, done = memory.state_dict(), threading.Event()
    errors: list[BaseException] = []

    def look() -> None:
        try:
            while not done.is_set():
                assert 0 <= len(memory) <= 3000
                assert memory.bytes > 0
                assert memory.num_observed >= 0
                assert memory._engine.path in ("brute", "pruned")
                assert memory._engine.work()["num_builds"] >= 0
                assert len(memory.atoms) <= 3000
        except BaseException as error:
            errors.append(error)

    readers = [threading.Thread(target=look) for _ in range(2)]
    for reader in readers:
        reader.start()
    rng = np.random.default_rng(2)
    for _ in range(6):
        for _ in range(8):
            memory.observe(rng.standard_normal((500, 8)))
        memory.load_state_dict(state)  # frees the index
    done.set()
    for reader in readers:
        reader.join()
    assert not errors


def test_observe_releases_the_interpreter() -> None:
    config = RecodeConfig(size=20_000, dim=32, warmup_atoms=20_000)
    engine = NativeEngine(config)
    engine.set_path("brute")
    rng = np.random.default_rng(1)
    data, uniforms = rng.standard_normal((20_000, 32)).astype(np.float32), rng.random((20_000, 2))
    engine.observe(data[:10_000], uniforms[:10_000])
    turns, done = 0, threading.Event()
    worker = threading.Thread(target=lambda: (engine.observe(data[10_000:], uniforms[10_000:]), done.set()))
    worker.start()
    while not done.is_set():
        turns += 1
        done.wait(0.001)
    worker.join()
    assert turns > 10
