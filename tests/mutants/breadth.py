"""Breadth: a random sample of the mutants that a library finds; the lists have those that people think of.

    pip install cosmic-ray
    PYTHONPATH=tests python -m mutants.breadth --num 300 --out results/mutants/breadth.json

Mutants are Cosmic Ray's; they run as those of the lists do, on the tests of their area. Those that only
change an annotation or a docstring are left out, and so are those that are no Python. Survivors are for
people to read, so the command does not fail. Results are kept as they come.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from mutants.entries import ROOT, Mutant
from mutants.judging import SURVIVED, Court, Verdict
from softcount.measure.machine import machine

SOURCES = ROOT / "src" / "softcount"
TESTS = {
    "memory": ("tests/memory", "tests/paper/test_memory_tables.py"),
    "bonuses": ("tests/bonuses", "tests/contracts/test_bonuses.py"),
    "agents": ("tests/agents", "tests/roles/test_actor.py"),
    "replay": ("tests/replay", "tests/roles/test_replay_server.py"),
    "roles": ("tests/roles",),
}
"""Which tests are those of an area."""


def what_runs(source: str) -> str | None:
    """Returns a program without its annotations and docstrings, as text to compare; None if it is none."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(0)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(0)
    return ast.dump(tree)


def changes_of(path: Path) -> Iterator[tuple[str, int]]:
    """Yields operators and places of all mutants of a file."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    tree = get_ast(path.read_text(encoding="utf-8"))
    for name in sorted(operator_names()):
        operator = get_operator(name)
        if not operator.arguments():
            num = sum(len(list(operator().mutation_positions(node))) for node in ast_nodes(tree))
            yield from ((name, place) for place in range(num))


def mutated(source: str, operator: str, place: int) -> str:
    """Returns a file's text with one of its mutants in it."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    return str(mutate_code(source, get_operator(operator)(), place))


def tests_of(path: Path) -> tuple[str, ...]:
    """Returns the tests of a file, those of its own first."""
    area = path.relative_to(SOURCES).parts[0]
    own = sorted((ROOT / "tests" / area).rglob(f"test_{path.stem}.py"))
    return (*(x.relative_to(ROOT).as_posix() for x in own), *TESTS[area])


def sample(num: int, seed: int) -> tuple[list[Mutant], int]:
    """Draws mutants from all files of the areas, and says how many there are."""
    files = [path for area in TESTS for path in sorted((SOURCES / area).rglob("*.py"))]
    everything = [(path, *change) for path in files for change in changes_of(path)]
    random.Random(seed).shuffle(everything)
    drawn: list[Mutant] = []
    for path, operator, place in everything:
        if len(drawn) == num:
            break
        source = path.read_text(encoding="utf-8")
        wrong = mutated(source, operator, place)
        if what_runs(wrong) not in (None, what_runs(source)):
            file = path.relative_to(ROOT).as_posix()
            drawn.append(Mutant(f"breadth/{len(drawn) + 1}", file, source, wrong, operator, tests_of(path)))
    return drawn, len(everything)


def as_record(verdict: Verdict) -> dict[str, object]:
    mutant = verdict.mutant
    lines = difflib.unified_diff(
        mutant.snippet.splitlines(), mutant.replacement.splitlines(), n=0, lineterm=""
    )
    return {
        "file": mutant.file,
        "operator": mutant.why,
        "change": list(lines)[2:],
        "outcome": verdict.outcome,
        "test": verdict.test,
        "seconds": verdict.seconds,
    }


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--num", type=int, default=300, help="how many are drawn")
    arguments.add_argument("--seed", type=int, default=0, help="which are drawn")
    arguments.add_argument("--at-once", type=int, default=os.cpu_count() or 1, help="how many run at once")
    arguments.add_argument("--limit", type=float, default=600.0, help="seconds after which one hangs")
    arguments.add_argument("--out", type=Path, required=True, help="where to keep the result as JSON")
    asked = arguments.parse_args()

    mutants, num_all = sample(asked.num, asked.seed)
    started = time.monotonic()
    court = Court(asked.at_once, asked.limit)
    verdicts: list[Verdict] = []
    for verdict in court.judge(mutants):
        verdicts.append(verdict)
        kept = {
            "machine": machine(),
            "seed": asked.seed,
            "num_all": num_all,
            "num_drawn": len(mutants),
            "outcomes": dict(Counter(x.outcome for x in verdicts)),
            "seconds": round(time.monotonic() - started, 1),
            "mutants": [as_record(x) for x in verdicts],
        }
        asked.out.parent.mkdir(parents=True, exist_ok=True)  # written each time: it may be stopped on the way
        asked.out.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        told = kept["mutants"][-1]["change"] if verdict.outcome == SURVIVED else ""
        print(f"{len(verdicts)}/{len(mutants)} {verdict.mutant.file}: {verdict.outcome} {told}", flush=True)
    court.close()


if __name__ == "__main__":
    main()
