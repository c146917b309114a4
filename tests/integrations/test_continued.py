"""Saved in the middle, loaded in a new process, continued: the same as without the break."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("torchrl")
from integrations import continued


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """What each adapter paid after the middle: in one go, and in a process of its own."""
    folder = tmp_path_factory.mktemp("continued")
    whole = {name: run(folder, "whole") for name, run in continued.RUNS.items()}
    script = Path(continued.__file__)
    subprocess.run([sys.executable, "-W", "ignore", str(script), str(folder)], check=True, timeout=240)
    return whole, np.load(folder / "second.npz")


@pytest.mark.parametrize("adapter", continued.RUNS)
def test_a_new_process_continues_bit_for_bit(adapter, both):
    whole, second = both
    assert np.abs(whole[adapter]).max() > 0
    np.testing.assert_array_equal(whole[adapter], second[adapter])
