"""Measures the house: how large its rooms are, and what crosses the walls.

    python benchmarks/house.py                                      # prints this checkout's numbers
    python benchmarks/house.py --before ../before --write           # writes results/architecture/house.json
                                                                    # and the table of docs/architecture.md

Everything is read from the source, without experiments; only the modules that `import softcount.integrations`
loads are counted by importing it. Two numbers need judgement and are counted by hand, in `COUNTED_BY_HAND`.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]
TIMES = ("before", "after")
RECORDS = {"NamedTuple", "TypedDict"}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
COUNTED_BY_HAND = {
    "files_to_open_for_one_training_step": {
        "before": 4,
        "after": 3,
        "how": "files that say what one step does: the loop, one update, its loss; before also the memory "
        "server, whose closure the loop called to relabel",
    },
    "rooms_an_observation_passes": {
        "before": 5,
        "after": 5,
        "how": "roles that an observation enters on its way from the environment to the loss: actor, "
        "inference, memory, replay, learner",
    },
}
PARTS = {
    "Eight Rooms": ("eight_rooms",),
    "V-MPO": ("vmpo", "popart", "distributions", "point_maze"),
    "Ray": ("launch/ray/",),
    "Atari": ("envs/atari",),
    "drop-in use": ("integrations/",),
    "report pages": ("report/",),
}
"""What a part's files have in their names."""
IMPORTS = """
import sys
# Without those of editable installations, which would find this checkout's package and not the one asked for.
sys.meta_path = [finder for finder in sys.meta_path if "importlib" in repr(finder)]
sys.path.insert(0, sys.argv[1])
import softcount.integrations
print(sum(name.split(".")[0] == "softcount" for name in sys.modules))
"""


def measure(checkout: Path) -> dict[str, Any]:
    """Returns the numbers of a checkout."""
    package = checkout / "src" / "softcount"
    files = {
        str(path.relative_to(package)): path.read_text(encoding="utf-8")
        for path in sorted(package.rglob("*.py"))
        if "experiments" not in path.relative_to(package).parts
    }
    trees = {name: ast.parse(text) for name, text in files.items()}
    lengths = {name: text.count("\n") for name, text in files.items() if text.strip("\n\"' ")}
    functions = {
        f"{name}:{node.name}": (node.end_lineno or 0) - node.lineno + 1
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS)
    }
    return {
        "revision": revision(checkout),
        "lines": sum(lengths.values()),
        "files": len(lengths),
        "longest_file": longest(lengths),
        "median_file": statistics.median(lengths.values()),
        "longest_function": longest(functions),
        "median_function": statistics.median(functions.values()),
        "record_types": sum(map(is_record, classes_in(trees.values()))),
        "isinstance_on_bonuses_outside_bonuses": len(tests_on_bonuses(trees)),
        "agents_that_roles_import": agents_in_roles(trees),
        "casts": sum(is_call(node, "cast") for tree in trees.values() for node in ast.walk(tree)),
        "type_ignores": sum(text.count("# type: ignore") for text in files.values()),
        "modules_loaded_by_integrations": modules_loaded(checkout),
        "lines_by_part": lines_by_part(lengths),
        "pairs_of_repeated_lines": repeated(files),
        "words_per_sentence": words_per_sentence(checkout),
        "lines_of_experiments": lines_of_experiments(checkout),
    }


def lines_of_experiments(checkout: Path) -> int:
    """Counts them where they were, inside the package, and where they are, beside it."""
    folders = (checkout / "src" / "softcount" / "experiments", checkout / "experiments")
    return sum(path.read_text().count("\n") for folder in folders for path in folder.rglob("*.py"))


def lines_by_part(lengths: dict[str, int]) -> dict[str, int]:
    """Returns the lines of what came later, and of all the rest."""
    found = dict.fromkeys((*PARTS, "the rest"), 0)
    for name, num in lengths.items():
        part = next((part for part, names in PARTS.items() if any(x in name for x in names)), "the rest")
        found[part] += num
    return found


def repeated(files: dict[str, str], num: int = 8) -> int:
    """Counts runs of so many equal lines of code that stand in two places, imports and blank lines aside."""
    places: dict[tuple[str, ...], int] = {}
    for text in files.values():
        lines = [line.strip() for line in text.splitlines()]
        lines = [line for line in lines if line and not line.startswith(("from ", "import ", "#"))]
        for i in range(len(lines) - num + 1):
            key = tuple(lines[i : i + num])
            places[key] = places.get(key, 0) + 1
    return sum(count > 1 for count in places.values())


