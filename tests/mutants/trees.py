"""A copy of the project to make wrong: sources, experiments, tests and built modules; all else is linked.

Tests run in it with the copy's `src` first on the path. What was compiled of the file that changes is
removed, since Python takes a file of equal size and second for the same.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mutants.entries import ROOT, Mutant

COPIED = ("src", "tests", "experiments")
NOT_LINKED = {*COPIED, ".git", ".venv", "build"}
MODULES = {
    "_native": "softcount.memory",
    "_palette": "softcount.torsos",
    "_rooms": "softcount.envs.eight_rooms",
}


class Tree:
    """One copy; holds at most one mutant at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        for name in COPIED:
            shutil.copytree(ROOT / name, folder / name, symlinks=True)
        for path in ROOT.iterdir():
            if path.name not in NOT_LINKED:
                (folder / path.name).symlink_to(path)
        for module in MODULES:
            self.place(module, built_module(module))

    def place(self, module: str, built: Path) -> None:
        """Puts a built module where the copy imports it from."""
        package = self.folder / "src" / MODULES[module].replace(".", "/")
        shutil.copy2(built, package / built.name)

    def environment(self) -> dict[str, str]:
        """Returns the environment in which Python imports this copy."""
        paths = [self.folder / "tests" / "mutants" / "site", self.folder / "src", self.folder / "tests"]
        own = {"PYTHONPATH": os.pathsep.join(map(str, paths)), "PYTHONDONTWRITEBYTECODE": "1"}
        return {**os.environ, **own, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}

    @contextmanager
    def holding(self, mutant: Mutant) -> Iterator[None]:
        """Makes the line wrong, and right again."""
        path = self.folder / mutant.file
        source, times = path.read_text(encoding="utf-8"), path.stat()
        _forget_compiled(path)
        path.write_text(mutant.applied(source), encoding="utf-8")
        try:
            yield
        finally:
            path.write_text(source, encoding="utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def built_module(module: str) -> Path:
    """Returns the installed file of a native module."""
    spec = importlib.util.find_spec(f"{MODULES[module]}.{module}")
    if spec is None or spec.origin is None:
        sys.exit(f"{module} is not built; mutants need the native modules: make install")
    return Path(spec.origin)


def _forget_compiled(path: Path) -> None:
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()
