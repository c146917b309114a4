"""Checkpoints: whole or not at all."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from softcount import store
from softcount.launch import checkpoint


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
    "content", [b"{", b"[]", b'{"format": "other"}', b'{"format": "softcount-checkpoint-1"}', b"\xff\xfe"]
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
        from softcount.launch import checkpoint
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
