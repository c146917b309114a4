"""One process at a time writes into a run's folder."""

import subprocess
import sys

import pytest

from softcount.runs.lock import FolderLock, empty

HOLD = """
import sys
from pathlib import Path
from softcount.runs.lock import FolderLock
lock = FolderLock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the folder until it is told to end."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_another_process_keeps_its_folder_until_it_ends_however_it_ends(tmp_path, holder):
    with pytest.raises(BlockingIOError, match="another process is training in"):
        FolderLock(tmp_path)
    holder.kill()
    holder.wait()
    FolderLock(tmp_path).release()


def test_a_folder_that_is_held_is_not_emptied(tmp_path, holder):
    (tmp_path / "config.json").write_text("mine")
    with pytest.raises(BlockingIOError):
        empty(tmp_path)
    assert (tmp_path / "config.json").read_text() == "mine"


def test_a_free_folder_is_emptied_and_can_be_held_again(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "file").touch()
    (tmp_path / "file").touch()
    empty(tmp_path)
    assert list(tmp_path.iterdir()) == []
    lock = FolderLock(tmp_path)
    lock.release()
    lock.release()  # a second time does nothing
