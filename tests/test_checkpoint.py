"""Checkpoints: whole or not at all."""

import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from softcount import checkpoint, store


def write(folder, step, *, value=0.0, segments=()):
    made = []

    def maker(name):
        def make():
            made.append(name)
            return {"rows": np.full(3, float(name))}

        return make

    checkpoint.write(
        folder,
        step=step,
        metrics_bytes=10 * step,
        parts={"learner": {"w": np.full(4, value)}, "loop": {"num_steps": step}},
        segments={name: maker(name) for name in segments},
    )
    return made


def test_what_is_written_is_read_back(tmp_path):
    write(tmp_path, 7, value=1.5, segments=("0", "1"))
    saved = checkpoint.read(tmp_path)
    assert (saved.step, saved.metrics_bytes, saved.parts["loop"]) == (7, 70, {"num_steps": 7})
    np.testing.assert_array_equal(saved.parts["learner"]["w"], np.full(4, 1.5))
    np.testing.assert_array_equal(saved.segments["1"]["rows"], np.ones(3))


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (np.zeros((2, 3)), None),
        (np.zeros((5, 1)), None),  # lists and arrays may be longer than new ones
        (np.zeros((2, 3), np.int64), "a.b is int64 of shape (2, 3); expected float64 like (2, 3)"),
        (np.zeros(6), "a.b is float64 of shape (6,); expected float64 like (2, 3)"),
    ],
)
def test_an_array_of_another_type_or_number_of_axes_does_not_fit(found, reason):
    assert checkpoint.find_misfit({"a": {"b": found}}, {"a": {"b": np.ones((2, 3))}}) == reason


def test_segments_are_written_once_and_removed_when_no_longer_named(tmp_path):
    assert write(tmp_path, 1, segments=("0", "1")) == ["0", "1"]
    assert write(tmp_path, 2, segments=("0", "1", "2")) == ["2"]
    assert write(tmp_path, 3, segments=("2",)) == []
    assert {path.name for path in tmp_path.iterdir()} == {
        "manifest.json", "learner-2.safetensors", "loop-2.safetensors", "segment-2.safetensors",
    }  # fmt: skip


def test_the_same_step_twice_never_overwrites_a_file_in_use(tmp_path):
    write(tmp_path, 5, value=1.0)
    before = json.loads((tmp_path / "manifest.json").read_text())["parts"]
    write(tmp_path, 5, value=2.0)
    after = json.loads((tmp_path / "manifest.json").read_text())["parts"]
    assert not set(before.values()) & set(after.values())
    assert checkpoint.read(tmp_path).parts["learner"]["w"][0] == 2.0


def test_a_full_disk_leaves_the_old_checkpoint_and_says_so(tmp_path, monkeypatch):
    write(tmp_path, 5, value=1.0, segments=("0",))
    files = {path.name for path in tmp_path.iterdir()}
    real = store.write_atomically

    def fails(path, content, **options):
        if "loop" in str(path):
            raise OSError(28, "No space left on device")
        real(path, content, **options)

    monkeypatch.setattr(store, "write_atomically", fails)
    with pytest.raises(checkpoint.CheckpointError, match=r"step 9 .*No space left.* step 5 is intact"):
        write(tmp_path, 9, value=2.0, segments=("0", "1"))
    assert {path.name for path in tmp_path.iterdir()} == files
    assert checkpoint.read(tmp_path).parts["learner"]["w"][0] == 1.0


def test_a_missing_checkpoint_says_what_is_missing(tmp_path):
    with pytest.raises(checkpoint.CheckpointError, match="no complete checkpoint"):
        checkpoint.read(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'{"format": "other"}',
        b'{"format": "softcount-checkpoint-3"}',
        b'{"format": "softcount-checkpoint-99"}',
        b"\xff\xfe",
    ],
)
def test_a_damaged_manifest_is_an_error_and_nothing_is_overwritten(tmp_path, content):
    write(tmp_path, 5)
    files = {path.name for path in tmp_path.iterdir()}
    (tmp_path / "manifest.json").write_bytes(content)
    for act in (lambda: checkpoint.read(tmp_path), lambda: write(tmp_path, 6)):
        with pytest.raises(checkpoint.CheckpointError, match=r"damaged|format"):
            act()
    assert {path.name for path in tmp_path.iterdir()} == files


