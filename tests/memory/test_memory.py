"""The memory's face: what it accepts, what it refuses, and that refusing leaves no trace."""

import json
import sys
import threading
import warnings
from dataclasses import replace

import numpy as np
import pytest

from softcount import RecodeConfig, RecodeMemory
from softcount.store import StoreError
from softcount.store import save as store_save

CONFIG = RecodeConfig(size=40, dim=3, neighbours=5, warmup_atoms=20, insertion_probability=0.5, d2_step=1e-2)


@pytest.fixture
def memory(engine):
    memory = RecodeMemory(CONFIG, seed=1, engine=engine)
    memory.observe(np.random.default_rng(0).standard_normal((150, 3)))
    return memory


def same(one, other):
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name]) and type(one[name]) is type(other[name]) for name in one
    )


def rows(num=6, dim=3):
    return np.random.default_rng(7).standard_normal((num, dim))


# What is refused


def with_value(value, row, dtype=np.float64):
    batch = rows().astype(dtype)
    batch[row, 1] = value
    return batch


BAD_INPUTS = {
    "other dim": (rows(dim=4), ValueError, r"\(6, 4\).*\(B, 3\) or \(3,\)"),
    "three axes": (np.zeros((2, 2, 3)), ValueError, r"\(2, 2, 3\)"),
    "no axes": (np.float64(1.0), ValueError, r"\(\)"),
    "one row of other dim": (np.zeros(2), ValueError, r"\(2,\)"),
    "empty batch": (np.zeros((0, 3)), ValueError, "empty batch"),
    "nothing": ([], ValueError, "shape"),
    "whole numbers": (np.zeros((2, 3), np.int64), TypeError, "int64.*floating point"),
    "booleans": (np.zeros((2, 3), bool), TypeError, "bool"),
    "complex": (np.zeros((2, 3), complex), TypeError, "complex128"),
    "text": ([["a", "b", "c"]], TypeError, "dtype"),
    "objects": (np.array([[None] * 3]), TypeError, "object"),
    "ragged": ([[1.0, 2.0, 3.0], [1.0]], TypeError, "do not turn into an array"),
    "none": (None, TypeError, "object"),
    "nan first": (with_value(np.nan, 0), ValueError, r"embeddings\[0\].*NaN"),
    "nan last": (with_value(np.nan, 5), ValueError, r"embeddings\[5\].*NaN"),
    "inf": (with_value(np.inf, 3), ValueError, r"embeddings\[3\].*infinity"),
    "minus inf in float16": (with_value(-np.inf, 2, np.float16), ValueError, r"embeddings\[2\].*infinity"),
    "beyond float32": (with_value(1e39, 4), ValueError, r"embeddings\[4\] is beyond float32"),
    "single nan": (np.array([1.0, np.nan, 1.0]), ValueError, r"embeddings\[0\]"),
}


@pytest.mark.parametrize("name", BAD_INPUTS)
@pytest.mark.parametrize("method", ["observe", "score"])
def test_bad_input_is_named_and_leaves_no_trace(memory, name, method):
    value, error, message = BAD_INPUTS[name]
    before = memory.state_dict()
    with pytest.raises(error, match=message):
        getattr(memory, method)(value)
    assert same(before, memory.state_dict())


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("size", 0, "at least 1"),
        ("size", 2.5, "whole number"),
        ("dim", -1, "at least 1"),
        ("dim", True, "whole number"),
        ("neighbours", 0, "at least 1"),
        ("count_discount", 0.0, r"\(0, 1\]"),
        ("count_discount", 1.001, r"\(0, 1\]"),
        ("embeddings_per_step", 0, "at least 1"),
        ("insertion_probability", -0.1, r"\[0, 1\]"),
        ("insertion_probability", 1.1, r"\[0, 1\]"),
        ("far_tolerance", -1.0, "at least 0"),
        ("far_tolerance", float("inf"), "finite"),
        ("d2_step", 0.0, r"\(0, 1\]"),
        ("d2_step", float("nan"), r"\(0, 1\]"),
        ("reward_constant", 0.0, "above 0"),
        ("kernel_epsilon", 0, "at least 1e-30"),
        ("removal", "oldest", "'inverse_square', 'inverse' or 'smallest'"),
        ("removal", None, "'smallest'"),
        ("warmup_atoms", 0, "at least 1"),
        ("size", "many", "whole number"),
    ],
)
def test_a_config_out_of_range_names_field_value_and_range(field, value, expected):
    with pytest.raises(ValueError, match=expected) as caught:
        RecodeConfig(**{field: value})
    assert f"RecodeConfig.{field} is {value!r}" in str(caught.value)


@pytest.mark.parametrize(
    "arguments", [{"engine": "gpu"}, {"num_threads": 0}, {"num_threads": 1.5}], ids=lambda a: next(iter(a))
)
def test_bad_arguments_are_named(arguments):
    (name,) = arguments
    with pytest.raises(ValueError, match=f"{name} is"):
        RecodeMemory(CONFIG, **arguments)


