"""State on disk comes back exactly or not at all."""

import math
import os
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from softcount import store


def assert_equal(one, other):
    """Equal in type, dtype, shape and every bit."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_equal(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other):
            assert_equal(a, b)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()
    elif isinstance(one, float):
        assert one.hex() == other.hex()
    else:
        assert one == other


def round_trip(state, path):
    store.save(path, state, kind="test")
    return store.load(path, kind="test")


def test_nested_states_come_back_exactly(tmp_path):
    state = {
        "array": np.arange(6, dtype=np.float32).reshape(2, 3),
        "scalar array": np.array(7, np.int64),
        "empty": np.zeros((0, 4), np.float16),
        "flags": np.array([True, False]),
        "bytes": np.arange(256, dtype=np.uint8),
        "special": np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324]),
        "none": None,
        "yes": True,
        "no": False,
        "one": 1,
        "big": 2**200 + 1,
        "negative": -(2**70),
        "tenth": 0.1,
        "tiny": 5e-324,
        "nan": math.nan,
        "minus infinity": -math.inf,
        "minus zero": -0.0,
        "text": 'ünï"code\n\\',
        "lists": [1, [2.0, [None, {"deep": np.ones(2)}]], [], {}],
        "dicts": {"a": {"b": {"c": np.zeros(1, np.int32)}}, "0": [np.ones(1)]},
    }
    assert_equal(round_trip(state, tmp_path / "file"), state)
    assert_equal(store.unpack(store.pack(state)), state)


leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"]))
)
keys = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="$/"), max_size=5)
trees = st.recursive(
    leaves | st.lists(st.floats(width=32)).map(lambda x: np.array(x, np.float32)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=60, deadline=None)
@given(state=st.dictionaries(keys, trees, max_size=4))
def test_any_plain_tree_comes_back_exactly(state, tmp_path_factory):
    assert_equal(round_trip(state, tmp_path_factory.getbasetemp() / "any"), state)


def test_tuples_become_lists_and_numpy_scalars_become_numbers(tmp_path):
    state = round_trip(
        {"t": (1, (2,)), "f": np.float32(0.5), "i": np.int64(3), "b": np.bool_(True)}, tmp_path / "f"
    )
    assert_equal(state, {"t": [1, [2]], "f": 0.5, "i": 3, "b": True})


def test_odd_memory_layouts_are_stored_by_value(tmp_path):
    array = np.arange(12.0).reshape(3, 4)
    state = round_trip({"t": array.T, "s": array[::2, ::-1], "big": array.astype(">f8")}, tmp_path / "f")
    np.testing.assert_array_equal(state["t"], array.T)
    np.testing.assert_array_equal(state["s"], array[::2, ::-1])
    np.testing.assert_array_equal(state["big"], array)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"a": {"b": object()}}, "state/a/b is a object"),
        ({"a": [1, {2, 3}]}, "state/a/1 is a set"),
        ({"a": np.array([None])}, "state/a is an array of object"),
        ({"a": np.array(["x"])}, "state/a is an array of <U1"),
        ({"a": np.zeros(2, complex)}, "state/a is an array of complex128"),
        ({"a": {1: 2}}, "state/a has the key 1"),
        ({"$array": 2}, r"has the key '\$array'"),
        ({"a/b": 2}, "has the key 'a/b'"),
    ],
)
def test_what_cannot_be_stored_is_named_and_nothing_is_written(tmp_path, state, message):
    with pytest.raises(TypeError, match=message):
        store.save(tmp_path / "file", state, kind="test")
    assert list(tmp_path.iterdir()) == []


def test_another_kind_is_refused(tmp_path):
    store.save(tmp_path / "file", {}, kind="replay")
    with pytest.raises(store.StoreError, match="holds 'replay'; expected 'memory'"):
        store.load(tmp_path / "file", kind="memory")


def test_a_change_of_any_byte_is_noticed(tmp_path):
    path = tmp_path / "file"
    store.save(path, {"array": np.arange(4.0), "number": 3, "text": "abc"}, kind="test")
    content = path.read_bytes()
    for i in range(len(content)):
        changed = bytearray(content)
        changed[i] ^= 1
        path.write_bytes(changed)
        with pytest.raises(store.StoreError):
            store.load(path, kind="test")


def test_a_file_cut_anywhere_is_refused(tmp_path):
    path = tmp_path / "file"
    store.save(path, {"array": np.arange(4.0), "number": 3}, kind="test")
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(store.StoreError):
            store.load(path, kind="test")


def test_foreign_files_are_refused(tmp_path):
    save_file({"x": np.ones(3)}, tmp_path / "foreign.safetensors")
    with pytest.raises(store.StoreError, match="not a softcount file"):
        store.load(tmp_path / "foreign.safetensors", kind="test")
    save_file({"x": np.ones(3)}, tmp_path / "half", metadata={"format": store.FORMAT})
    with pytest.raises(store.StoreError, match="digest"):
        store.load(tmp_path / "half", kind="test")
    with pytest.raises(store.StoreError, match="does not exist"):
        store.load(tmp_path / "nothing", kind="test")
    with pytest.raises(store.StoreError, match="is not a file"):
        store.load(tmp_path, kind="test")


def test_a_crash_while_writing_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "file"
    store.save(path, {"version": 1}, kind="test")

    def fail(*_):
        raise OSError("disk full")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fail)
            with pytest.raises(OSError, match="disk full"):
                store.save(path, {"version": 2}, kind="test")
        assert store.load(path, kind="test") == {"version": 1}
        assert [file.name for file in tmp_path.iterdir()] == ["file"]


WRITER = """
import sys
import numpy as np
from softcount import store
i = 0
while True:
    i += 1
    store.save(sys.argv[1], {"i": i, "array": np.full(300_000, i, np.int64)}, kind="test")
    print(i, flush=True)
