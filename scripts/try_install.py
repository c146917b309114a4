"""Installs what `make wheel` built into empty environments, and does there what the README says.

    python scripts/try_install.py dist           # wheel and sdist, each without extras
    python scripts/try_install.py dist --agent   # and the wheel with `agent`: every snippet, a short run

Without extras the README's snippet of the memory must run, and other commands must say what to install.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(r"^```python[ \t]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
CONSTRAINTS = ["--constraint", str(ROOT / "constraints.txt")]
BUILD_NEEDS = ["scikit-build-core", "nanobind", "ninja"]
"""What an sdist is built with; taken from the same constraints, not the newest there are."""
RUN = "train MEME-RECODE-AP --env-options size=7 --num-envs 8 --steps 400 --run runs/first"


class Environment:
    """An empty virtual environment in a folder of its own, far from the checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder, folder / "env" / ("Scripts" if os.name == "nt" else "bin")
        venv.create(folder / "env", with_pip=True)

    def install(self, *what: str) -> None:
        self.run("python", "-m", "pip", "install", "--quiet", *CONSTRAINTS, *what)

    def run(self, program: str, *words: str, code: int = 0) -> str:
        """Runs a program and returns what it said; another exit code than expected is an error."""
        done = subprocess.run(
            [str(self.bin / program), *words], cwd=self.folder, capture_output=True, text=True, timeout=1800
        )
        if done.returncode != code:
            raise SystemExit(
                f"{program} {' '.join(words)[:200]} ended with {done.returncode}:\n{done.stderr}"
            )
        return done.stdout + done.stderr


def snippets(text: str) -> list[str]:
    """Returns the README's blocks of Python in their order."""
    return [match[1] for match in BLOCK.finditer(text)]


def try_plain(env: Environment) -> None:
    """An install without extras: the memory works, and the rest says what it needs."""
    (alone,) = (each for each in snippets(README.read_text(encoding="utf-8")) if "RecodeMemory" in each)
    env.run("python", "-c", alone)
    engine = env.run(
        "python", "-c", "from softcount import *; print(RecodeMemory(RecodeConfig(size=2, dim=1)))"
    )
    if "'native'" not in engine:
        raise SystemExit(f"the C++ engine is missing: {engine}")
    if env.run("softcount", "--version") != env.run("python", "-m", "softcount", "--version"):
        raise SystemExit("`softcount` and `python -m softcount` differ")
    said = env.run("softcount", "train", "MEME", code=1)
    if 'pip install ".[agent]"' not in said:
        raise SystemExit(f"an install without extras does not say what to add: {said}")


def try_agent(env: Environment) -> None:
    """An install with the agent: every snippet of the README, a run, its report."""
    for snippet in snippets(README.read_text(encoding="utf-8")):
        env.run("python", "-c", snippet)
    env.run("softcount", *RUN.split())
    env.run("softcount", "inspect", "runs/first")
    env.run("softcount", "report", "runs/first")
    if not (env.folder / "runs/first/report.html").is_file():
        raise SystemExit("there is no report")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("dist", type=Path, help="folder with one wheel and one sdist")
    parser.add_argument("--agent", action="store_true", help="also with the extra `agent`")
    arguments = parser.parse_args()
    (wheel,), (sdist,) = (
        sorted(arguments.dist.resolve().glob(kind)) for kind in ("softcount-*.whl", "softcount-*.tar.gz")
    )
    for archive in (wheel, sdist):
        with tempfile.TemporaryDirectory() as folder:
            env = Environment(Path(folder))
            if archive is sdist:
                env.install(*BUILD_NEEDS)
            env.install(*(["--no-build-isolation"] if archive is sdist else []), str(archive))
            try_plain(env)
            print(f"{archive.name}: installs, and works without extras", flush=True)
            if arguments.agent and archive is wheel:
                env.install(f"{archive}[agent]")
                try_agent(env)
                print(f"{archive.name}[agent]: every snippet of the README and a run work", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