@pytest.mark.parametrize("part", ["learner-0.safetensors", "segment-0.safetensors"])
@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_a_damaged_part_is_an_error_that_names_the_step_and_the_file(tmp_path, part, damage):
    write(tmp_path, 5, segments=("0",))
    path = tmp_path / part
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[-1] ^= 1
        path.write_bytes(content)
    elif damage == "cut":
        path.write_bytes(content[:-5])
    else:
        path.unlink()
    with pytest.raises(checkpoint.CheckpointError, match=f"step 5 is damaged: .*{part}"):
        checkpoint.read(tmp_path)


def test_killing_the_writer_at_random_moments_always_leaves_a_whole_checkpoint(tmp_path):
    script = textwrap.dedent(
        """
        import sys, numpy as np
        from pathlib import Path
        from softcount import checkpoint
        folder, step = Path(sys.argv[1]), 0
        print("ready", flush=True)
        while True:
            step += 1
            names = [str(i) for i in range(max(0, step - 3), step + 1)]
            segments = {n: (lambda n=n: {"rows": np.full(20000, float(n))}) for n in names}
            parts = {p: {"w": np.full(20000, float(step))} for p in ("learner", "actor", "memory")}
            checkpoint.write(folder, step=step, metrics_bytes=step, parts=parts, segments=segments)
        """
    )
    rng = np.random.default_rng(0)
    last = 0
    for _ in range(20):
        process = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE)
        assert process.stdout.readline() == b"ready\n"
        try:
            process.wait(rng.uniform(0.02, 0.12))
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        if not (tmp_path / "manifest.json").exists():
            continue
        saved = checkpoint.read(tmp_path)
        last = max(last, saved.step)
        assert all((part["w"] == saved.step).all() for part in saved.parts.values())
        assert all((state["rows"] == float(name)).all() for name, state in saved.segments.items())
    assert last > 1