"""


def test_killing_the_writer_at_any_moment_leaves_a_whole_file(tmp_path):
    path = tmp_path / "file"
    for delay in (0.0, 0.003, 0.007, 0.011):
        process = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        rest = process.communicate()[0].split()
        state = store.load(path, kind="test")
        assert (state["array"] == state["i"]).all()
        assert state["i"] >= max([1, *map(int, rest)])


def test_files_follow_the_umask(tmp_path):
    old = os.umask(0o027)
    try:
        store.save(tmp_path / "file", {}, kind="test")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_folders_on_the_way_are_made(tmp_path):
    store.save(tmp_path / "a" / "b" / "file", {"x": 1}, kind="test")
    assert store.load(tmp_path / "a" / "b" / "file", kind="test") == {"x": 1}


def forged(path, tree, arrays=None):
    """A file with a digest that fits and a tree that no state has."""
    arrays = arrays or {}
    digest = store._digest("test", tree, arrays)
    save_file(arrays, path, {"format": store.FORMAT, "kind": "test", "tree": tree, "digest": digest})


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ('{"a": {"$array": "/a"}}', "names the array '/a' and does not hold it"),
        ('{"a": {"$array": [1]}}', r"names the array \[1\]"),
        ("[1]", "holds list in place of named fields"),
        ("{", "holds no usable state"),
        ("[" * 100_000, "holds no usable state: .*recursion"),
        ('{"a": ' + "9" * 5000 + "}", "holds no usable state: .*digits"),
    ],
    ids=["missing", "odd name", "no fields", "no json", "deep", "long"],
)
def test_forged_files_with_a_right_digest_are_refused_in_one_kind_of_error(tmp_path, tree, message):
    forged(tmp_path / "odd", tree)
    with pytest.raises(store.StoreError, match=message):
        store.load(tmp_path / "odd", kind="test")


def test_a_missing_folder_stays_missing_where_that_is_asked_for(tmp_path):
    with pytest.raises(FileNotFoundError):
        store.save(tmp_path / "gone" / "file", {}, kind="test", makes_folder=False)
    assert not (tmp_path / "gone").exists()


def test_packed_bytes_that_are_cut_or_followed_by_more_are_refused():
    packed = store.pack({"rows": np.arange(3), "empty": np.zeros((0, 2)), "name": "ünï"})
    for cut in range(len(packed)):
        with pytest.raises(store.StoreError, match="hold no usable state"):
            store.unpack(packed[:cut])
    with pytest.raises(store.StoreError, match="expected named fields and nothing after"):
        store.unpack(packed + b"\0")
    with pytest.raises(store.StoreError, match="hold no usable state"):
        store.unpack(store.pack([1, 2]))


def test_unpacked_arrays_share_the_bytes_and_cannot_be_changed():
    packed = store.pack({"one": np.ones(1, np.uint8), "rows": np.arange(3.0)})
    rows = store.unpack(packed)["rows"]
    offset = rows.ctypes.data - np.frombuffer(packed, np.uint8).ctypes.data
    assert 0 < offset < len(packed)
    assert offset % 8 == 0
    with pytest.raises(ValueError, match="read-only"):
        rows[0] = 1
