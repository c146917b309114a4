"""The memory's face: what it accepts, what its state is, what can be seen, and its engines."""

import sys
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest
from oracles.memories import CONFIG, rows, same

from softcount import RecodeMemory

# What is accepted


class OnlyArray:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array if dtype is None else self.array.astype(dtype)


class OnlyDlpack:
    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def read_only(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def spaced(array):
    wide = np.zeros((2 * len(array), 2 * array.shape[1]), array.dtype)
    wide[::2, 1::2] = array
    return wide[::2, 1::2]


FORMS = {
    "float32": lambda a: a,
    "float64": lambda a: a.astype(np.float64),
    "lists": lambda a: a.tolist(),
    "fortran order": np.asfortranarray,
    "spaced": spaced,
    "reversed": lambda a: a[::-1].copy()[::-1],
    "read-only": read_only,
    "big-endian": lambda a: a.astype(">f4"),
    "__array__": OnlyArray,
    "__dlpack__": OnlyDlpack,
    "list of rows": list,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_same_numbers_gives_the_same_rewards(memory, form):
    batch = rows().astype(np.float32)
    given = FORMS[form](batch)
    expected = memory.score(batch)
    np.testing.assert_array_equal(memory.score(given), expected)
    assert memory.observe(given)[0] == expected[0]


def test_float16_is_taken_at_its_own_value(memory):
    batch = rows().astype(np.float16)
    np.testing.assert_array_equal(memory.score(batch), memory.score(batch.astype(np.float32)))


def test_torch_tensors_are_taken_with_and_without_their_graph(memory):
    torch = pytest.importorskip("torch")
    batch = rows().astype(np.float32)
    expected = memory.score(batch)
    np.testing.assert_array_equal(memory.score(torch.from_numpy(batch)), expected)
    tensor = torch.from_numpy(batch).requires_grad_()
    np.testing.assert_array_equal(memory.score(tensor), expected)
    np.testing.assert_array_equal(memory.score(tensor * 1.0), expected)
    np.testing.assert_array_equal(memory.score(torch.from_numpy(batch.T.copy()).T), expected)
    assert tensor.requires_grad
    with pytest.raises(TypeError, match="int64"):
        memory.score(torch.zeros((2, 3), dtype=torch.int64))


def test_inputs_are_never_changed(memory):
    batch = rows().astype(np.float32)
    before = batch.copy()
    memory.observe(batch)
    memory.score(batch)
    np.testing.assert_array_equal(batch, before)


def test_the_memory_does_not_keep_hold_of_its_input(memory):
    batch = rows().astype(np.float32)
    memory.observe(batch)
    before = memory.state_dict()
    batch[:] = 1e9
    assert same(before, memory.state_dict())


def test_one_row_gives_one_number(memory):
    batch = rows()
    other = RecodeMemory(CONFIG, engine=memory.engine)
    other.load_state_dict(memory.state_dict())
    single = [memory.observe(row) for row in batch]
    assert np.shape(single[0]) == ()
    np.testing.assert_array_equal(single, other.observe(batch))
    assert np.shape(memory.score(batch[0])) == ()


# State


def test_a_saved_memory_continues_as_if_nothing_had_happened(memory, tmp_path):
    memory.save(tmp_path / "deep" / "memory")
    other = RecodeMemory.load(tmp_path / "deep" / "memory", engine=memory.engine)
    assert other.config == memory.config
    assert same(memory.state_dict(), other.state_dict())
    batch = rows(200)
    np.testing.assert_array_equal(memory.observe(batch), other.observe(batch))
    assert same(memory.state_dict(), other.state_dict())


def test_states_are_plain_and_copied(memory):
    state = memory.state_dict()
    for value in state.values():
        assert isinstance(value, np.ndarray | int | float | str)
    kept = memory.state_dict()
    state["atoms"][:] = 0.0
    memory.atoms[:] = 0.0
    assert same(kept, memory.state_dict())
    other = RecodeMemory(CONFIG, engine=memory.engine)
    other.load_state_dict(kept)
    kept["atoms"][:] = 0.0
    assert same(memory.state_dict(), other.state_dict())


def test_a_state_moves_to_another_config_of_equal_size_and_dim(memory):
    config = replace(CONFIG, count_discount=0.9, removal="smallest", neighbours=9, kernel_epsilon=0.1)
    other = RecodeMemory(config, engine=memory.engine)
    other.load_state_dict(memory.state_dict())
    np.testing.assert_array_equal(other.atoms, memory.atoms)
    assert other.d2_ema == memory.d2_ema
    before = other.counts.sum()
    other.observe(rows(1))
    assert other.counts.sum() == pytest.approx(0.9 ** (1 / 64) * before + 1, rel=1e-12)


def test_a_state_of_one_engine_continues_in_the_other(engine):
    numpy, other = RecodeMemory(CONFIG, seed=1, engine="numpy"), RecodeMemory(CONFIG, engine=engine)
    numpy.observe(rows(100))
    other.load_state_dict(numpy.state_dict())
    _, expected = numpy.observe(rows(100) * 2, details=True)
    _, found = other.observe(rows(100) * 2, details=True)
    np.testing.assert_array_equal(expected.slot, found.slot)
    np.testing.assert_allclose(expected.reward, found.reward, rtol=1e-12)
    np.testing.assert_array_equal(numpy.atoms, other.atoms)


def test_moved_atoms_count_where_they_are_now(engine):
    """In a memory large enough for an index of the atoms, which has to follow."""
    config = replace(CONFIG, size=2000, warmup_atoms=2000)
    memory, expected = (RecodeMemory(config, seed=1, engine=name) for name in (engine, "numpy"))
    memory.observe(rows(2200))
    elsewhere = memory.atoms[::-1] + 50.0
    before = memory.state_dict()
    expected.load_state_dict({**before, "atoms": elsewhere})
    memory.move_atoms(elsewhere)
    assert same({**before, "atoms": elsewhere}, memory.state_dict())
    for place in (elsewhere, before["atoms"]):
        np.testing.assert_allclose(memory.score(place), expected.score(place), rtol=1e-12)
    _, found = memory.observe(rows(300) + 50.0, details=True)
    _, wanted = expected.observe(rows(300) + 50.0, details=True)
    np.testing.assert_array_equal(found.slot, wanted.slot)
    np.testing.assert_array_equal(memory.atoms, expected.atoms)


def test_every_atom_needs_a_new_position(memory):
    before = memory.state_dict()
    with pytest.raises(ValueError, match="2 positions were given for"):
        memory.move_atoms(memory.atoms[:2])
    with pytest.raises(ValueError, match="holds NaN"):
        memory.move_atoms(memory.atoms * np.nan)
    assert same(memory.state_dict(), before)


def test_an_empty_memory_saves_and_loads(engine, tmp_path):
    RecodeMemory(CONFIG, seed=3, engine=engine).save(tmp_path / "m")
    memory = RecodeMemory.load(tmp_path / "m", engine=engine)
    assert len(memory) == 0
    assert memory.atoms.shape == (0, 3)
    np.testing.assert_array_equal(
        memory.observe(rows(50)), RecodeMemory(CONFIG, seed=3, engine=engine).observe(rows(50))
    )


def test_seeds_decide(engine):
    def run(seed):
        memory = RecodeMemory(CONFIG, seed=seed, engine=engine)
        memory.observe(rows(200))
        return memory.state_dict()

    assert same(run(1), run(1))
    assert not same(run(1), run(2))


# What can be seen


def test_lengths_ages_counts_and_bytes(engine):
    memory = RecodeMemory(replace(CONFIG, size=1000), engine=engine)
    assert len(memory) == 0
    assert memory.ages.shape == memory.counts.shape == (0,)
    _, observed = memory.observe(rows(30), details=True)
    assert len(memory) == int(observed.is_inserted.sum())
    assert memory.num_observed == 30
    assert memory.ages[:20].tolist() == list(range(30, 10, -1))
    assert memory.counts.dtype == np.float64
    assert memory.atoms.dtype == np.float32
    g = memory.config.embedding_discount
    assert memory.counts.sum() == pytest.approx((1 - g**30) / (1 - g), rel=1e-10)
    np.testing.assert_allclose(np.exp(memory.log_counts), memory.counts)
    assert memory.bytes >= 1000 * (3 * 4 + 8 + 8)


def test_bytes_do_not_grow(engine):
    memory = RecodeMemory(CONFIG, engine=engine)
    memory.observe(rows(1000))
    before = memory.bytes
    memory.observe(rows(2000))
    assert memory.bytes <= before * 1.1


def test_the_name_says_what_there_is(memory):
    assert repr(memory) == f"RecodeMemory(40/40 atoms, dim 3, engine {memory.engine!r})"


def test_details_tell_what_happened_to_each_row(memory):
    rewards, observed = memory.observe(rows(), details=True)
    np.testing.assert_array_equal(rewards, observed.reward)
    np.testing.assert_allclose(rewards, 1 / (np.sqrt(observed.soft_count) + 0.01), rtol=1e-14)
    assert all(len(column) == 6 for column in observed)
    moved = ~observed.is_inserted
    np.testing.assert_array_equal(observed.slot[moved], observed.nearest[moved])
    assert (observed.merged_into[moved] == -1).all()


def test_several_threads_lose_nothing(engine):
    memory = RecodeMemory(replace(CONFIG, count_discount=1.0), engine=engine)
    rewards = [None] * 4

    def work(i):
        rewards[i] = np.concatenate([memory.observe(rows(25)) for _ in range(10)])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memory.num_observed == 1000
    assert memory.counts.sum() == pytest.approx(1000, rel=1e-10)
    assert all(len(r) == 250 and np.isfinite(r).all() for r in rewards)


# Engines


def test_without_the_native_module_auto_warns_and_runs_on_numpy(monkeypatch):
    monkeypatch.setitem(sys.modules, "softcount.memory.native_engine", None)
    with pytest.warns(UserWarning, match="without its native engine") as caught:
        memory = RecodeMemory(CONFIG)
    assert caught[0].filename == __file__
    assert memory.engine == "numpy"
    with pytest.raises(ImportError, match="C\\+\\+17 compiler, or use engine='numpy'"):
        RecodeMemory(CONFIG, engine="native")


def test_asking_for_numpy_does_not_warn(monkeypatch):
    monkeypatch.setitem(sys.modules, "softcount.memory.native_engine", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RecodeMemory(CONFIG, engine="numpy").engine == "numpy"