def test_an_old_part_that_cannot_be_removed_is_a_warning_and_is_tried_again(tmp_path, monkeypatch):
    write(tmp_path, 1, value=1.0)
    real = Path.unlink

    def stuck(path, **options):
        if path.name == "loop-0.safetensors":
            raise PermissionError(13, "Permission denied")
        real(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", stuck)
        for step in (2, 3):
            with pytest.warns(
                UserWarning, match=r"loop-0.safetensors is no longer needed .*Permission denied"
            ):
                write(tmp_path, step, value=float(step))
            assert checkpoint.read(tmp_path).parts["learner"]["w"][0] == step
    write(tmp_path, 4)
    assert {path.name for path in tmp_path.iterdir()} == {
        "manifest.json", "learner-3.safetensors", "loop-3.safetensors",
    }  # fmt: skip


def test_a_reader_beside_a_writer_reads_the_newer_checkpoint(tmp_path, monkeypatch):
    write(tmp_path, 1, value=1.0)
    real, steps = store.load, iter(range(2, 6))

    def overtaken(path, **options):
        step = next(steps, None)
        if step is not None:
            write(tmp_path, step, value=float(step))  # removes what is about to be read
        return real(path, **options)

    monkeypatch.setattr(store, "load", overtaken)
    saved = checkpoint.read(tmp_path)
    assert (saved.step, saved.parts["learner"]["w"][0], saved.parts["loop"]["num_steps"]) == (5, 5.0, 5)


def test_a_reader_that_is_always_overtaken_gives_up(tmp_path, monkeypatch):
    write(tmp_path, 0)
    steps = iter(range(1, 1000))

    def overtaken(path, **options):
        write(tmp_path, next(steps))
        raise store.StoreError(f"{path} does not exist")

    monkeypatch.setattr(store, "load", overtaken)
    with pytest.raises(checkpoint.CheckpointError, match="does not exist"):
        checkpoint.read(tmp_path)
    assert next(steps) <= 20


def test_a_folder_that_cannot_be_synced_after_the_switch_keeps_both_checkpoints(tmp_path, monkeypatch):
    write(tmp_path, 1, value=1.0)
    real = store.sync_folder

    def fails(folder):
        if not (folder / "announced.json").exists():
            raise OSError(5, "Input/output error")
        real(folder)

    with monkeypatch.context() as patch:
        patch.setattr(store, "sync_folder", fails)
        with pytest.raises(
            checkpoint.CheckpointError, match="step 2 is written but may not outlast a power loss"
        ):
            write(tmp_path, 2, value=2.0)
    assert checkpoint.read(tmp_path).parts["learner"]["w"][0] == 2.0
    assert (tmp_path / "learner-0.safetensors").exists()  # what the old manifest would need
    write(tmp_path, 3)
    assert not (tmp_path / "learner-0.safetensors").exists()


def test_a_foreign_file_in_the_way_of_a_segment_is_named_and_kept(tmp_path):
    write(tmp_path, 1)
    (tmp_path / "segment-7.safetensors").write_bytes(b"precious")
    with pytest.raises(checkpoint.CheckpointError, match=r"segment-7.safetensors is in the way"):
        write(tmp_path, 2, segments=("7",))
    assert (tmp_path / "segment-7.safetensors").read_bytes() == b"precious"
    assert checkpoint.read(tmp_path).step == 1


def test_what_a_kill_left_behind_is_known_by_name_and_removed(tmp_path, monkeypatch):
    class Killed(BaseException):
        pass

    def killed(path, content, **options):
        if "loop" in str(path):
            (tmp_path / f".{path.name}.1-0123456789abcdef.part").write_bytes(content[:10])
            raise Killed
        real(path, content, **options)

    write(tmp_path, 1)
    real = store.write_atomically
    with monkeypatch.context() as patch:
        patch.setattr(store, "write_atomically", killed)
        with pytest.raises(Killed):
            write(tmp_path, 2)
    assert len(list(tmp_path.iterdir())) == 3 + 3  # the announcement, a part and half a part
    assert checkpoint.read(tmp_path).step == 1
    write(tmp_path, 3)
    assert {path.name for path in tmp_path.iterdir()} == {
        "manifest.json", "learner-2.safetensors", "loop-2.safetensors",
    }  # fmt: skip


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the shim intercepts Linux's C library")
@pytest.mark.skipif(shutil.which("gcc") is None, reason="the shim is compiled with gcc")
def test_a_fault_at_any_file_operation_leaves_a_whole_checkpoint_and_no_rubbish(tmp_path):
    here, shim = Path(__file__).parent / "runs", tmp_path / "faults.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", shim, here / "faults.c", "-ldl"], check=True)
    (tmp_path / "run").mkdir()
    result = subprocess.run(
        [sys.executable, here / "faults.py", tmp_path / "run"],
        env={**os.environ, "LD_PRELOAD": str(shim)}, capture_output=True, text=True,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    num = found["operations"]
    assert num > 20
    assert found["struck"]["kill"] == {"killed": num}
    assert found["struck"]["half"] == {"killed": num}
    for kind in ("full", "error"):  # three old files cannot be removed, at once or at the next checkpoint
        assert found["struck"][kind] == {"ended": num - 6, "went on": 6}


def test_some_parts_can_be_read_without_the_others(tmp_path):
    write(tmp_path, 7, value=2.0, segments=("1",))
    whole = checkpoint.read(tmp_path)
    first = next(iter(whole.parts))
    some = checkpoint.read(tmp_path, only=(first,))
    assert (some.step, list(some.parts), some.segments) == (7, [first], {})
    assert str(some.parts) == str({first: whole.parts[first]})
    for path in tmp_path.glob("segment-*"):
        path.unlink()
    assert checkpoint.read(tmp_path, only=(first,)).step == 7
