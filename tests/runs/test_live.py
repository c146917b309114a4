"""A run shows its places and atoms to whoever asks, and to nobody else."""

import os
import time
from types import SimpleNamespace

import numpy as np
import pytest
from report.runs import train

from softcount import checkpoint
from softcount.runs import live


def test_a_run_that_nobody_watches_writes_nothing(tmp_path):
    folder = train(tmp_path / "run", steps=200)
    assert not (folder / live.FOLDER).exists()
    assert live.read(folder) is None


@pytest.fixture
def asked(tmp_path):
    """A run that somebody watches from its first step on."""
    (tmp_path / "run").mkdir()
    live.ask(tmp_path / "run")
    return train(tmp_path / "run")


def test_a_run_that_is_watched_shows_what_its_last_report_had(asked):
    shown = live.read(asked)
    saved = checkpoint.read(asked / "checkpoints")
    assert shown.step == saved.step > 0
    for name, expected in saved.parts["loop"]["coverage"].items():
        np.testing.assert_array_equal(shown.coverage[name], expected)
    assert list(shown.memories) == [""]
    np.testing.assert_array_equal(shown.memories[""]["atoms"], saved.parts["memory"]["memory"]["atoms"])


def test_whoever_stopped_asking_is_not_answered(tmp_path):
    live.ask(tmp_path)
    assert live.is_asked(tmp_path)
    long_ago = time.time() - live.PATIENCE - 5
    os.utime(tmp_path / live.FOLDER / live.ASKED, (long_ago, long_ago))
    assert not live.is_asked(tmp_path)
    live.show_if_asked(tmp_path, loop=None)  # would fail on this
    live.ask(tmp_path)
    assert live.is_asked(tmp_path)


def test_what_cannot_be_written_or_read_stops_nobody(tmp_path):
    live.ask(tmp_path / "missing")
    live.ask(tmp_path)
    (tmp_path / live.FOLDER / live.SHOWN).mkdir()  # in the way
    memory = SimpleNamespace(memories=dict)
    loop = SimpleNamespace(num_steps=3, coverage=None, roles=SimpleNamespace(memory=memory))
    live.show_if_asked(tmp_path, loop)
    assert live.read(tmp_path) is None
    (tmp_path / live.FOLDER / live.SHOWN).rmdir()
    live.show_if_asked(tmp_path, loop)
    assert live.read(tmp_path) == live.Shown(3, None, {})
    (tmp_path / live.FOLDER / live.SHOWN).write_bytes(b"cut off")
    assert live.read(tmp_path) is None