def words_per_sentence(checkout: Path) -> dict[str, float]:
    """Returns the mean number of words per sentence of each page."""
    spec = importlib.util.spec_from_file_location("sentences", HERE / "scripts" / "sentences.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {}
    for page in module.pages(checkout):
        texts = [text for _, text in module.paragraphs(page.read_text()) if page.exists()]
        lengths = [module.words(sentence) for text in texts for sentence in module.sentences(text)]
        if any(lengths):
            found[str(page.relative_to(checkout))] = round(statistics.mean(filter(None, lengths)), 1)
    return found


def longest(lengths: dict[str, int]) -> dict[str, Any]:
    name = max(lengths, key=lengths.__getitem__)
    return {"name": name, "lines": lengths[name]}


def classes_in(trees: Any) -> Iterator[ast.ClassDef]:
    for tree in trees:
        yield from (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


def is_record(node: ast.ClassDef) -> bool:
    """Whether a class is a dataclass, a named tuple or a typed dict."""
    decorators = {called(decorator) for decorator in node.decorator_list}
    return "dataclass" in decorators or bool(RECORDS & {called(base) for base in node.bases})


def tests_on_bonuses(trees: dict[str, ast.Module]) -> list[str]:
    """Names the files, outside of `bonuses`, of every `isinstance` on a class that can `observe` features."""
    inside = [tree for name, tree in trees.items() if name.startswith("bonuses/")]
    bonuses = {
        node.name
        for node in classes_in(inside)
        if any(isinstance(part, FUNCTIONS) and part.name == "observe" for part in node.body)
    }
    return [
        name
        for name, tree in trees.items()
        if not name.startswith("bonuses/")
        for node in ast.walk(tree)
        if is_call(node, "isinstance") and bonuses & {called(part) for part in ast.walk(node.args[1])}  # type: ignore[attr-defined]
    ]


def agents_in_roles(trees: dict[str, ast.Module]) -> list[str]:
    """Names the modules of agents that roles import, other than the protocols."""
    found = {
        node.module
        for name, tree in trees.items()
        if name.startswith("roles/")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("softcount.agents.")
    }
    return sorted(found - {"softcount.agents.protocols"})


def called(node: ast.AST) -> str:
    """Returns the last name of `name`, `module.name`, `name(...)` and `name[...]`."""
    if isinstance(node, ast.Call):
        return called(node.func)
    if isinstance(node, ast.Subscript):
        return called(node.value)
    return getattr(node, "attr", getattr(node, "id", ""))


def is_call(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and called(node.func) == name


def modules_loaded(checkout: Path) -> int:
    """Imports the integrations of a checkout in a process of its own; returns how many modules load."""
    command = [sys.executable, "-c", IMPORTS, str(checkout.resolve() / "src")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1])


def revision(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


ROWS = {
    "`isinstance` tests on bonuses outside `bonuses/`": "isinstance_on_bonuses_outside_bonuses",
    "modules of an agent that `roles/` import": "agents_that_roles_import",
    "files to open for one training step *": "files_to_open_for_one_training_step",
    "rooms an observation passes *": "rooms_an_observation_passes",
    "longest file, lines": "longest_file",
    "longest function, lines": "longest_function",
    "median file, lines": "median_file",
    "median function, lines": "median_function",
    "modules that `import softcount.integrations` loads": "modules_loaded_by_integrations",
    "record types (dataclasses, named tuples)": "record_types",
    "casts": "casts",
    "type-ignores": "type_ignores",
    "runs of eight equal lines in two places": "pairs_of_repeated_lines",
    "words per sentence, mean of the pages": "words_per_sentence",
    "lines of experiments": "lines_of_experiments",
    "lines of the package": "lines",
    "files": "files",
}


def table(found: dict[str, Any]) -> str:
    """Returns the numbers of before and after as a table of the documentation."""
    rows = ["| | before | after |", "|---|---|---|"]
    for title, name in ROWS.items():
        cells = [plain(found[when].get(name, COUNTED_BY_HAND.get(name, {}).get(when))) for when in TIMES]
        rows.append(f"| {title} | {' | '.join(cells)} |")
        if name == "lines":
            for part in (*PARTS, "the rest"):
                cells = [plain(found[when]["lines_by_part"][part]) for when in TIMES]
                rows.append(f"| of these {part} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def plain(value: Any) -> str:
    if isinstance(value, dict) and "lines" in value:
        value = value["lines"]
    elif isinstance(value, dict):
        return f"{statistics.mean(value.values()):.1f}"
    return f"{len(value) if isinstance(value, list) else value:,.10g}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", type=Path, help="a checkout to compare with")
    parser.add_argument(
        "--write", action="store_true", help="write the results and their table; needs --before"
    )
    arguments = parser.parse_args()
    found: dict[str, Any] = {"after": measure(HERE)}
    if arguments.before is not None:
        found = {"before": measure(arguments.before), **found}
    found["counted_by_hand"] = COUNTED_BY_HAND
    text = json.dumps(found, indent=1)
    print(text)
    if arguments.write and arguments.before is not None:
        (HERE / "results" / "architecture" / "house.json").write_text(text + "\n")
        page = HERE / "docs" / "architecture.md"
        page.write_text(re.sub(r"\| \| before \| after \|\n(\|.*\n)+", table(found), page.read_text()))


if __name__ == "__main__":
    main()
