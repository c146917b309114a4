"""What the memory refuses, by which words, and that refusing leaves no trace."""

import json

import numpy as np
import pytest
from oracles.memories import CONFIG, rows, same

from softcount import RecodeConfig, RecodeMemory
from softcount.store import StoreError
from softcount.store import save as store_save


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
        ("d2_step", float("nan"), "a finite number"),
        ("reward_constant", 0.0, "above 0"),
        ("kernel_epsilon", 0, "at least 1e-30"),
        ("removal", "oldest", "one of 'inverse_square', 'inverse', 'smallest'"),
        ("removal", None, "'smallest'"),
        ("warmup_atoms", 0, "at least 1"),
        ("size", "many", "whole number"),
        ("size", 10**12, "at most 1,000,000,000"),
        ("dim", 2**31, "at most 1,000,000,000"),
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
    "absurdly many observed": (
        lambda s: broken(s, num_observed=10**40),
        r"num_observed 1\.000e\+40; expected at",
    ),
    "observed as text": (
        lambda s: broken(s, num_observed="150"),
        "num_observed '150'; expected a whole number",
    ),
    "observed in part": (
        lambda s: broken(s, num_observed=150.5),
        "num_observed 150.5; expected a whole number",
    ),
    "complex counts": (lambda s: broken(s, log_counts=s["log_counts"] + 1j), "log_counts of complex128"),
    "fractional births": (lambda s: broken(s, births=s["births"] + 0.5), "births of float64; expected whole"),
    "births beyond int64": (
        lambda s: broken(s, births=s["births"].astype(np.uint64) + np.uint64(2**63)),
        "births out of range",
    ),
    "masked atoms": (lambda s: broken(s, atoms=np.ma.masked_less(s["atoms"], 0)), "atoms as a masked array"),
    "masked counts": (
        lambda s: broken(s, log_counts=np.ma.masked_less(s["log_counts"], 0)),
        "log_counts as a masked",
    ),
    "whole atoms": (
        lambda s: broken(s, atoms=s["atoms"].astype(np.int64)),
        "atoms of int64; expected floating",
    ),
    "ragged counts": (lambda s: broken(s, log_counts=[[1.0], [1.0, 2.0]]), "log_counts that do not turn"),
    "scale as text": (lambda s: broken(s, log_scale="0"), "log_scale '0'; expected a number"),
    "scale beyond floats": (lambda s: broken(s, log_scale=-(10**400)), "log_scale is inf"),
    "scale beyond all streams": (lambda s: broken(s, log_scale=-1.7e308), "log_scale beyond 1e300"),
    "infinite bandwidth": (
        lambda s: broken(s, d2_biased=1e300, d2_weight=1e-300),
        "bandwidth .* above 1e.100",
    ),
    "generator too deep": (lambda s: broken(s, generator="[" * 100_000), "generator"),
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


def test_a_bandwidth_is_large_or_not_after_its_bias_is_corrected(memory):
    memory.load_state_dict(broken(memory.state_dict(), d2_biased=1e60, d2_weight=0.5))
    assert memory.state_dict()["d2_biased"] == 1e60


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


@pytest.mark.parametrize(
    "changes",
    [
        {"generator": "[" * 100_000},
        {"num_observed": 10**40},
        {"log_scale": 10**400},
        {"atoms": 10**400},
        {"births": None},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_file_with_an_absurd_state_is_refused_by_name(memory, tmp_path, changes):
    state = {**memory.state_dict(), **changes}
    store_save(tmp_path / "odd", {"config": {"size": 40, "dim": 3}, "state": state}, kind="recode-memory")
    with pytest.raises(StoreError, match=f"odd does not hold a usable memory: .*{next(iter(changes))}"):
        RecodeMemory.load(tmp_path / "odd")


def test_a_memory_that_does_not_fit_this_machine_is_refused_by_its_size(engine, tmp_path):
    config = {"size": 10**9, "dim": 10**9}
    with pytest.raises(MemoryError, match=r"size 1000000000 and dim 1000000000 does not fit"):
        RecodeMemory(RecodeConfig(**config), engine=engine)
    store_save(tmp_path / "large", {"config": config, "state": {}}, kind="recode-memory")
    with pytest.raises(StoreError, match=r"large does not hold a usable memory: .*size 1000000000"):
        RecodeMemory.load(tmp_path / "large", engine=engine)
