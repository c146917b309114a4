"""One process at a time writes into a run's folder; the lock ends with the process, however it ends."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path


def empty(folder: Path) -> None:
    """Removes what a folder holds, unless another process is training in it."""
    lock = FolderLock(folder)
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    lock.release()


class FolderLock:
    """Holds a folder against other processes until `release`.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> lock = FolderLock(folder)
    >>> FolderLock(folder)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    BlockingIOError: another process is training in ...
    >>> lock.release()
    >>> FolderLock(folder).release()
    """

    def __init__(self, folder: Path) -> None:
        self._descriptor: int | None = None
        if sys.platform == "win32":  # folders cannot be locked there
            return
        import fcntl

        descriptor = os.open(folder, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise BlockingIOError(
                f"another process is training in {folder}; stop it first, or choose another folder"
            ) from None
        except OSError:  # some network file systems have no locks: go on without
            os.close(descriptor)
            return
        self._descriptor = descriptor

    def __del__(self) -> None:
        self.release()

    def release(self) -> None:
        """Lets go of the folder; a second time does nothing."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