def broken(state, **changes):
    return {name: value for name, value in (state | changes).items() if value is not ...}


BAD_STATES = {
    "other version": (lambda s: broken(s, version=99), "version 99; expected 1"),
    "other size": (lambda s: broken(s, size=41), "size 41; this memory has size 40"),
    "other dim": (lambda s: broken(s, dim=2), "dim 2; this memory has dim 3"),
    "missing": (lambda s: broken(s, births=..., atoms=...), "lacks atoms, births"),
    "too many atoms": (lambda s: broken(s, atoms=np.zeros((41, 3))), r"\(41, 3\).*n <= 40"),
    "atoms of other dim": (lambda s: broken(s, atoms=s["atoms"][:, :2]), r"\(40, 2\)"),
    "atoms a number": (lambda s: broken(s, atoms=np.float32(1.0)), r"atoms \(1,\)"),
    "counts too short": (lambda s: broken(s, log_counts=s["log_counts"][1:]), r"log_counts \(39,\)"),
    "nan atom": (lambda s: broken(s, atoms=s["atoms"] * np.nan), "NaN"),
    "nan count": (lambda s: broken(s, log_counts=s["log_counts"] * np.nan), "NaN"),
    "inf scale": (lambda s: broken(s, log_scale=-np.inf), "infinity"),
    "count too large": (lambda s: broken(s, log_counts=s["log_counts"] + 1000), "above e"),
    "negative bandwidth": (lambda s: broken(s, d2_biased=-1.0), "negative d2_biased"),
    "weight above 1": (lambda s: broken(s, d2_weight=1.5), "d2_weight outside"),
    "born in the future": (lambda s: broken(s, births=s["births"] + 1000), "births out of range"),
    "too few observed": (lambda s: broken(s, num_observed=3), "more atoms than embeddings"),
    "generator no json": (lambda s: broken(s, generator="{"), "generator"),
    "generator not text": (lambda s: broken(s, generator=3), "generator"),
    "generator of another kind": (
        lambda s: broken(s, generator=json.dumps(json.loads(s["generator"]) | {"bit_generator": "MT19937"})),
        "generator",
    ),
}


@pytest.mark.parametrize("name", BAD_STATES)
def test_a_bad_state_is_named_and_leaves_no_trace(memory, name):
    make, message = BAD_STATES[name]
    before = memory.state_dict()
    with pytest.raises(ValueError, match=message):
        memory.load_state_dict(make(memory.state_dict()))
    assert same(before, memory.state_dict())


def test_truncated_foreign_and_tampered_files_are_refused(memory, tmp_path):
    path = tmp_path / "memory"
    memory.save(path)
    content = path.read_bytes()
    for length in (0, 7, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(StoreError, match="truncated or not a softcount file"):
            RecodeMemory.load(path)
    tampered = bytearray(content)
    tampered[-5] ^= 1
    path.write_bytes(tampered)
    with pytest.raises(StoreError, match="digest"):
        RecodeMemory.load(path)
    path.write_text("not at all")
    with pytest.raises(StoreError, match="not a softcount file"):
        RecodeMemory.load(path)
    with pytest.raises(StoreError, match="does not exist"):
        RecodeMemory.load(tmp_path / "nowhere")


def test_files_that_hold_something_else_are_refused(memory, tmp_path):
    store_save(tmp_path / "other", memory.state_dict(), kind="replay")
    with pytest.raises(StoreError, match="holds 'replay'; expected 'recode-memory'"):
        RecodeMemory.load(tmp_path / "other")
    store_save(tmp_path / "odd", {"config": {"size": 40, "colour": 1}, "state": {}}, kind="recode-memory")
    with pytest.raises(StoreError, match=r"does not hold a usable memory.*colour"):
        RecodeMemory.load(tmp_path / "odd")
    store_save(tmp_path / "odd", {"config": {"size": 40, "dim": 3}, "state": {}}, kind="recode-memory")
    with pytest.raises(StoreError, match="state lacks"):
        RecodeMemory.load(tmp_path / "odd")


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
    monkeypatch.setitem(sys.modules, "softcount.memory.engine", None)
    with pytest.warns(UserWarning, match="without its native engine") as caught:
        memory = RecodeMemory(CONFIG)
    assert caught[0].filename == __file__
    assert memory.engine == "numpy"
    with pytest.raises(ImportError, match="C\\+\\+17 compiler, or use engine='numpy'"):
        RecodeMemory(CONFIG, engine="native")


def test_asking_for_numpy_does_not_warn(monkeypatch):
    monkeypatch.setitem(sys.modules, "softcount.memory.engine", None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RecodeMemory(CONFIG, engine="numpy").engine == "numpy"
