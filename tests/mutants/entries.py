"""The list of mutants: which snippet of which file is made wrong, why that matters, who must notice.

`lists/*.toml` hold one table per mutant, by area. A snippet is found by its text, never by a line number,
and must be in its file exactly once, so that the list follows the code.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LISTS = Path(__file__).parent / "lists"
EQUIVALENT = "equivalent"
"""The list of mutants that change nothing, with proofs; they are not run."""


@dataclass(frozen=True)
class Mutant:
    """One wrong line."""

    key: str  # its list and its place there, as memory/7
    file: str
    snippet: str
    replacement: str
    why: str  # what goes wrong with it; of an equivalent one, why nothing does
    killed_by: tuple[str, ...]  # tests, as pytest names them

    @property
    def area(self) -> str:
        return self.key.partition("/")[0]

    @property
    def is_native(self) -> bool:
        return self.file.startswith("native/")

    def problem(self, root: Path = ROOT) -> str | None:
        """Says why this mutant cannot be made, in one sentence; None if it can."""
        path = root / self.file
        if not path.is_file():
            return f"{self.key}: {self.file} does not exist; name the file that holds {self.snippet!r} now"
        num = path.read_text(encoding="utf-8").count(self.snippet)
        if num != 1:
            return (
                f"{self.key}: {self.file} holds the snippet {self.snippet!r} {num} times; expected once: "
                "follow the code, or make the snippet longer"
            )
        return None

    def applied(self, source: str) -> str:
        """Returns the file's text with the wrong line in it."""
        return source.replace(self.snippet, self.replacement)


def read(folder: Path = LISTS) -> list[Mutant]:
    """Returns the mutants of all lists that must die, in a fixed order."""
    names = sorted(path.stem for path in folder.glob("*.toml") if path.stem != EQUIVALENT)
    return [mutant for name in names for mutant in read_list(folder / f"{name}.toml")]


def read_list(path: Path) -> list[Mutant]:
    """Returns the mutants of one list."""
    tables = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    return [_entry(f"{path.stem}/{number}", table) for number, table in enumerate(tables, 1)]


def _entry(key: str, table: dict[str, Any]) -> Mutant:
    expected = {"file", "snippet", "replacement", "why", "killed_by"}
    if key.startswith(f"{EQUIVALENT}/"):
        table = {"killed_by": [], **table}
    if set(table) != expected:
        raise ValueError(f"{key} has the fields {sorted(table)}; expected {sorted(expected)}")
    if table["snippet"] == table["replacement"] or not table["snippet"]:
        raise ValueError(f"{key} changes nothing; expected a replacement that differs from the snippet")
    return Mutant(key=key, **{**table, "killed_by": tuple(table["killed_by"])})


def problems(mutants: list[Mutant], root: Path = ROOT) -> list[str]:
    """Says what is wrong with a list: snippets that are gone or not alone, nobody named, doubles."""
    found = [problem for mutant in mutants if (problem := mutant.problem(root)) is not None]
    found += [
        f"{mutant.key} names no test; expected the one that must notice it"
        for mutant in mutants
        if not mutant.killed_by and not mutant.key.startswith(f"{EQUIVALENT}/")
    ]
    seen: dict[tuple[str, str, str], str] = {}
    for mutant in mutants:
        change = (mutant.file, mutant.snippet, mutant.replacement)
        if change in seen:
            found.append(f"{mutant.key} is {seen[change]} once more; remove one")
        seen.setdefault(change, mutant.key)
    return found
