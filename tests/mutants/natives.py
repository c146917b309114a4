"""Builds a native module with a wrong line in it, beside the right one.

The sources are copied to `build/mutants` and built there, so that only what a mutant changes is compiled
once more. One build at a time: a lock file keeps a second run waiting.
"""

from __future__ import annotations

import fcntl
import subprocess
import sys
import threading
from pathlib import Path

import nanobind

from mutants.entries import ROOT, Mutant

FOLDER = ROOT / "build" / "mutants"
MODULE_OF = {
    "rooms": "_rooms",
    "palette": "_palette",
}  # by how a file's name starts; all others are the memory's


def module_of(mutant: Mutant) -> str:
    """Returns which module a native file belongs to."""
    start = Path(mutant.file).stem.partition("_")[0]
    return MODULE_OF.get(start, "_native")


class Builder:
    """Builds mutants one after the other in one folder."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        FOLDER.mkdir(parents=True, exist_ok=True)

    def build(self, mutant: Mutant) -> Path:
        """Returns the built module, or raises `subprocess.CalledProcessError` if it does not compile."""
        with self._lock, open(FOLDER / "lock", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._write_sources(mutant)
            module = module_of(mutant)
            if not (FOLDER / "built" / "build.ninja").exists():
                _run(*_configuring())
            _run("cmake", "--build", str(FOLDER / "built"), "--target", module)
            (path,) = (FOLDER / "built").glob(f"{module}.*.so")
            kept = FOLDER / "kept" / mutant.key.replace("/", "-") / path.name
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(path.read_bytes())
            return kept

    def _write_sources(self, mutant: Mutant) -> None:
        """Writes those files only whose content differs, since the build goes by their times."""
        wanted = {path.relative_to(ROOT).as_posix(): path for path in (ROOT / "native").iterdir()}
        wanted["CMakeLists.txt"] = ROOT / "CMakeLists.txt"
        for name, path in wanted.items():
            text = path.read_text(encoding="utf-8")
            if name == mutant.file:
                text = mutant.applied(text)
            target = FOLDER / "source" / name
            if not target.exists() or target.read_text(encoding="utf-8") != text:
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, encoding="utf-8")


def _configuring() -> list[str]:
    ninja = Path(sys.executable).parent / "ninja"
    return [
        *("cmake", "-S", str(FOLDER / "source"), "-B", str(FOLDER / "built"), "-G", "Ninja"),
        *("-DCMAKE_BUILD_TYPE=Release", f"-DCMAKE_MAKE_PROGRAM={ninja}"),
        *(f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind.cmake_dir()}"),
    ]


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
